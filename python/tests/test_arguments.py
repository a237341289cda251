"""Arguments of a wrong type or value are told by their names, before anything is done."""

from __future__ import annotations

import asyncio
import datetime
import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import grainstore
from grainstore import Belief, Embedder, Event, FieldTypeError, Found, Put, Store


def raises(kind: type[BaseException], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert not isinstance(raised.value, AttributeError)


def test_what_is_no_address_is_told(store: Store) -> None:
    for call in (
        store.get,
        store.exists,
        store.history,
        lambda of: store.erase(of, "r"),
        lambda of: store.hold(of, "r"),
    ):
        raises(TypeError, "an address is a text", lambda call=call: call(5))  # type: ignore[misc]
    raises(TypeError, "not NoneType", lambda: store.get(store.latest("nobody", "likes")))  # type: ignore[arg-type]


def test_paths_are_texts_bytes_or_paths(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path / "store")
    with grainstore.open(place) as store:  # type: ignore[arg-type]
        store.put(Event("hello"))
        store.backup(os.fsencode(tmp_path / "copy"))  # type: ignore[arg-type]
        raises(TypeError, "path: a path is needed, not int", lambda: store.export_grains(5))  # type: ignore[arg-type]
    assert (tmp_path / "store").is_dir()
    with grainstore.open(tmp_path / "copy", create=False) as copy:
        assert [found["content"] for found in copy.query()] == ["hello"]


def test_what_opens_a_store_is_told_by_its_name(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"passphrase": b"secret"}, "passphrase: a text is needed, not bytes"),
        ({"key": "0" * 32}, "key: 32 bytes are needed, not str"),
        ({"purposes": "research"}, "purposes: a list of texts is needed, not str"),
        ({"user_id": 5}, "user_id: a text is needed, not int"),
        ({"languages": "de"}, "languages: codes by namespaces are needed, not str"),
        ({"wait": "long"}, "wait: a number of seconds is needed, not str"),
        ({"wait": None}, "wait: a number of seconds is needed, not NoneType"),
        ({"threads": 1.5}, "threads: a whole number is needed, not float"),
    ]
    for given, message in wrong:
        raises(TypeError, message, lambda given=given: grainstore.open(tmp_path / "no", **given))  # type: ignore[misc]
    raises(ValueError, "wait: nan", lambda: grainstore.open(tmp_path / "no", wait=float("nan")))
    raises(ValueError, "threads: 0 is less than 1", lambda: grainstore.open(tmp_path / "no", threads=0))
    raises(TypeError, "dimension: a whole number", lambda: Embedder(list, "m", "2"))  # type: ignore[arg-type]
    assert not (tmp_path / "no").exists()


def test_arguments_of_calls_are_told_by_their_names(store: Store) -> None:
    raises(TypeError, "purposes: a list of texts", lambda: store.session(purposes="research"))
    raises(TypeError, "namespace: a text", lambda: store.session(namespace=5))  # type: ignore[arg-type]
    raises(ValueError, "limit: -1 is less than 0", lambda: list(store.query(limit=-1)))
    raises(TypeError, "limit: a whole number", lambda: list(store.query(limit="5")))  # type: ignore[arg-type]
    raises(TypeError, "timeout: a number of seconds", lambda: store.wait_for_vectors(None))  # type: ignore[arg-type]
    raises(TypeError, "budget: a whole number", lambda: store.assemble("x", budget=None))  # type: ignore[arg-type]
    raises(TypeError, "sources: statements by name", lambda: store.assemble("x", ["RECALL"]))  # type: ignore[arg-type]
    raises(TypeError, "Store.put()", lambda: store.put(Event("x"), sane_fact="keep"))  # type: ignore[call-arg]


