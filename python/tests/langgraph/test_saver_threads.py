"""Deleting, pruning and copying threads: for good, whole, and past interruptions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6
from saver_kit import checkpoint, config, ids

import grainstore
from grainstore.langgraph import GrainSaver
from grainstore.langgraph import _saver_keep as keep
from grainstore.langgraph import _saver_memory as memory
from grainstore.langgraph._saver_keys import Place, task_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[grainstore.Store]:
    with grainstore.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def saver(store: grainstore.Store) -> GrainSaver:
    return GrainSaver(store)


def run(saver: GrainSaver, where: Any, steps: int = 4, run_id: str | None = None, size: int = 10) -> list[Any]:
    """Steps of a run: channel ``a`` is the same in all, ``b`` another in each; each has a write."""
    stored = [where]
    for step in range(steps):
        versions = {"a": "1", "b": f"{step + 1}"}
        made = checkpoint(versions=versions, a="a" * size, b=f"{step}" * size)
        new = versions if step == 0 else {"b": versions["b"]}
        metadata: Any = {"step": step, **({} if run_id is None else {"run_id": run_id})}
        stored.append(saver.put(stored[-1], made, metadata, new))
        saver.put_writes(stored[-1], [("b", "w" * size)], "task")
    return stored[1:]


def grains(store: grainstore.Store) -> int:
    return len(list(store.query()))


def test_a_deleted_thread_is_erased_and_begins_anew(store: grainstore.Store, saver: GrainSaver) -> None:
    store.put({"type": "event", "content": "another memory"})
    kept = run(saver, config("kept"))
    run(saver, config("gone"))
    run(saver, config("gone", "child:1"))
    others = grains(store)
    saver.delete_thread("gone")
    assert ids(saver.list(config("gone", None))) == [] and saver.get_tuple(config("gone")) is None
    assert ids(saver.list(None)) == ids(kept[::-1])
    assert store.subject_report("langgraph-thread:gone")["addresses"] == []
    assert grains(store) < others and "another memory" in [one.grain.get("content") for one in store.query()]
    again = run(saver, config("gone"), steps=2)
    assert ids(saver.list(config("gone"))) == ids(again[::-1])
    found = saver.get_tuple(config("gone"))
    assert found is not None and found.checkpoint["channel_values"] == {"a": "a" * 10, "b": "1" * 10}
    assert store.verify(full=True)["ok"]


def test_deleting_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    secret = "rosebud-7c1f"
    with GrainSaver(tmp_path / "store") as saver:
        where = saver.put(config(), checkpoint(a=secret), {"source": secret}, {"a": "1"})  # type: ignore[typeddict-item]
        saver.put_writes(where, [("a", secret)], "task")
        saver.delete_thread("thread")
    stored = b"".join(file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())
    assert secret.encode() not in stored


def test_deleting_what_is_not_there_leaves_no_trace(store: grainstore.Store, saver: GrainSaver) -> None:
    before = store.audit()["head"]
    saver.delete_thread("nobody")
    saver.delete_for_runs(["nobody"])
    saver.prune(["nobody"])
    saver.copy_thread("nobody", "somebody")
    assert store.audit()["head"] == before and grains(store) == 0


@pytest.mark.parametrize("key", [None, b"k" * 32])
@pytest.mark.parametrize("knows", ["it", "that it was there", "nothing"])
def test_a_run_cannot_bring_a_deleted_thread_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows: str, key: bytes | None
) -> None:
    monkeypatch.setattr(memory, "_HEADS", 128 if knows == "it" else 1)
    with grainstore.open(tmp_path / "encrypted", key=key) as store:
        saver = GrainSaver(store)
        mine = run(saver, config())
        GrainSaver(store).delete_thread("thread")
        run(saver, config("other"), steps=1)
        saver = GrainSaver(store) if knows == "nothing" else saver
        for again in range(2):
            with pytest.raises(grainstore.ErasedError, match="which this goes on from, was deleted"):
                saver.put(mine[-1], checkpoint(a="old", b="old" * again * 700_000), {}, {})
            with pytest.raises(grainstore.ErasedError, match="was deleted"):
                saver.put_writes(mine[-1], [("b", "old" * again * 700_000)], "task")
            # A subgraph that the run enters.
            with pytest.raises(grainstore.ErasedError, match="was deleted"):
                saver.put(config(ns="child:1"), checkpoint(a=1), {"parents": {"": ids(mine)[-1]}}, {"a": "1"})
            assert saver.get_tuple(mine[-1]) is None
        assert store.subject_report("langgraph-thread:thread")["addresses"] == []
        # Without the checkpoint, the thread begins anew.
        goes_on = run(saver, config(), steps=2)[-1]
        saver.put(config(ns="child:1"), checkpoint(a=1), {"parents": {"": ids([goes_on])[0]}}, {"a": "1"})
        assert len(ids(saver.list(config(ns=None)))) == 3


def test_a_checkpoint_whose_id_is_no_time_does_not_come_back_either(
    saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_HEADS", 1)
    one = saver.put(config(), checkpoint("1", a=1), {}, {"a": "1"})
    run(saver, config("other"))
    saver.delete_thread("thread")
    with pytest.raises(grainstore.ErasedError, match="checkpoint '1' of thread 'thread'"):
        saver.put(one, checkpoint("2", a=2), {}, {"a": "2"})
    again = saver.put(config(), checkpoint("1", a=3), {}, {"a": "1"})
    assert again == one
    saver.put(one, checkpoint("2", versions={"a": "1"}, a=3), {}, {})
    assert ids(saver.list(config())) == ["2", "1"]


def test_a_checkpoint_that_nobody_had_is_taken_as_a_beginning(saver: GrainSaver) -> None:
    unknown = config(checkpoint_id=str(uuid6()))
    saver.put_writes(unknown, [("a", 1)], "task")
    saver.put(unknown, checkpoint(a="x" * 1_500_000), {"parents": {"": 3, "child:1": None}}, {})
    assert len(ids(saver.list(config()))) == 1
    # Its values are dated as that one, and are left alone all the same.
    saver.prune(["thread"])
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == {"a": "x" * 1_500_000}


def test_a_thread_begins_anew_after_the_clock_was_set_back(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = run(saver, config())
    for thread in ("before", "thread", "behind"):
        run(saver, config(thread), steps=1)
        saver.delete_thread(thread)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() - 60_000_000_000)
    late = GrainSaver(store)
    with pytest.raises(grainstore.ErasedError, match="was deleted"):
        late.put(old[-1], checkpoint(a=1), {}, {})
    mine = run(late, config(), steps=3)
    child = run(late, config(ns="child:1"), steps=1)
    assert ids(late.list(config())) == sorted(ids(mine), reverse=True) and ids(late.list(config(ns="child:1"))) == ids(
        child
    )
    assert store.verify(full=True)["ok"]
    late.delete_thread("thread")
    with pytest.raises(grainstore.ErasedError, match="was deleted"):
        late.put(mine[-1], checkpoint(a=1), {}, {})
    assert grains(store) == 0


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_threads_are_deleted_while_others_write_to_them(tmp_path: Path, key: bytes | None) -> None:
    with grainstore.open(tmp_path / "store", key=key) as store:
        _delete_while_others_write(store, GrainSaver(store))
        for user in ("langgraph-thread:thread", "langgraph-threads"):
            assert store.subject_report(user)["addresses"] == []


def _delete_while_others_write(store: grainstore.Store, saver: GrainSaver) -> None:
    stop, wrong = threading.Event(), []

    def write() -> None:
        own = GrainSaver(store)
        while not stop.is_set():
            try:
                run(own, config(), steps=3)
            except grainstore.ErasedError as error:
                if "was deleted" not in str(error):
                    wrong.append(error)

    def read() -> None:
        while not stop.is_set():
            try:
                for found in [saver.get_tuple(config()), *saver.list(config())]:
                    if found is not None and set(found.checkpoint["channel_values"]) != {"a", "b"}:
                        wrong.append(found)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work) for work in (write, write, read)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        time.sleep(0.1)
        saver.delete_thread("thread")
    stop.set()
    for thread in threads:
        thread.join()
    saver.delete_thread("thread")
    assert not wrong and list(saver.list(None)) == []


def test_pruning_keeps_the_newest_with_its_values_and_writes(store: grainstore.Store, saver: GrainSaver) -> None:
    for ns in ("", "child:1"):
        run(saver, config(ns=ns), size=50_000)
    run(saver, config("other"))
    before = {ns: saver.get_tuple(config(ns=ns)) for ns in ("", "child:1")}
    saver.prune(["thread", "nobody"])
    assert len(ids(saver.list(config(ns=None)))) == 2 and len(ids(saver.list(config("other")))) == 4
    for ns, found in before.items():
        assert saver.get_tuple(config(ns=ns)) == found
    # A head, its writes, the values of the first step and its own, the writes' values.
    assert len(store.subject_report("langgraph-thread:thread")["addresses"]) == 2 * 5
    saver.prune(["thread"])
    assert saver.get_tuple(config()) == before[""]
    saver.prune(["thread"], strategy="delete")
    assert ids(saver.list(config(ns=None))) == [] and len(ids(saver.list(config("other")))) == 4
    assert store.verify(full=True)["ok"]


def test_pruning_reads_many_grains_at_once(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(saver, config(), steps=40)
    calls: list[str] = []
    do = grainstore.Store._do

    def counted(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        calls.append(method)
        return do(self, method, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(grainstore.Store, "_do", counted)
        saver.prune(["thread"])
    # Heads, writes and values of all but the newest; the value that all share stays.
    assert calls.count("erase") == 39 * 3 - 1 and len(calls) - calls.count("erase") < 20
    assert len(ids(saver.list(config()))) == 1


def test_a_held_checkpoint_keeps_a_call_from_its_end_and_nothing_breaks(
    store: grainstore.Store, saver: GrainSaver
) -> None:
    stored = run(saver, config(), steps=20)
    held = [one.address for one in store.query({"run_id": task_run(Place("thread", ""), ids(stored)[9], "task")})]
    store.hold(held[0], "case 7")
    with pytest.raises(grainstore.InvalidationDeniedError):
        saver.prune(["thread"])
    for found in saver.list(config()):
        assert set(found.checkpoint["channel_values"]) == {"a", "b"}
    store.lift_hold(held[0], "closed")
    saver.prune(["thread"])
    assert ids(saver.list(config())) == ids(stored[-1:])
    assert len(store.subject_report("langgraph-thread:thread")["addresses"]) == 4


def test_a_copy_belongs_to_the_same_runs(store: grainstore.Store, saver: GrainSaver) -> None:
    run(saver, config(), run_id="one")
    saver.copy_thread("thread", "copy")
    saver.delete_for_runs(["one"])
    assert grains(store) == 0


def test_runs_are_deleted_and_what_others_need_stays(store: grainstore.Store, saver: GrainSaver) -> None:
    first = run(saver, config(), steps=2, run_id="one")
    second = run(saver, first[-1], steps=2, run_id="two")
    # The first step of the second run stored channel a anew; a third goes on with it.
    third = saver.put(second[-1], checkpoint(versions={"a": "1"}, a="a" * 10), {"run_id": "three"}, {})
    saver.delete_for_runs(["one", "two", "none"])
    assert ids(saver.list(config())) == ids([third])
    found = saver.get_tuple(third)
    assert found is not None and found.checkpoint["channel_values"] == {"a": "a" * 10}
    assert len(store.subject_report("langgraph-thread:thread")["addresses"]) == 2
    saver.delete_for_runs(["three"])
    assert grains(store) == 0


@pytest.mark.parametrize("done", range(0, 12))
def test_an_interrupted_call_is_finished_by_the_next(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    run(saver, config(), run_id="old", size=50_000)
    run(saver, config("other"), run_id="old", steps=1)
    newest = run(saver, config(), steps=1, run_id="new")
    erase, left = keep._erase, [done]

    def interrupted(store: grainstore.Store, address: str) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        erase(store, address)

    for call in (lambda: saver.delete_for_runs(["old"]), lambda: saver.prune(["thread"])):
        left[0] = done // 2
        monkeypatch.setattr(keep, "_erase", interrupted)
        with pytest.raises(KeyboardInterrupt):
            call()
        monkeypatch.setattr(keep, "_erase", erase)
        for found in saver.list(None):
            assert set(found.checkpoint["channel_values"]) == {"a", "b"}
    saver.delete_for_runs(["old"])
    saver.delete_thread("other")
    assert ids(saver.list(None)) == ids(newest)
    # The head, its writes, its values.
    assert grains(store) == 3


@pytest.mark.parametrize("early", [{"early": time.time_ns() // 1_000_000}, {}])
def test_values_without_a_checkpoint_are_pruned_but_those_of_one_to_come(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch, early: dict[str, int]
) -> None:
    run(saver, config(), steps=1)
    before = grains(store)
    reference = {"uri": "data:application/octet-stream;base64,AAAA", "modality": "binary", "metadata": early}
    store.put(
        {
            "type": "state",
            "context": {},
            "namespace": "langgraph-checkpoints:values",
            "user_id": "langgraph-thread:thread",
            "content_refs": [reference],
        }
    )
    saver.prune(["thread"])
    assert grains(store) == before + len(early)
    monkeypatch.setattr(keep, "_PATIENCE_MS", -1)
    saver.prune(["thread"])
    assert grains(store) == before and saver.get_tuple(config()) is not None


def test_a_copy_stands_by_itself(store: grainstore.Store, saver: GrainSaver) -> None:
    for ns in ("", "child:1"):
        run(saver, config(ns=ns), steps=120 if ns == "" else 3, run_id="run")
    saver.copy_thread("thread", "copy")
    before = {ns: list(saver.list(config(ns=ns))) for ns in ("", "child:1")}
    saver.delete_thread("thread")
    for ns, originals in before.items():
        copies = list(saver.list(config("copy", ns)))
        assert ids(copies) == ids(originals) and len(copies) == (120 if ns == "" else 3)
        for copy, original in zip(copies, originals, strict=True):
            assert copy.checkpoint == original.checkpoint and copy.metadata == original.metadata
            assert copy.pending_writes == original.pending_writes
    saver.copy_thread("copy", "copy")
    saver.copy_thread("copy", "thread")
    assert ids(saver.list(config("thread"))) == ids(before[""])
    goes_on = saver.put(ids_config(before[""][0], "thread"), checkpoint(versions={"a": "1"}, a="a" * 10), {}, {})
    found = saver.get_tuple(goes_on)
    assert found is not None and found.checkpoint["channel_values"] == {"a": "a" * 10}


def ids_config(found: Any, thread: str) -> Any:
    return config(thread, checkpoint_id=found.config["configurable"]["checkpoint_id"])


def test_a_session_that_is_not_the_operators_is_told(store: grainstore.Store) -> None:
    for session in (store.session(namespace="acme"), store.session(user_id="alice")):
        with pytest.raises(grainstore.AccessError):
            GrainSaver(session).put(config(), checkpoint(a=1), {}, {"a": "1"})


def test_a_preset_that_asks_for_a_basis_gets_one(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "gdpr", preset="gdpr") as store:
        with pytest.raises(grainstore.PolicyError):
            run(GrainSaver(store), config(), steps=1)
        saver = GrainSaver(store, processing_basis="contract")
        run(saver, config())
        saver.copy_thread("thread", "copy")
        saver.prune(["thread"])
        assert len(ids(saver.list(None))) == 5
        saver.delete_thread("thread")
        assert len(ids(saver.list(None))) == 4


def test_a_held_thread_stays(store: grainstore.Store, saver: GrainSaver) -> None:
    run(saver, config())
    (address, *_) = store.subject_report("langgraph-thread:thread")["addresses"]
    store.hold(address, "case 7")
    with pytest.raises(grainstore.InvalidationDeniedError):
        saver.delete_thread("thread")
    assert len(ids(saver.list(config()))) == 4


def test_an_encrypted_store(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store", key=b"k" * 32) as store:
        saver = GrainSaver(store)
        run(saver, config("other"), run_id="one")
        last = run(saver, config(), steps=6)[-1]
        assert len(ids(saver.list(config(ns=None), limit=5))) == 5
        saver.copy_thread("thread", "copy")
        saver.prune(["thread"])
        assert ids(saver.list(config(ns=None))) == ids([last])
        saver.delete_thread("thread")
        assert saver.get_tuple(config()) is None and len(ids(saver.list(config("copy")))) == 6
        run(saver, config(), steps=1)
        assert len(ids(saver.list(config()))) == 1


def test_an_encrypted_store_is_asked_for_all_threads(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store", key=b"k" * 32, preset="gdpr") as store:
        saver = GrainSaver(store, processing_basis="contract")
        threads, stored = ("a", "b", "", "caf\u00e9"), []
        for thread in threads:
            stored += [(thread, one) for one in run(saver, config(thread), run_id=thread)]
        stored += [("b", one) for one in run(saver, config("b", "child:1"))]
        saver.copy_thread("a", "copy")
        saver.delete_thread("a")
        in_order = sorted(((ids([one])[0], thread) for thread, one in stored if thread != "a"), reverse=True)
        every = list(saver.list(None))
        assert [(id, thread) for id, thread in _places(every) if thread != "copy"] == in_order
        assert len(every) == len(in_order) + 4 and _places(every) == sorted(_places(every), reverse=True)
        assert _places(saver.list(None, limit=3)) == _places(every[:3])
        assert _places(saver.list(None, before=every[5].config, filter={"run_id": ""})) == [
            one for one in _places(every[6:]) if one[1] == ""
        ]
        saver.delete_for_runs(["a", "b"])
        assert {thread for _, thread in _places(saver.list(None))} == {"b", "", "caf\u00e9"}
        for thread in (*threads, "copy"):
            saver.delete_thread(thread)
        assert list(saver.list(None)) == []
        assert store.subject_report("langgraph-threads")["addresses"] == []


def test_a_thread_that_begins_anew_while_it_is_deleted_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with grainstore.open(tmp_path / "store", key=b"k" * 32) as store:
        saver = GrainSaver(store)
        run(saver, config(), steps=1)
        erase, entries_of = grainstore.Store.erase_user, keep.entries_of
        when = ["after it is erased", "after its entries are read"]

        def erased(self: grainstore.Store, *arguments: Any) -> Any:
            answer = erase(self, *arguments)
            if when[0].startswith("after it is"):
                run(saver, config(), steps=1)
            return answer

        def read(self: grainstore.Store, thread: str) -> list[str]:
            entries = entries_of(self, thread)
            if when[0].startswith("after its"):
                run(saver, config(), steps=1)
            return entries

        monkeypatch.setattr(grainstore.Store, "erase_user", erased)
        monkeypatch.setattr(keep, "entries_of", read)
        for _ in range(2):
            saver.delete_thread("thread")
            assert len(list(saver.list(None))) == 1
            when.reverse()
        monkeypatch.undo()
        saver.delete_thread("thread")
        assert list(saver.list(None)) == [] and store.subject_report("langgraph-threads")["addresses"] == []


def _places(found: Any) -> list[tuple[str, str]]:
    return [(one.checkpoint["id"], one.config["configurable"]["thread_id"]) for one in found]


def test_values_that_are_missing_are_told(store: grainstore.Store, saver: GrainSaver) -> None:
    stored = run(saver, config(), steps=2)
    for found in list(store.query({"namespace": "langgraph-checkpoints:values"})):
        store.erase(found.address, "by hand")
    for where in (config(), stored[0]):
        with pytest.raises(grainstore.IntegrityError, match="values of a checkpoint are missing"):
            saver.get_tuple(where)
    assert ids(saver.list(config())) == []


def test_a_copy_is_not_made_of_a_thread_that_goes(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(saver, config())
    read = keep._records

    def late(store: grainstore.Store, thread: str) -> Any:
        found = list(read(store, thread))
        saver.delete_thread("thread")
        return found

    monkeypatch.setattr(keep, "_records", late)
    with pytest.raises(grainstore.NotFoundError, match="was deleted while it was copied"):
        saver.copy_thread("thread", "copy")
    assert list(saver.list(None)) == []


def test_writes_are_stored_beside_the_put_of_their_checkpoint(
    saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LangGraph does both at once: the put ends while the writes look for the checkpoint.
    made, look = checkpoint(a="value"), saver._stored

    def looks(place: Place, checkpoint_id: str) -> Any:
        found = look(place, checkpoint_id)
        saver.put(config(), made, {}, made["channel_versions"])
        return found

    monkeypatch.setattr(saver, "_stored", looks)
    saver.put_writes(config(checkpoint_id=made["id"]), [("a", 1)], "task")
    found = saver.get_tuple(config())
    assert found is not None and found.pending_writes == [("task", "a", 1)]


def test_a_thread_begins_anew_in_the_millisecond_after_its_deletion(saver: GrainSaver) -> None:
    for _ in range(60):
        run(saver, config(), steps=1)
        saver.delete_thread("thread")
        made = checkpoint(a="anew")
        # Beside the put of the checkpoint, and before it.
        saver.put_writes(config(checkpoint_id=made["id"]), [("a", 1)], "task")
        saver.put(config(), made, {}, made["channel_versions"])


def test_writes_that_come_while_a_run_is_deleted_go_with_it(
    store: grainstore.Store, saver: GrainSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = run(saver, config(), steps=2, run_id="r")
    erase_all = keep._erase_all

    def late(of: grainstore.Store, addresses: Any) -> None:
        monkeypatch.setattr(keep, "_erase_all", erase_all)
        saver.put_writes(stored[0], [("a", "late")], "another task")
        erase_all(of, addresses)

    monkeypatch.setattr(keep, "_erase_all", late)
    saver.delete_for_runs(["r"])
    assert grains(store) == 0
