"""Writes whose answer is lost, since the process that had the store open ended: each was done, or was not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

import grainstore
from grainstore.langgraph import GrainStore, _store_items, _store_values

N = ("n",)
LONG = {"text": "x" * 2_500}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[grainstore.Store]:
    monkeypatch.setattr(_store_values, "PART_CHARACTERS", 1000)
    with grainstore.open(tmp_path / "store") as store:
        yield store


class Losing:
    """Loses the answer of one write of those that nobody may ask again unseen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, was_done: bool) -> None:
        self.at = 0
        self.count = 0
        do: Any = grainstore.Store._do  # type: ignore[attr-defined]

        def lossy(of: grainstore.Store, method: str, params: Any, *args: Any, **kwargs: Any) -> Any:
            if method not in ("supersede", "erase") and not (method == "put" and "same_fact" in params):
                return do(of, method, params, *args, **kwargs)
            self.count += 1
            answer = do(of, method, params, *args, **kwargs) if was_done or self.count != self.at else None
            if self.count == self.at:
                raise grainstore.InDoubtError("who had the store open ended", code="ERR_IN_DOUBT")
            return answer

        monkeypatch.setattr(grainstore.Store, "_do", lossy)

    def each(self, call: Callable[[], object]) -> Iterator[None]:
        """Runs a call again and again: its first write is lost, its second, and so on."""
        while self.at == 0 or self.count >= self.at:
            self.at, self.count = self.at + 1, 0
            call()
            yield
        assert self.at > 1


@pytest.fixture(params=[True, False], ids=["done", "not done"])
def losing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Losing:
    return Losing(monkeypatch, request.param)


def left(store: grainstore.Store) -> list[str]:
    return [found["relation"] for found in store.query({}, include_superseded=True)]


@pytest.mark.parametrize("value", [{"n": 1}, LONG], ids=["short", "long"])
@pytest.mark.parametrize("ttl", [None, 10])
def test_puts(store: grainstore.Store, losing: Losing, value: dict[str, Any], ttl: float | None) -> None:
    memory = GrainStore(store, ttl={})
    for _ in losing.each(lambda: memory.put(N, "k", value, ttl=ttl)):
        item = memory.get(N, "k")
        assert item is not None and item.value == value
        assert memory.list_namespaces() == [N]
        history = store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")
        assert len(history) == 1
        memory.put(N, "k", {"n": 0})
        assert len(store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")) == 2
        memory.delete(N, "k")
        assert left(store) == []


def test_puts_over_an_item(store: grainstore.Store, losing: Losing) -> None:
    memory = GrainStore(store)
    memory.put(N, "k", {"n": 0})
    for number, _ in enumerate(losing.each(lambda: memory.put(N, "k", LONG, ttl=10)), 2):
        item = memory.get(N, "k")
        assert item is not None and item.value == LONG
        history = store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")
        assert len(history) == number
    memory.delete(N, "k")
    assert left(store) == []


def test_deletes(store: grainstore.Store, losing: Losing) -> None:
    memory = GrainStore(store)

    def put_and_delete() -> None:
        at, losing.at = losing.at, 0
        memory.put(N, "k", LONG)
        memory.put(N, "k", LONG, ttl=10)
        losing.at, losing.count = at, 0
        memory.delete(N, "k")

    for _ in losing.each(put_and_delete):
        assert left(store) == []


def test_sweeps(store: grainstore.Store, losing: Losing) -> None:
    memory = GrainStore(store)

    def put_and_sweep() -> None:
        at, losing.at = losing.at, 0
        memory.batch([PutOp(N, "k", LONG), PutOp(("m",), "k", {}, ttl=0)])
        memory.put(N, "k", LONG, ttl=0)
        losing.at, losing.count = at, 0
        assert memory.sweep_ttl() == 2

    for _ in losing.each(put_and_sweep):
        assert left(store) == []


def test_reads_that_renew(store: grainstore.Store, losing: Losing, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = GrainStore(store)
    memory.put(N, "k", LONG, ttl=10)
    clock, later = _store_items.now_us, [0]
    monkeypatch.setattr(_store_items, "now_us", lambda: clock() + later[0])

    def get() -> None:
        later[0] += 60_000_000
        assert memory.get(N, "k") is not None

    for _ in losing.each(get):
        later[0] += 540_000_000
        assert memory.sweep_ttl() == 0


def test_a_put_that_another_writer_has_put_over_meanwhile(
    store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = GrainStore(store), GrainStore(store)
    supersede = grainstore.Store.supersede
    memory.put(N, "k", {"n": 0})

    def lost(self: grainstore.Store, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(grainstore.Store, "supersede", supersede)
        supersede(self, *args, **kwargs)
        other.put(N, "k", {"by": "other"})
        raise grainstore.InDoubtError("who had the store open ended", code="ERR_IN_DOUBT")

    monkeypatch.setattr(grainstore.Store, "supersede", lost)
    memory.put(N, "k", LONG)
    item = memory.get(N, "k")
    assert item is not None and item.value == {"by": "other"}
    history = store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")
    assert len(history) == 3
    assert left(store).count("langgraphpart") == 3


def test_an_owner_that_does_not_come_back_is_told(store: grainstore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = GrainStore(store)

    def lost(*args: Any, **kwargs: Any) -> Any:
        raise grainstore.InDoubtError("who had the store open is silent", code="ERR_IN_DOUBT")

    memory.put(N, "k", {"n": 0})
    monkeypatch.setattr(grainstore.Store, "supersede", lost)
    with pytest.raises(grainstore.InDoubtError):
        memory.put(N, "k", LONG)
    # It may be done later: so its parts stay.
    assert left(store).count("langgraphpart") == 3


@pytest.mark.skipif(sys.platform != "linux", reason="processes share a store on Linux alone")
def test_an_owner_that_is_killed_is_not_noticed(tmp_path: Path) -> None:
    code = """
        import sys, time, grainstore
        store = grainstore.open(sys.argv[1])
        print("open", flush=True)
        time.sleep(600)
    """
    path = tmp_path / "store"
    errors: list[BaseException] = []
    for round in range(2):
        owner = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE, text=True
        )
        assert owner.stdout is not None and owner.stdout.readline() == "open\n"
        with GrainStore(path) as memory:
            ends = time.monotonic() + 2

            def work(name: str, memory: GrainStore = memory, ends: float = ends, round: int = round) -> None:
                try:
                    while time.monotonic() < ends:
                        memory.put((name,), f"k{round}", {"n": 1}, ttl=10)
                        memory.put((name,), "gone", {"n": 1})
                        memory.delete((name,), "gone")
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
            for thread in threads:
                thread.start()
            time.sleep(0.7)
            owner.kill()
            for thread in threads:
                thread.join()
            owner.communicate()
            assert errors == []
            assert len(memory.search(())) == 4 * (round + 1)
