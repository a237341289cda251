"""What another writer does at the worst moment: just before a certain write of a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp

import grainstore
from grainstore.langgraph import GrainStore, _store_items, _store_values

N = ("n",)
LONG = {"text": "x" * 2_500}

Before = Callable[[str, str, Callable[[], object]], list[str]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[grainstore.Store]:
    with grainstore.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def mine(store: grainstore.Store) -> GrainStore:
    return GrainStore(store)


@pytest.fixture
def other(store: grainstore.Store) -> GrainStore:
    return GrainStore(store)


@pytest.fixture
def before(store: grainstore.Store, monkeypatch: pytest.MonkeyPatch) -> Before:
    """Runs an action once, just before a method is called with a grain of a relation. Returns what was run."""
    monkeypatch.setattr(_store_values, "PART_CHARACTERS", 1000)
    do: Any = grainstore.Store._do  # type: ignore[attr-defined]

    def hook(method: str, relation: str, action: Callable[[], object]) -> list[str]:
        done: list[str] = []

        def hooked(self: grainstore.Store, called: str, params: Any, *args: Any, **kwargs: Any) -> Any:
            if not done and called == method and not params.get("dry_run") and of(params) == relation:
                done.append(method)
                action()
            return do(self, called, params, *args, **kwargs)

        def of(params: Any) -> Any:
            grain = params.get("grain") or do(store, "get", {"address": params["address"]})["grain"]
            return grain["relation"]

        monkeypatch.setattr(grainstore.Store, "_do", hooked)
        return done

    return hook


def current(store: grainstore.Store, relation: str = "langgraphitem") -> list[str]:
    return [found["subject"] for found in store.query({"relation": relation})]


def value(memory: GrainStore, key: str = "k") -> Any:
    item = memory.get(N, key)
    return None if item is None else item.value


@pytest.mark.parametrize("existed", [True, False])
def test_a_delete_between_the_parts_and_the_item(
    store: grainstore.Store, mine: GrainStore, other: GrainStore, before: Before, existed: bool
) -> None:
    if existed:
        other.put(N, "k", {"old": 1})
    done = before("supersede" if existed else "put", "langgraphitem", lambda: other.delete(N, "k"))
    mine.put(N, "k", LONG)
    assert done and value(mine) == LONG
    assert mine.list_namespaces() == [N]
    mine.delete(N, "k")
    assert list(store.query({}, include_superseded=True)) == []


def test_a_delete_takes_the_lease_of_an_item_that_is_being_put(
    mine: GrainStore, other: GrainStore, before: Before
) -> None:
    done = before("put", "langgraphitem", lambda: other.delete(N, "k"))
    mine.put(N, "k", {"n": 1}, ttl=0)
    assert done and value(mine) == {"n": 1}
    assert mine.sweep_ttl() == 1


def test_two_first_puts_of_an_item(
    store: grainstore.Store, mine: GrainStore, other: GrainStore, before: Before
) -> None:
    done = before("put", "langgraphitem", lambda: other.put(N, "k", {"by": "other"}))
    mine.put(N, "k", LONG)
    assert done and value(mine) == LONG
    assert current(store) == ["k"]
    assert len(store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")) == 2
    assert len(current(store, "langgraphpart")) == 3


def test_two_puts_over_an_item(store: grainstore.Store, mine: GrainStore, other: GrainStore, before: Before) -> None:
    mine.put(N, "k", {"by": "first"})
    done = before("supersede", "langgraphitem", lambda: other.put(N, "k", {"by": "other"}))
    mine.put(N, "k", {"by": "mine"})
    assert done and value(mine) == {"by": "mine"}
    history = store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:n")
    assert [version["object"] for version in history] == ['{"by":"mine"}', '{"by":"other"}', '{"by":"first"}']


def test_the_last_item_goes_while_one_is_put(mine: GrainStore, other: GrainStore, before: Before) -> None:
    other.put(N, "last", {})
    done = before("put", "langgraphitem", lambda: other.delete(N, "last"))
    mine.put(N, "k", {"n": 1})
    assert done and mine.list_namespaces() == [N]
    assert [item.key for item in mine.search(N)] == ["k"]


@pytest.mark.parametrize("method", ["supersede", "erase"])
def test_an_item_is_put_while_its_namespace_is_left(
    store: grainstore.Store, mine: GrainStore, other: GrainStore, before: Before, method: str
) -> None:
    mine.put(N, "last", {})
    done = before(method, "langgraphspace", lambda: other.put(N, "k", {"n": 1}))
    mine.delete(N, "last")
    assert done and mine.list_namespaces() == [N]
    assert [item.key for item in mine.search(N)] == ["k"]
    mine.delete(N, "k")
    assert list(store.query({}, include_superseded=True)) == []


def test_an_item_is_put_while_it_is_swept(mine: GrainStore, other: GrainStore, before: Before) -> None:
    mine.put(N, "k", {"by": "mine"}, ttl=0)
    done = before("erase", "langgraphitem", lambda: other.put(N, "k", {"by": "other"}))
    assert mine.sweep_ttl() == 0
    assert done and value(mine) == {"by": "other"}
    assert mine.list_namespaces() == [N]


def test_an_item_is_put_while_it_is_deleted(mine: GrainStore, other: GrainStore, before: Before) -> None:
    """The put came before the end of the delete, which erases it too: what was put over is of the same item."""
    mine.put(N, "k", {"by": "mine"})
    done = before("erase", "langgraphitem", lambda: other.put(N, "k", {"by": "other"}))
    mine.delete(N, "k")
    assert done and value(mine) is None
    assert mine.list_namespaces() == []


def test_a_reader_sees_a_version_whole_or_not_at_all(mine: GrainStore, other: GrainStore, before: Before) -> None:
    mine.put(N, "k", LONG)
    seen: list[Any] = []
    done = before("erase", "langgraphpart", lambda: seen.append(value(other)))
    mine.delete(N, "k")
    assert done and seen == [LONG]
    mine.put(N, "k", LONG)
    done = before(
        "erase", "langgraphitem", lambda: seen.extend([value(other), other.search(N), other.list_namespaces()])
    )
    mine.delete(N, "k")
    assert done and seen[1:] == [None, [], []]


def test_an_item_whose_time_is_over_while_it_is_put_is_swept_later(
    mine: GrainStore, other: GrainStore, before: Before, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_lease, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        time.sleep(0.01)
        has_lease.set()
        assert goes_on.wait(30)

    before("put", "langgraphitem", wait)
    putting = threading.Thread(target=mine.put, args=(N, "k", {"n": 1}), kwargs={"ttl": 0})
    putting.start()
    assert has_lease.wait(30)
    items = other._opened()
    look = items._current

    def looked(*args: Any) -> Any:
        found = look(*args)
        goes_on.set()
        putting.join()
        return found

    monkeypatch.setattr(items, "_current", looked)
    assert other.sweep_ttl() == 0
    assert mine.get(N, "k", refresh_ttl=False) is not None
    assert mine.sweep_ttl() == 1


@pytest.mark.parametrize("action", ["delete", "put", "sweep"])
def test_a_get_that_renews_an_item_that_goes_leaves_no_lease(
    store: grainstore.Store, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    mine = GrainStore(store)
    mine.put(N, "k", {"n": 1}, ttl=0.001 if action == "sweep" else 100)
    clock = _store_items.now_us
    monkeypatch.setattr(_store_items, "now_us", lambda: clock() + 3_600_000_000)
    renew = _store_items.Items.renew

    def late(self: _store_items.Items, versions: Any) -> None:
        monkeypatch.setattr(_store_items.Items, "renew", renew)
        found = list(versions)
        {"delete": lambda: mine.delete(N, "k"), "put": lambda: mine.put(N, "k", {}), "sweep": mine.sweep_ttl}[action]()
        renew(self, found)

    monkeypatch.setattr(_store_items.Items, "renew", late)
    assert mine.batch([GetOp(N, "k")])[0] is not None
    assert current(store, "langgraphlease") == []


@pytest.mark.parametrize("action", ["delete", "sweep"])
def test_a_get_that_renews_an_item_while_it_is_erased_leaves_no_lease(
    store: grainstore.Store,
    mine: GrainStore,
    other: GrainStore,
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    mine.put(N, "k", {"n": 1}, ttl=0.001 if action == "sweep" else 100)
    clock = _store_items.now_us
    monkeypatch.setattr(_store_items, "now_us", lambda: clock() + 3_600_000_000)
    done = before("erase", "langgraphitem", lambda: other.get(N, "k"))
    if action == "sweep":
        mine.sweep_ttl()
    else:
        mine.delete(N, "k")
    assert done and list(store.query({}, include_superseded=True)) == []


def test_a_batch_with_a_delete_of_the_last_item_and_a_put_keeps_its_namespace(mine: GrainStore) -> None:
    mine.put(N, "a", {})
    mine.batch([PutOp(N, "a", None), PutOp(N, "b", {})])
    assert mine.list_namespaces() == [N]
    assert [item.key for item in mine.search(())] == ["b"]
