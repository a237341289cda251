"""Items that expire. The clock of the store is set by the tests."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp

import grainstore
from grainstore.langgraph import GrainStore, _store_items

MINUTE = 60_000_000
A = ("a",)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def move(self, minutes: float) -> None:
        self.now += round(minutes * MINUTE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_store_items, "now_us", clock)
    return clock


Opened = Callable[..., GrainStore]


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Opened]:
    """Opens the store with a configuration."""
    stores: list[GrainStore] = []

    def open(**config: Any) -> GrainStore:
        ttl: Any = config
        stores.append(GrainStore(tmp_path / "store", ttl=ttl))
        return stores[-1]

    yield open
    for store in stores:
        store.close()


def grains(store: GrainStore) -> list[grainstore.Found]:
    return list(store._opened().store.query({}, include_superseded=True))


def test_a_sweep_erases_what_has_expired(opened: Opened, clock: Clock) -> None:
    store = opened()
    store.put(A, "short", {"n": 1}, ttl=1)
    store.put(A, "short", {"n": 2}, ttl=1)
    store.put(A, "long", {"n": 1}, ttl=10)
    store.put(("b",), "ever", {"n": 1})
    store.put(("c",), "big", {"text": "x" * 300_000}, ttl=1)
    assert store.sweep_ttl() == 0
    clock.move(1)
    expired = store.search(A, refresh_ttl=False)
    assert [item.key for item in expired] == ["short", "long"]
    assert store.sweep_ttl() == 2
    assert [item.key for item in store.search(())] == ["long", "ever"]
    assert store.list_namespaces() == [("a",), ("b",)]
    assert {found["subject"] for found in grains(store)} == {"long", "ever", "namespace"}
    clock.move(100)
    assert store.sweep_ttl() == 1
    assert {found["subject"] for found in grains(store)} == {"ever", "namespace"}


def test_a_read_begins_the_time_anew(opened: Opened, clock: Clock) -> None:
    store = opened()
    store.put(A, "got", {}, ttl=2)
    store.put(A, "found", {"x": 1}, ttl=2)
    store.put(A, "neither", {}, ttl=2)
    for _ in range(5):
        clock.move(1.5)
        assert store.get(A, "got") is not None
        assert len(store.search(A, filter={"x": 1})) == 1
        store.sweep_ttl()
    assert [item.key for item in store.search(A, refresh_ttl=False)] == ["got", "found"]
    clock.move(1.99)
    assert store.sweep_ttl() == 0
    clock.move(0.01)
    assert store.sweep_ttl() == 2
    assert grains(store) == []


def test_a_read_may_leave_the_time_as_it_is(opened: Opened, clock: Clock) -> None:
    store = opened()
    store.put(A, "k", {}, ttl=2)
    clock.move(1)
    assert store.get(A, "k", refresh_ttl=False) is not None
    assert len(store.search(A, refresh_ttl=False)) == 1
    store.batch([GetOp(A, "k", refresh_ttl=False), SearchOp(A, refresh_ttl=False)])
    clock.move(1)
    assert store.sweep_ttl() == 1


def test_the_configuration_says_whether_reads_count(opened: Opened, clock: Clock) -> None:
    store = opened(refresh_on_read=False)
    for key in ("k", "asked"):
        store.put(A, key, {}, ttl=2)
    clock.move(1)
    store.get(A, "k")
    store.search(A)
    store.get(A, "asked", refresh_ttl=True)
    clock.move(1)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(A)] == ["asked"]


def test_the_default_of_the_configuration(opened: Opened, clock: Clock) -> None:
    store = opened(default_ttl=3)
    store.put(A, "default", {})
    store.put(A, "own", {}, ttl=1)
    store.put(A, "none", {}, ttl=None)
    clock.move(2)
    assert store.sweep_ttl() == 1
    clock.move(1)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(A)] == ["none"]


def test_expired_items_may_be_left_out(opened: Opened, clock: Clock) -> None:
    store = opened(omit_expired=True)
    store.put(A, "k", {"text": "tea"}, ttl=1)
    store.put(A, "other", {"text": "tea"}, ttl=2)
    store.put(("b",), "k", {}, ttl=1)
    clock.move(1)
    assert store.get(A, "k") is None
    assert [item.key for item in store.search(A)] == ["other"]
    assert [item.key for item in store.search(A, query="tea")] == ["other"]
    assert store.list_namespaces() == [("a",)]
    # A put in the place of what is expired begins anew: nothing of that is left.
    store.put(A, "k", {"text": "new"})
    item = store.get(A, "k")
    assert item is not None and item.created_at == item.updated_at
    texts = [found["object"] for found in grains(store) if found["subject"] == "k"]
    assert '{"text":"tea"}' not in texts
    assert store.sweep_ttl() == 1
    assert store.get(A, "k") is not None


def test_a_put_replaces_the_time_of_the_one_before(opened: Opened, clock: Clock) -> None:
    store = opened()
    store.put(A, "longer", {}, ttl=1)
    store.put(A, "longer", {}, ttl=5)
    store.put(A, "shorter", {}, ttl=5)
    clock.move(0.5)
    store.get(A, "shorter")
    store.put(A, "shorter", {}, ttl=1)
    store.put(A, "kept", {}, ttl=1)
    store.put(A, "kept", {})
    clock.move(1)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(A, refresh_ttl=False)] == ["longer", "kept"]
    clock.move(10)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(A)] == ["kept"]


@pytest.mark.parametrize("ttl", [float("nan"), float("inf"), "1", True, 1e30])
def test_a_time_that_is_none_is_refused(opened: Opened, ttl: Any) -> None:
    store = opened()
    with pytest.raises(ValueError, match="ttl is"):
        store.put(A, "k", {}, ttl=ttl)
    with pytest.raises(ValueError, match="ttl is"):
        GrainStore("nowhere", ttl={"default_ttl": ttl})
    assert store.search(A) == []


def test_a_time_that_is_over_at_once(opened: Opened) -> None:
    store = opened()
    store.put(A, "k", {}, ttl=0)
    store.put(A, "j", {}, ttl=-1)
    assert store.sweep_ttl() == 2
    assert grains(store) == []


def test_reading_all_the_time_keeps_one_lease_of_an_item(opened: Opened, clock: Clock) -> None:
    store = opened()
    store.put(A, "k", {}, ttl=1)
    for _ in range(300):
        clock.move(0.005)
        store.get(A, "k")
    leases = [found for found in grains(store) if found["relation"] == "langgraphlease"]
    assert len(leases) == 1
    assert store._opened().store.stats()["erased_grains"] < 160
    assert store.sweep_ttl() == 0


@pytest.mark.parametrize("seed", range(6))
def test_programs_expire_as_a_model_says(opened: Opened, clock: Clock, seed: int) -> None:
    """The model holds for each key when it ends and how long it is kept."""
    chance = random.Random(seed)
    store = opened(omit_expired=seed % 2 == 0, default_ttl=4)
    model: dict[str, tuple[int, int | None, int | None]] = {}
    for number in range(80):
        clock.move(chance.choice([0.1, 0.5, 1, 2]))
        key = chance.choice("abcd")
        gone = key not in model or (seed % 2 == 0 and _is_over(model[key], clock.now))
        action = chance.choice(["put", "put", "get", "get", "peek", "delete", "sweep"])
        if action == "put":
            ttl = chance.choice([None, 1, 3])
            store.put(A, key, {"number": number}, ttl=ttl)
            kept = None if ttl is None else ttl * MINUTE
            model[key] = (number, kept, None if kept is None else clock.now + kept)
        elif action == "delete":
            store.delete(A, key)
            model.pop(key, None)
        elif action == "sweep":
            over = [key for key, of in model.items() if _is_over(of, clock.now)]
            assert store.sweep_ttl() == len(over)
            for one in over:
                del model[one]
        else:
            item = store.get(A, key, refresh_ttl=action == "get")
            assert (None if item is None else item.value["number"]) == (None if gone else model[key][0])
            if not gone and action == "get" and model[key][1] is not None:
                number_put, kept, _ = model[key]
                assert kept is not None
                model[key] = (number_put, kept, clock.now + kept)


def _is_over(of: tuple[int, int | None, int | None], now: int) -> bool:
    return of[2] is not None and of[2] <= now


def test_the_sweeper_sweeps_and_stops(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store", ttl={"sweep_interval_minutes": 1}) as store:
        store.put(A, "k", {}, ttl=0)
        running = store.start_ttl_sweeper(0.001)
        while store.get(A, "k", refresh_ttl=False) is not None:
            pass
        again = store.start_ttl_sweeper()
        assert not running.done() and not again.done()
        assert store.stop_ttl_sweeper(10)
        running.result(10)
        again.result(10)
        assert store.stop_ttl_sweeper(10)
        cancelled = store.start_ttl_sweeper(0.001)
        assert cancelled.cancel()
        assert store._sweeper._thread is not None
        store._sweeper._thread.join(10)
        assert not store._sweeper._thread.is_alive()


@pytest.mark.parametrize("stop", ["cancel", "stop"])
def test_a_sweeper_that_is_stopping_is_followed_by_another(tmp_path: Path, stop: str) -> None:
    with GrainStore(tmp_path / "store", ttl={}) as store:
        sweep, begun, goes_on = store.sweep_ttl, threading.Event(), threading.Event()
        sweeping: list[int] = []

        def slow() -> int:
            begun.set()
            sweeping.append(len(sweeping))
            assert goes_on.wait(30)
            return sweep()

        store._sweeper._sweep = slow
        first = store.start_ttl_sweeper(0.0001)
        assert begun.wait(30)
        if stop == "cancel":
            assert first.cancel()
        else:
            assert not store.stop_ttl_sweeper(0)
        second = store.start_ttl_sweeper(0.0001)
        # The second one waits for the first: they do not sweep side by side.
        assert sweeping == [0]
        goes_on.set()
        store.put(A, "k", {}, ttl=0)
        ends = time.monotonic() + 30
        while store.get(A, "k", refresh_ttl=False) is not None and time.monotonic() < ends:
            time.sleep(0.01)
        assert not second.done() and store.get(A, "k") is None
        assert store.stop_ttl_sweeper(30)
        second.result(30)


def test_no_sweeper_is_started_once_it_is_closed(tmp_path: Path) -> None:
    store = GrainStore(tmp_path / "store", ttl={})
    store.put(A, "k", {})
    store.close()
    with pytest.raises(grainstore.StoreIOError, match="closed"):
        store.start_ttl_sweeper()


def test_a_sweep_that_fails_does_not_end_the_sweeper(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with GrainStore(tmp_path / "store", ttl={}) as store:
        store.put(A, "k", {}, ttl=0)
        sweep, failures = store.sweep_ttl, [OSError("the disk is away")]

        def sometimes() -> int:
            if failures:
                raise failures.pop()
            return sweep()

        store._sweeper._sweep = sometimes
        store.start_ttl_sweeper(0.001)
        while store.get(A, "k", refresh_ttl=False) is not None:
            pass
        store.stop_ttl_sweeper()
    assert "the disk is away" in caplog.text


def test_without_a_configuration_no_sweeper_runs(memory: GrainStore) -> None:
    done: Future[None] = memory.start_ttl_sweeper()
    assert done.done()
    assert memory.stop_ttl_sweeper()
    memory.batch([PutOp(A, "k", {}, ttl=0)])
    assert memory.sweep_ttl() == 1
