"""Checkpoints and writes: what is stored is what is read, in the order of ids, whatever the names."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from saver_kit import checkpoint, config, ids

import grainstore
from grainstore.langgraph import GrainSaver, _saver
from grainstore.langgraph import _saver_log as log
from grainstore.langgraph import _saver_memory as memory
from grainstore.langgraph._saver_keys import STEPS, Place, order, task_run

ODD = ["a/b", "a%2Fb", "..", "ä☕", "a:b", "langgraph-checkpoints:steps", " ", "\x00", "x" * 3000, "*", "'\"\\", "%"]
# Signs that a store keeps in another form, or refuses.
FORMS = ["caf\u00e9", "cafe\u0301", "\ufeffcafe", "\u212b", "\u00c5", "A\u030a", "\u0378", "\u2028"]


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[GrainSaver]:
    with GrainSaver(tmp_path / "store") as saver:
        yield saver


def put(saver: GrainSaver, made: Any, parent: Any = None, new: Any = None, **metadata: Any) -> Any:
    where = config() if parent is None else parent
    return saver.put(where, made, metadata, made["channel_versions"] if new is None else new)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*ODD, *FORMS])
def test_any_text_names_a_thread_a_namespace_and_a_channel(saver: GrainSaver, name: str) -> None:
    made = checkpoint(**{name: name})
    stored = saver.put(config(name, name), made, {"source": "input"}, made["channel_versions"])
    saver.put_writes(stored, [(name, name)], name, name)
    found = saver.get_tuple(config(name, name))
    assert found is not None and found.checkpoint["channel_values"] == {name: name}
    assert found.pending_writes == [(name, name, name)]
    assert ids(saver.list(config(name, None))) == [made["id"]]
    for other in ODD:
        if other != name:
            assert saver.get_tuple(config(other, name)) is None
            assert saver.get_tuple(config(name, other)) is None
    saver.delete_thread(name)
    assert saver.get_tuple(config(name, name)) is None


def test_names_that_differ_in_their_form_alone_are_others(saver: GrainSaver) -> None:
    places = [(thread, ns) for thread in FORMS for ns in FORMS[:3]]
    values = dict(zip(FORMS, range(len(FORMS)), strict=True))
    for thread, ns in places:
        for id in FORMS[:3]:
            made, metadata = checkpoint(id, **values), {"source": thread, "run_id": thread}
            stored = saver.put(config(thread, ns), made, metadata, made["channel_versions"])  # type: ignore[arg-type]
        for name in FORMS:
            saver.put_writes(stored, [(name, name), (ERROR, name)], name, name)
    for thread, ns in places:
        assert ids(saver.list(config(thread, ns))) == sorted(FORMS[:3], reverse=True)
        for id in FORMS[:3]:
            found = saver.get_tuple(config(thread, ns, id))
            assert found is not None and found.config == config(thread, ns, id)
            assert found.metadata["source"] == thread  # type: ignore[typeddict-item]
            assert found.checkpoint["channel_values"] == values
        found = saver.get_tuple(config(thread, ns, FORMS[2]))
        assert found is not None and found.pending_writes is not None
        assert [one[0] for one in found.pending_writes] == [name for name in sorted(FORMS) for _ in range(2)]
        assert {one[1] for one in found.pending_writes} == {ERROR, *FORMS}
    saver.delete_for_runs(FORMS[:1])
    saver.delete_thread(FORMS[2])
    saver.prune(FORMS[3:4])
    left = [one.config["configurable"]["thread_id"] for one in saver.list(None)]
    assert [left.count(thread) for thread in FORMS] == [0, 9, 0, 3, 9, 9, 9, 9]


def test_threads_and_namespaces_do_not_run_into_each_other(saver: GrainSaver) -> None:
    places = [("a/b", "c"), ("a", "b/c"), ("a/b/c", ""), ("", "a/b/c")]
    for place in places:
        saver.put(config(*place), checkpoint(at=place), {}, {"at": "1"})
    for place in places:
        found = saver.get_tuple(config(*place))
        assert found is not None and tuple(found.checkpoint["channel_values"]["at"]) == place


@pytest.mark.parametrize("where", ["thread_id", "checkpoint_ns", "checkpoint_id", "channel", "task", "id", "run"])
def test_half_a_surrogate_pair_is_told(saver: GrainSaver, where: str) -> None:
    bad = "x\ud800"
    configurable: dict[str, Any] = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}
    if where in configurable:
        configurable[where] = bad
    made = checkpoint(id=bad if where == "id" else "c2", **{bad if where == "channel" else "k": 1})
    metadata: Any = {"run_id": bad if where == "run" else "r"}
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        saver.put({"configurable": configurable}, made, metadata, made["channel_versions"])
        saver.put_writes({"configurable": configurable}, [("k", 1)], bad)
    if where in ("thread_id", "checkpoint_ns", "checkpoint_id"):
        with pytest.raises(ValueError, match=f"{where} has half of a surrogate pair"):
            saver.get_tuple({"configurable": configurable})
    assert where == "task" or list(saver.list(None)) == []


def test_configs_that_say_nothing_are_told(saver: GrainSaver) -> None:
    for bad in ({}, {"configurable": {}}, {"configurable": {"checkpoint_id": "1"}}, {"configurable": None}):
        with pytest.raises(ValueError, match="a config needs its thread"):
            saver.get_tuple(bad)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a config needs its thread"):
            saver.put(bad, checkpoint(), {}, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="thread_id is a text, not list"):
        saver.get_tuple(config([]))
    with pytest.raises(ValueError, match="checkpoint_id"):
        saver.put_writes(config(), [("a", 1)], "task")
    with pytest.raises(ValueError, match="'keep_latest' or 'delete', not 'all'"):
        saver.prune(["t"], strategy="all")
    with pytest.raises(TypeError, match="a Store, an AsyncStore or a path, not int"):
        GrainSaver(3)  # type: ignore[arg-type]


def test_numbers_and_uuids_name_threads_too(saver: GrainSaver) -> None:
    one = uuid.uuid4()
    for thread in (7, one):
        saver.put(config(thread), checkpoint(a=1), {}, {"a": "1"})
        found = saver.get_tuple(config(str(thread)))
        assert found is not None and found.config["configurable"]["thread_id"] == str(thread)
    saver.delete_thread(7)  # type: ignore[arg-type]
    assert saver.get_tuple(config(7)) is None and saver.get_tuple(config(one)) is not None


def test_the_newest_has_the_greatest_id_in_whatever_order_they_came(saver: GrainSaver) -> None:
    timed = [str(uuid6()) for _ in range(20)]
    named = ["1", "10", "2", "a", "checkpoint-1", "checkpoint-10", "checkpoint-2", "1f", "zz"]
    for group in (timed, named):
        random.Random(1).shuffle(group)
    so_far: list[str] = []
    for id in [*timed[:10], *named, *timed[10:], str(uuid.uuid4())]:
        put(saver, checkpoint(id))
        so_far.append(id)
        found = saver.get_tuple(config())
        assert found is not None and found.checkpoint["id"] == max(so_far)
    ordered = sorted(so_far, reverse=True)
    assert ids(saver.list(config())) == ordered
    for at, id in enumerate(ordered):
        found = saver.get_tuple(config(checkpoint_id=id))
        assert found is not None and found.checkpoint["id"] == id
        assert ids(saver.list(config(), before=config(checkpoint_id=id))) == ordered[at + 1 :]
        assert ids(saver.list(config(checkpoint_id=id))) == [id]
        assert ids(saver.list(config(checkpoint_id=id, ns=None))) == [id]
    assert ids(saver.list(config(), limit=0)) == [] and ids(saver.list(config(), limit=3)) == ordered[:3]


def test_ids_of_one_millisecond_keep_their_order(saver: GrainSaver) -> None:
    made = [f"1f0c5a3d-8e6b-6{low:03x}-8001-{'0' * 12}" for low in range(0, 0xFFF, 64)]
    parent = None
    for id in made:
        parent = put(saver, checkpoint(id, a=id), parent)
        saver.put_writes(parent, [("a", id)], "task")
    assert ids(saver.list(config())) == made[::-1]
    for id in made:
        found = saver.get_tuple(config(checkpoint_id=id))
        assert found is not None and found.pending_writes == [("task", "a", id)]
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["id"] == made[-1]


def test_writes_may_come_before_their_checkpoint(saver: GrainSaver) -> None:
    first = put(saver, checkpoint())
    late = str(uuid6())
    saver.put_writes(config(checkpoint_id=late), [("a", 1)], "task")
    found = saver.get_tuple(config())
    assert found is not None and found.config == first
    put(saver, checkpoint(late), first)
    found = saver.get_tuple(config())
    assert found is not None and found.pending_writes == [("task", "a", 1)]


def test_a_write_stays_and_a_special_one_is_replaced(saver: GrainSaver) -> None:
    stored = put(saver, checkpoint())
    saver.put_writes(stored, [("a", 1), (ERROR, "first"), ("b", 2)], "task", "path")
    saver.put_writes(stored, [("a", 9), (ERROR, "second"), ("c", 3), ("d", 4)], "task", "path")
    saver.put_writes(stored, [(INTERRUPT, "wait"), (RESUME, "go")], "other", "aaaa")
    found = saver.get_tuple(stored)
    assert found is not None and found.pending_writes == [
        ("other", RESUME, "go"),
        ("other", INTERRUPT, "wait"),
        ("task", ERROR, "second"),
        ("task", "a", 1),
        ("task", "b", 2),
        ("task", "d", 4),
    ]


def test_the_last_of_several_counts_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, id = time.time_ns, str(uuid6())
    with grainstore.open(tmp_path) as store:
        for turn in range(4):
            # Each time another process, whose clock is behind that of the one before.
            monkeypatch.setattr(time, "time_ns", lambda back=turn * 60_000_000_000: now() - back)
            saver = GrainSaver(store)
            stored = put(saver, checkpoint(id, a=turn), step=turn)
            for task in ("s", "t", "u"):
                saver.put_writes(stored, [("a", turn), (RESUME, turn)], task)
        found = GrainSaver(store).get_tuple(config())
        assert found is not None and found.metadata["step"] == 3
        assert found.checkpoint["channel_values"] == {"a": 3}
        assert found.pending_writes == [one for task in "stu" for one in ((task, RESUME, 3), (task, "a", 0))]


def test_a_task_finds_its_writes_among_many(tmp_path: Path) -> None:
    with grainstore.open(tmp_path) as store:
        saver, id = GrainSaver(store), str(uuid6())
        for task in range(100):
            saver.put_writes(config(checkpoint_id=id), [("a", task)], f"task {task}")
        where: dict[str, Any] = {"user_id": "langgraph-thread:thread", "session_id": "thread/", "namespace": STEPS}
        where["run_id"] = task_run(Place("thread", ""), id, "task 7")
        where |= {"time_from": order(id), "time_to": order(id)}
        page = store.page(where, sort="newest", limit=4, explain=True)
        assert page.plan is not None and page.plan["scanned"] == len(page.results) == 1


def test_a_checkpoint_that_is_stored_again_is_replaced(saver: GrainSaver) -> None:
    id = str(uuid6())
    put(saver, checkpoint(id, a=1), step=1)
    put(saver, checkpoint(id, a=2), step=2)
    (found,) = saver.list(config())
    assert found.checkpoint["channel_values"] == {"a": 2} and found.metadata["step"] == 2


def test_values_are_stored_once_for_each_version(tmp_path: Path) -> None:
    with grainstore.open(tmp_path) as store:
        saver = GrainSaver(store)
        parent, sizes = None, []
        for step in range(30):
            made = checkpoint(versions={"big": "1", "step": f"{step}"}, big="x" * 100_000, step=step)
            new = made["channel_versions"] if step == 0 else {"step": f"{step}"}
            # Another saver knows nothing of what this one stored.
            parent = put(GrainSaver(store) if step % 3 == 0 else saver, made, parent, new)
            sizes.append(sum(len(found.grain["content_refs"][0]["uri"]) for found in store.query(VALUES)))
        assert sizes[0] > 100_000 and sizes[-1] < sizes[0] + 30 * 200
        for found in saver.list(config()):
            assert found.checkpoint["channel_values"]["big"] == "x" * 100_000
        found = saver.get_tuple(config())
        assert found is not None and found.checkpoint["channel_values"]["step"] == 29


VALUES = {"namespace": "langgraph-checkpoints:values"}


def test_values_that_are_not_new_are_stored_where_nothing_has_them(saver: GrainSaver) -> None:
    put(saver, checkpoint(versions={"a": 3}, a="kept"), new={})
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == {"a": "kept"}


def test_versions_of_other_types_are_other_versions(saver: GrainSaver) -> None:
    parent = put(saver, checkpoint(versions={"a": 1}, a="int"))
    parent = put(saver, checkpoint(versions={"a": 1.0}, a="float"), parent, {})
    put(saver, checkpoint(versions={"a": "1"}, a="text"), parent, {})
    assert [one.checkpoint["channel_values"]["a"] for one in saver.list(config())] == ["text", "float", "int"]


@pytest.mark.parametrize("size", [0, 1, 640 * 1024, 640 * 1024 + 1, 3 * 1024 * 1024])
def test_values_of_any_size(saver: GrainSaver, size: int) -> None:
    data = random.Random(size).randbytes(size)
    stored = put(saver, checkpoint(big=data, small="s"), note=data.hex()[:100_000])
    saver.put_writes(stored, [("big", data), ("small", 1)], "task")
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == {"big": data, "small": "s"}
    assert found.pending_writes == [("task", "big", data), ("task", "small", 1)]
    assert found.metadata["note"] == data.hex()[:100_000]  # type: ignore[typeddict-item]
    saver.copy_thread("thread", "copy")
    copy = saver.get_tuple(config("copy"))
    assert copy is not None and copy.checkpoint == found.checkpoint and copy.pending_writes == found.pending_writes


def test_forty_mebibytes_at_once(saver: GrainSaver) -> None:
    values = {f"c{at}": bytes([at]) * (8 * 1024 * 1024) for at in range(5)}
    put(saver, checkpoint(**values))
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == values


def test_many_channels_and_writes(saver: GrainSaver) -> None:
    values = {f"channel {at}": at for at in range(10_000)}
    stored = put(saver, checkpoint(**values))
    saver.put_writes(stored, list(values.items()), "task")
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == values
    assert found.pending_writes is not None and [one[1:] for one in found.pending_writes] == list(values.items())
    put(saver, checkpoint(**{**values, "more": 1}), stored, {"more": "1"})
    found = saver.get_tuple(config())
    assert found is not None and found.checkpoint["channel_values"] == {**values, "more": 1}


def test_an_encrypting_serializer(tmp_path: Path) -> None:
    pytest.importorskip("Crypto", reason="pycryptodome is not installed")
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0" * 32)
    with GrainSaver(tmp_path, serde=serde) as saver:
        put(saver, checkpoint(a="secret"))
        found = saver.get_tuple(config())
        assert found is not None and found.checkpoint["channel_values"] == {"a": "secret"}
    assert not any(b"secret" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_nothing_of_it_is_found_by_words_or_embedded(tmp_path: Path) -> None:
    texts: list[str] = []

    def embed(some: Sequence[str]) -> list[list[float]]:
        texts.extend(some)
        return [[1.0, 0.0] for _ in some]

    with grainstore.open(tmp_path, embedder=grainstore.Embedder(embed, "model", 2)) as store:
        saver = GrainSaver(store)
        stored = saver.put(config("giraffe", "giraffe"), checkpoint(giraffe="giraffe"), {"source": "input"}, {})
        saver.put_writes(stored, [("giraffe", "giraffe")], "giraffe", "giraffe")
        store.put({"type": "event", "content": "a giraffe"})
        assert store.wait_for_vectors()
        assert texts == ["a giraffe"]
        assert [found["content"] for found in store.query(text="giraffe")] == ["a giraffe"]


def test_it_does_what_the_saver_in_memory_does(saver: GrainSaver) -> None:
    """Random calls, and after each the same answers."""
    dice, other = random.Random(5), InMemorySaver()
    stored: list[Any] = []

    def both(name: str, *arguments: Any) -> Any:
        mine, theirs = (getattr(one, name)(*arguments) for one in (saver, other))
        assert mine == theirs
        return mine

    for _ in range(150):
        thread, ns = dice.choice("ab"), dice.choice(["", "child:1"])
        branch = [one for one in stored if one["configurable"]["thread_id"] == thread]
        branch = [one for one in branch if one["configurable"]["checkpoint_ns"] == ns]
        act = dice.random()
        if act < 0.5 or not branch:
            parent = dice.choice(branch[-3:]) if branch and dice.random() < 0.9 else config(thread, ns)
            stored.append(_put_next(both, saver, other, parent, dice))
        elif act < 0.95:
            writes = [(dice.choice(["x", "y", ERROR, INTERRUPT]), dice.random()) for _ in range(dice.randrange(1, 4))]
            both("put_writes", dice.choice(branch), writes, dice.choice("st"), dice.choice(["", "p"]))
        else:
            both("delete_thread", thread)
            stored = [one for one in stored if one["configurable"]["thread_id"] != thread]
        _compare(saver, other, dice.choice(stored) if stored else config(thread, ns))
    for thread in "ab":
        for ns in ("", "child:1"):
            _compare(saver, other, config(thread, ns))


def _put_next(both: Any, saver: GrainSaver, other: Any, parent: Any, dice: random.Random) -> Any:
    before = other.get_tuple(parent) if "checkpoint_id" in parent["configurable"] else None
    values = dict(before.checkpoint["channel_values"]) if before else {}
    versions = dict(before.checkpoint["channel_versions"]) if before else {}
    new = {}
    for name in dice.sample("uvwxyz", dice.randrange(0, 4)):
        new[name] = versions[name] = saver.get_next_version(versions.get(name), None)
        values.pop(name, None)
        if dice.random() < 0.8:
            values[name] = {"n": dice.random()}
    made = checkpoint(versions=versions, **values)
    return both("put", parent, made, {"source": dice.choice(["loop", "input"]), "step": 1}, new)


def _compare(saver: GrainSaver, other: BaseCheckpointSaver[Any], where: Any) -> None:
    assert _plain(saver.get_tuple(where)) == _plain(other.get_tuple(where))
    of_place = config(where["configurable"]["thread_id"], where["configurable"]["checkpoint_ns"])
    assert _plain(saver.get_tuple(of_place)) == _plain(other.get_tuple(of_place))
    for filter in (None, {"source": "loop"}):
        mine, theirs = (list(one.list(of_place, filter=filter, before=where)) for one in (saver, other))
        assert list(map(_plain, mine)) == list(map(_plain, theirs))
    names = ["u", "x"]
    assert saver.get_delta_channel_history(config=where, channels=names) == other.get_delta_channel_history(
        config=where, channels=names
    )


def _plain(found: CheckpointTuple | None) -> Any:
    return None if found is None else found._asdict()


def test_what_a_later_version_has_stored_is_told(tmp_path: Path) -> None:
    with grainstore.open(tmp_path) as store:
        saver = GrainSaver(store)
        put(saver, checkpoint())
        (head,) = store.query({"namespace": "langgraph-checkpoints:steps"})
        (reference,) = head.grain["content_refs"]
        later = {**reference, "metadata": {**reference["metadata"], "v": 2}}
        store.put({**head.grain, "timestamp_ms": head.grain["timestamp_ms"] + 1, "content_refs": [later]})
        with pytest.raises(grainstore.StoreVersionError, match="a later version of grainstore"):
            saver.get_tuple(config())


def test_grains_of_others_beside_checkpoints_are_left_alone(tmp_path: Path) -> None:
    with grainstore.open(tmp_path) as store:
        saver = GrainSaver(store)
        stored = put(saver, checkpoint(a=1), a="b")
        namespace, user = "langgraph-checkpoints:steps", "langgraph-thread:thread"
        other = {"type": "event", "content": "a note", "namespace": namespace, "session_id": "thread/"}
        store.put({**other, "user_id": user, "timestamp_ms": 1 << 52})
        found = saver.get_tuple(config())
        assert found is not None and found.config == stored and ids(saver.list(None)) == ids([stored])
        assert ids(saver.list(config(), filter={"a": "b", "nothing": None})) == ids([stored])
        assert ids(saver.list(config(), filter={"a": "c"})) == []
        saver.prune(["thread"])
        assert [one["content"] for one in store.query({"type": "event"})] == ["a note"]


def test_a_checkpoint_that_is_in_use_is_remembered(saver: GrainSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_HEADS", 2)
    looked_for: list[str] = []
    step_of = log.step_of

    def counted(store: grainstore.Store, place: Place, checkpoint_id: str) -> Any:
        looked_for.append(checkpoint_id)
        return step_of(store, place, checkpoint_id)

    monkeypatch.setattr(_saver, "step_of", counted)
    used = put(saver, checkpoint())
    for other in range(5):
        saver.put(config(f"other {other}"), checkpoint(), {}, {})
        saver.put_writes(used, [("a", other)], f"task {other}")
    assert looked_for == []


def test_a_long_thread_is_read_by_its_lists(tmp_path: Path) -> None:
    """However long a thread is, its newest checkpoint and any other take as many grains."""
    with grainstore.open(tmp_path) as store:
        saver, stored = GrainSaver(store), [config()]
        for step in range(60):
            stored.append(put(saver, checkpoint(a=step), stored[-1], {"a": str(step)}))
            saver.put_writes(stored[-1], [("a", step)], "task")
        for where in ({}, {"time_to": order(ids(stored[30:31])[0])}):
            place = {"user_id": "langgraph-thread:thread", "session_id": "thread/"}
            page = store.page({**place, "namespace": STEPS, **where}, sort="newest", limit=4, explain=True)
            assert page.plan is not None and page.plan["scanned"] <= 5 and len(page.results) == 4
        calls: list[str] = []
        do = grainstore.Store._do

        def counted(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
            calls.append(method)
            return do(self, method, *arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grainstore.Store, "_do", counted)
            for where in (config(), stored[30]):
                calls.clear()
                assert GrainSaver(store).get_tuple(where) is not None
                assert calls == ["query", "get_batch"]
            calls.clear()
            put(saver, checkpoint(a=1, b=2), stored[-1], {"b": "1"})
            assert calls == ["query", "encode", "put_batch"]
            calls.clear()
            saver.put_writes(stored[-1], [("a", 1)], "task")
            assert calls == ["query", "put_batch"]