def test_a_field_of_a_wrong_type_is_a_type_error(store: Store) -> None:
    wrong: list[tuple[Any, str]] = [
        (Belief("a", "b", "c", confidence="x"), "confidence"),  # type: ignore[arg-type]
        (Belief(7, "b", "c", confidence=1), "subject"),  # type: ignore[arg-type]
        (Event("x", structural_tags="one"), "structural_tags"),
        (Event("x", invalidation_policy=[]), "invalidation_policy"),  # type: ignore[arg-type]
        (Event("x", requires_human_review="no"), "requires_human_review"),  # type: ignore[arg-type]
        (Event("x", success_count="no"), "success_count"),  # type: ignore[arg-type]
        (Event("x", derived_from="no"), "derived_from"),
    ]
    for grain, name in wrong:
        with pytest.raises(TypeError) as raised:
            store.put(grain)
        assert isinstance(raised.value, FieldTypeError) and name in raised.value.message
    with pytest.raises(FieldTypeError, match="grain 1: content") as of_many:
        store.put_many([Event("x"), Event(5)])  # type: ignore[arg-type]
    assert of_many.value.index == 1
    raises(ValueError, "more.content", lambda: store.put(Event("x", more={"content": "y"})))
    raises(ValueError, "more.type", lambda: store.put(Event("x", more={"type": "state"})))


def test_times_may_be_texts(store: Store) -> None:
    noon = datetime.datetime(2026, 3, 9, 12, tzinfo=datetime.timezone.utc)
    store.put(Belief("a", "likes", "tea", confidence=1.0, created_at=noon))
    for at in (noon, int(noon.timestamp() * 1000), "2026-03-09T12:00:00Z", "2026-03-09T13:00:00+01:00"):
        found = store.latest("a", "likes", as_of=at)
        assert found is not None and found["object"] == "tea"
        assert len(list(store.query({"time_from": at, "time_to": at}))) == 1
    assert store.latest("a", "likes", as_of="2026-03-09T11:59:59Z") is None
    raises(ValueError, "as_of: 'soon'", lambda: store.latest("a", "likes", as_of="soon"))
    raises(ValueError, "where.time_from: a time needs a zone", lambda: list(store.query({"time_from": "2026-03-09"})))


def test_what_was_found_is_read_like_a_dict(store: Store) -> None:
    address = store.put(Belief("a", "likes", "tea", confidence=1.0)).address
    (found,) = store.query()
    for one in (found, store.get(address)):
        assert "object" in one and "address" not in one
        assert one.get("object") == "tea" and one.get("nothing", 7) == 7
        assert dict(one)["relation"] == "likes" and list(one) == list(one.grain)
    assert hash(Put({"address": address, "duplicate": False})) == hash(Put({"duplicate": False, "address": address}))
    assert hash(Found(found.raw)) == hash(found)


def test_the_process_that_answers_is_none_where_it_is_this_one(store: Store) -> None:
    with grainstore.open(store.path) as second:
        assert second.owner_pid is None


