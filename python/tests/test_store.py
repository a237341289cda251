"""What a store does for who calls it from Python."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path

import pytest

import grainstore
from grainstore import Belief, Event

UTC = datetime.timezone.utc


def prefers(drink: str, **more: object) -> Belief:
    return Belief("alice", "prefers", drink, confidence=0.9, **more)  # type: ignore[arg-type]


def test_a_grain_is_put_superseded_and_assembled(store: grainstore.Store) -> None:
    tea = store.put(prefers("tea", created_at="2026-01-15T10:00:00Z"))
    assert len(tea.address) == 64 and not tea.duplicate
    again = store.put(prefers("tea", created_at=datetime.datetime(2026, 1, 15, 10, tzinfo=UTC)))
    assert again.duplicate and again.address == tea.address
    coffee = store.supersede(tea, prefers("coffee"), reason="she said so")
    assert store.get(tea).state.superseded_by == coffee.address
    assert [version["object"] for version in store.history(tea)] == ["coffee", "tea"]
    context = store.assemble("what does alice drink", about="alice", budget=200)
    assert "prefers coffee" in context.text and "tea" not in str(context)
    assert 0 < (context.tokens or 0) <= 200


def test_what_was_read_is_edited_and_put_in_its_place_again_and_again(store: grainstore.Store) -> None:
    newest = store.put(prefers("drink 0"))
    for at in range(1, 5):
        read = store.get(newest)
        newest = store.supersede(read, {**read.grain, "object": f"drink {at}", "created_at": 1_800_000_000_000 + at})
    assert [version["object"] for version in store.history(newest)] == [f"drink {at}" for at in (4, 3, 2, 1, 0)]


def test_a_grain_is_a_dataclass_or_a_dict(store: grainstore.Store) -> None:
    as_dict = {"type": "event", "content": "hello", "created_at": 1_768_471_200_000, "x_mood": ["good"]}
    address = store.put(as_dict).address
    typed = store.get(address).typed
    assert typed == Event("hello", created_at=1_768_471_200_000, more={"x_mood": ["good"]})
    assert store.put(typed).duplicate
    assert store.put(store.get(address).blob).duplicate
    with pytest.raises(ValueError, match="no type of grain of Belief"):
        Belief.from_dict(as_dict)


def test_a_grain_without_a_time_is_dated_now(store: grainstore.Store) -> None:
    before = datetime.datetime.now(UTC)
    at = store.get(store.put(Event("hello")))["created_at"]
    assert abs(at - before.timestamp() * 1000) < 60_000
    given = {"type": "event", "content": "left as it is"}
    store.put(given)
    assert "created_at" not in given


def test_a_batch_is_stored_as_a_whole(store: grainstore.Store) -> None:
    puts = store.put_many(Event(f"event {at}") for at in range(5))
    assert len({put.address for put in puts}) == 5
    with pytest.raises(grainstore.InvalidGrainError) as refused:
        store.put_many([Event("fine"), {"type": "belief", "subject": "a"}])
    assert refused.value.index == 1
    found = store.get_many([puts[0], "0" * 64])
    assert found[0] is not None and found[0]["content"] == "event 0" and found[1] is None
    assert store.stats()["grains"] == 5


def test_a_query_gives_all_pages(store: grainstore.Store) -> None:
    store.put_many(Event(f"note {at}", created_at=1_768_471_200_000 + at) for at in range(450))
    found = [found["content"] for found in store.query({"type": "event"}, sort="oldest")]
    assert found == [f"note {at}" for at in range(450)]
    assert len(list(store.query({"type": "event"}, limit=7))) == 7
    assert list(store.query({"type": "event"}, limit=0)) == []
    best = next(store.query(text="note 77"))
    assert best["content"] == "note 77" and 0 < best.score <= 1
    page = store.page({"type": "event"}, limit=2, explain=True)
    assert len(page.results) == 2 and page.next_cursor and page.plan


def test_cal_takes_parameters_and_writes_where_it_may(store: grainstore.Store) -> None:
    store.put(prefers("tea"))
    asked = store.cal("RECALL beliefs ABOUT $who", {"who": "alice"}, format="sml")
    assert "prefers tea" in asked["formatted"]
    add = 'ADD belief SET subject = "bob" SET relation = "likes" SET object = $what SET confidence = 0.5 REASON "r"'
    with pytest.raises(grainstore.CalError) as refused:
        store.cal(add, {"what": 'a "quoted" one'})
    assert refused.value.code == "CAL-E044"
    store.cal(add, {"what": 'a "quoted" one'}, evolve=True)
    latest = store.latest("bob", "likes")
    assert latest is not None and latest["object"] == 'a "quoted" one'
    with pytest.raises(grainstore.CalError) as wrong:
        store.cal("RECALL belives")
    assert wrong.value.position is not None and wrong.value.suggestion


def test_an_intent_may_hold_any_sign(store: grainstore.Store) -> None:
    store.put(prefers("tea"))
    for intent in ['say "tea"', "back\\slash", "line\nbreak", "-tea +x *", "ünï¢ode 🍵", "\x00"]:
        assert store.assemble(intent, about="alice", budget=100).text.startswith("<context")
    named = store.assemble("x", {"facts": "RECALL beliefs ABOUT $who"}, params={"who": "alice"}, budget=100)
    assert "prefers tea" in named.text and "facts" in named.sources
    with pytest.raises(TypeError):
        store.assemble()


def test_errors_are_of_the_kind_that_python_has(store: grainstore.Store) -> None:
    locked = store.put(prefers("rules", invalidation_policy={"mode": "locked"}))
    with pytest.raises(PermissionError) as denied:
        store.supersede(locked, prefers("none"))
    assert isinstance(denied.value, grainstore.InvalidationDeniedError)
    assert denied.value.code == "ERR_INVALIDATION_DENIED" and denied.value.hint
    with pytest.raises(LookupError):
        store.get("0" * 64)
    with pytest.raises(TypeError, match="adress"):
        store.call("get", {"adress": "x"})
    copied = pickle.loads(pickle.dumps(denied.value))
    assert (type(copied), copied.code, str(copied)) == (type(denied.value), denied.value.code, str(denied.value))


def test_sessions_see_what_is_theirs(store: grainstore.Store) -> None:
    mine = store.put(prefers("tea", user_id="alice"))
    bob = store.session(user_id="bob")
    assert not bob.exists(mine) and store.session(user_id="alice").exists(mine)
    with pytest.raises(grainstore.AccessError):
        bob.stats()


def test_a_session_goes_beyond_none_that_it_is_of(store: grainstore.Store) -> None:
    work = store.session(namespace="work", user_id="alice", actor="did:web:a.example")
    secret = store.put(Event("elsewhere", namespace="home"))
    for wider in (work.session(), work.session(namespace="work:today"), work.aio.session().sync, work.aio.sync):
        assert not wider.exists(secret)
        with pytest.raises(grainstore.AccessError):
            wider.stats()
    others = [{"namespace": "home"}, {"namespace": "workshop"}, {"user_id": "bob"}, {"actor": "did:web:b.example"}]
    for other in others:
        with pytest.raises(grainstore.AccessError, match="outside"):
            work.session(**other)


def test_a_person_is_erased(store: grainstore.Store) -> None:
    tea = store.put(prefers("tea", user_id="alice"))
    report = store.erase_user("alice", "she asked for it", now=True)
    assert report["counts"]["erased"] == 1 and report["scrubbed"]
    with pytest.raises(grainstore.ErasedError):
        store.get(tea)


def test_vectors_are_lists_or_arrays(store: grainstore.Store) -> None:
    numpy = pytest.importorskip("numpy")
    given = [numpy.array([0.9, 0.1], dtype=numpy.float32), memoryview(bytearray(8)).cast("f"), [0.1, 0.9], (1.0, 0.0)]
    given[1] = numpy.array([0.5, 0.5])
    for at, values in enumerate(given):
        store.put(Event(f"v{at}"), vectors={"model": "m", "values": values})
    nearest = next(store.query(vector={"model": "m", "values": numpy.array([0.1, 0.9])}))
    assert nearest["content"] == "v2"
    with pytest.raises(ValueError, match=r"vectors\[0\]\.values\[1\]: NaN"):
        store.put(Event("bad"), vectors={"model": "m", "values": [1.0, float("nan")]})
    with pytest.raises(grainstore.DimensionError):
        store.put(Event("bad"), vectors={"model": "m", "values": [1.0, 2.0, 3.0]})


def test_it_is_saved_backed_up_and_moved(store: grainstore.Store, tmp_path: Path) -> None:
    store.put(prefers("tea"))
    seen: list[tuple[int, int]] = []
    exported = store.export_grains(tmp_path / "all.mg", progress=lambda done, of: seen.append((done, of)))
    assert exported["exported"] == 1
    assert store.backup(tmp_path / "copy")["grains"] == 1
    with grainstore.open(tmp_path / "other") as other:
        assert other.created
        assert other.import_grains(tmp_path / "all.mg")["added"] == 1
    assert store.verify(full=True)["ok"] and store.doctor()["ok"]


def test_an_encrypted_store_takes_its_key(tmp_path: Path) -> None:
    path = tmp_path / "sealed"
    with grainstore.open(path, key=bytes(range(32))) as store:
        store.put(prefers("tea"))
    with pytest.raises(grainstore.KeyRequiredError):
        grainstore.open(path)
    with grainstore.open(path, key=bytes(range(32))) as store:
        assert store.stats()["encrypted"]