def test_hints_are_in_the_terms_of_python(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no store")
    with pytest.raises(grainstore.GrainstoreError) as raised:
        grainstore.open(tmp_path / "file")
    assert raised.value.hint and "--" not in raised.value.hint and "OpenOptions" not in raised.value.hint
    with pytest.raises(grainstore.NotFoundError) as absent:
        grainstore.open(tmp_path / "absent", create=False)
    assert "create=True" in absent.value.hint and absent.value.details["hint"] == absent.value.hint
    with pytest.raises(grainstore.GrainstoreError) as short:
        grainstore.open(tmp_path / "key", key=b"short")
    assert "base64" not in short.value.hint


def test_an_embedder_that_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fails(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("no model today")

    with (
        caplog.at_level(logging.WARNING, "grainstore"),
        grainstore.open(tmp_path / "store", embedder=Embedder(fails, "m", 2)) as store,
    ):
        store.put(Event("hello"))
        until = time.monotonic() + 20
        while "no model today" not in caplog.text and time.monotonic() < until:
            time.sleep(0.01)
    assert "the embedder m failed" in caplog.text and "no model today" in caplog.text


def test_what_listens_to_an_asynchronous_stream_may_end_it(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    async def streams() -> None:
        async with grainstore.aopen(tmp_path / "store") as store:
            await store.put_many([Event(f"number {number}") for number in range(50)])
            told: list[Any] = []

            def listen(event: Any) -> None:
                told.append(event)
                raise Enough

            with pytest.raises(Enough):
                await store.stream("ASSEMBLE FROM all: (RECALL events) BUDGET 500 tokens", on_event=listen)
            await asyncio.sleep(0.05)
            assert len(told) == 1

    asyncio.run(streams())


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises, also where the tests run in the background of a shell, which starts them without that."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_does_not_wait_for_an_embedder(tmp_path: Path) -> None:
    done = threading.Event()

    def slow(texts: list[str]) -> list[list[float]]:
        done.wait(60)
        return [[1.0, 0.0] for _ in texts]

    with grainstore.open(tmp_path / "store", embedder=Embedder(slow, "m", 2, timeout=60)) as store:
        store.put(Event("hello"))
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            store.wait_for_vectors(50)
        assert time.monotonic() - began < 30
        done.set()


def test_a_session_of_a_session_keeps_its_purposes(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with grainstore.open(path) as store:
        store.put(Event("visited", user_id="ann", context={"con:ccpa_opted_out": True}))
        sale = store.session(actor="did:web:broker.example", purposes=["sale"])
        for session in (sale, sale.session(), sale.session(purposes=("sale",)), sale.aio.sync.session(user_id="ann")):
            with pytest.raises(grainstore.PolicyError):
                session.export_grains(tmp_path / "out.mg")
        raises(grainstore.AccessError, "purposes", lambda: sale.session(purposes=["research"]))
        raises(grainstore.AccessError, "user_id", lambda: store.session(user_id="ann").session(user_id=""))
        assert (sale.session(user_id="ann").user_id, sale.namespace) == ("ann", None)
    with grainstore.open(path, purposes=["sale"]) as opened:
        raises(grainstore.AccessError, "purposes", lambda: opened.session(purposes=["research"]))
        raises(grainstore.PolicyError, "", lambda: opened.session().export_grains(tmp_path / "out.mg"))


def test_a_context_is_assembled_for_any_intent(store: Store) -> None:
    store.put(Belief("alice", "prefers", "tea", confidence=1.0))
    for intent in ("x" * 100_000, "tea " * 50_000, '"' * 9_000, "\n" * 20_000, "\U0001f600" * 9_000):
        assert store.assemble(intent, about="alice", budget=200).text
    assert "tea" in store.assemble('"', budget=200).text
    assert "tea" in store.assemble(" ", budget=200).text
    with pytest.raises(TypeError, match="say what the context is for"):
        store.assemble()


def test_a_store_that_is_dropped_lets_go_of_its_embedder(tmp_path: Path) -> None:
    class Model:
        def __call__(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

    model = Model()
    of = weakref.ref(model)
    before = threading.active_count()
    store = grainstore.open(tmp_path / "store", embedder=Embedder(model, "m", 2))
    store.put(Event("hello"))
    assert store.wait_for_vectors(30)
    del store, model
    until = time.monotonic() + 20
    while (of() is not None or threading.active_count() > before) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert of() is None and threading.active_count() <= before


def test_a_store_is_closed_while_its_embedder_is_at_work_and_others_ask(tmp_path: Path) -> None:
    script = """
        import sys, threading, time, grainstore
        at_work = threading.Event()
        def slow(texts):
            at_work.set()
            time.sleep(0.5)
            return [[1.0, 2.0]] * len(texts)
        store = grainstore.open(sys.argv[1], embedder=grainstore.Embedder(slow, "m", 2))
        store.put(grainstore.Event("hello"))
        at_work.wait(30)
        closing = threading.Thread(target=store.close)
        closing.start()
        while closing.is_alive():
            store.owner_pid
        print("closed")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "store")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=120).stdout == "closed\n"
