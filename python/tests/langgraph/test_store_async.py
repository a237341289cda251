"""GrainStore under asyncio: nothing happens on the loop but the embedding of an asynchronous embedder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp

import grainstore
from grainstore.langgraph import GrainStore, _store, _store_items

A = ("a",)


def waits_for_the_loop(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Lets a method of the items wait until the loop has gone on meanwhile. Returns what to call there."""
    went_on = threading.Event()
    method = getattr(_store_items.Items, name)

    def waiting(*args: Any, **kwargs: Any) -> Any:
        assert went_on.wait(30), "the loop stands"
        return method(*args, **kwargs)

    monkeypatch.setattr(_store_items.Items, name, waiting)
    return went_on.set


@pytest.mark.parametrize("name", ["get", "scan", "put", "delete", "sweep", "spaces"])
def test_the_loop_goes_on_while_the_store_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async def main() -> None:
        async with GrainStore(tmp_path / "store") as memory:
            await memory.aput(A, "k", {"n": 1})
            release = waits_for_the_loop(monkeypatch, name)
            calls: dict[str, Callable[[], Any]] = {
                "get": lambda: memory.aget(A, "k"),
                "scan": lambda: memory.asearch(A),
                "put": lambda: memory.aput(A, "j", {}),
                "delete": lambda: memory.adelete(A, "k"),
                "sweep": memory.asweep_ttl,
                "spaces": memory.alist_namespaces,
            }
            task = asyncio.ensure_future(calls[name]())
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.01, release)
            await asyncio.wait_for(task, 60)

    asyncio.run(main())


def test_a_blocking_embedder_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    went_on = threading.Event()

    def embed(texts: Any) -> list[list[float]]:
        assert went_on.wait(30), "the loop stands"
        return [[1.0, float(len(text))] for text in texts]

    async def main() -> None:
        async with GrainStore(tmp_path / "store", index={"dims": 2, "embed": embed}) as memory:
            put = asyncio.ensure_future(memory.aput(A, "k", {"n": 1}))
            asyncio.get_running_loop().call_later(0.01, went_on.set)
            await asyncio.wait_for(put, 60)
            assert (await memory.asearch(A, query="x"))[0].score is not None

    asyncio.run(main())


def test_the_loop_goes_on_while_the_store_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, went_on = threading.Event(), threading.Event()

    def opened(path: Any) -> grainstore.Store:
        begun.set()
        assert went_on.wait(30), "the loop stands"
        return grainstore.open(path)

    monkeypatch.setattr(_store, "open_store", opened)

    async def main() -> None:
        memory = GrainStore(tmp_path / "store")
        first = asyncio.ensure_future(memory.aput(A, "k", {}))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(memory.aput(A, "j", {}))
        await asyncio.sleep(0.01)
        went_on.set()
        await asyncio.gather(first, second)
        assert len(await memory.asearch(A)) == 2
        await memory.aclose()

    asyncio.run(main())


def test_a_store_that_is_closed_while_it_is_opened_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[grainstore.Store] = []

    async def main() -> None:
        memory, loop = GrainStore(tmp_path / "store"), asyncio.get_running_loop()
        begun, closes = asyncio.Event(), threading.Event()

        def opened(path: Any) -> grainstore.Store:
            loop.call_soon_threadsafe(begun.set)
            closes.wait(30)
            stores.append(grainstore.open(path))
            return stores[-1]

        monkeypatch.setattr(_store, "open_store", opened)
        put = asyncio.ensure_future(memory.aput(A, "k", {}))
        await begun.wait()
        closing = asyncio.ensure_future(memory.aclose())
        while not memory._closed:
            await asyncio.sleep(0.001)
        closes.set()
        with pytest.raises(grainstore.StoreIOError, match="closed"):
            await put
        await closing

    asyncio.run(main())
    assert [store.closed for store in stores] == [True]


def test_many_calls_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with GrainStore(tmp_path / "store") as memory:
            await asyncio.gather(*(memory.aput(A, f"k{at % 20}", {"at": at}) for at in range(100)))
            items = await asyncio.gather(*(memory.aget(A, f"k{at}") for at in range(20)))
            assert all(item is not None and item.value["at"] % 20 == at for at, item in enumerate(items))
            assert len(await memory.asearch(A, limit=100)) == 20
            assert await memory.alist_namespaces() == [A]
            await asyncio.gather(*(memory.adelete(A, f"k{at}") for at in range(20)))
            assert await memory.alist_namespaces() == []

    asyncio.run(main())


def test_a_task_that_is_cancelled_leaves_a_store_that_works(tmp_path: Path) -> None:
    async def main() -> None:
        async with GrainStore(tmp_path / "store") as memory:
            for _ in range(5):
                task = asyncio.ensure_future(memory.aput(A, "long", {"text": "x" * 400_000}))
                await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            item = await memory.aget(A, "long")
            assert item is None or item.value == {"text": "x" * 400_000}
            await memory.aput(A, "long", {"text": "short"})
            item = await memory.aget(A, "long")
            assert item is not None

    asyncio.run(main())


def test_synchronous_calls_work_from_any_thread_beside_a_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with GrainStore(tmp_path / "store") as memory:
            memory.put(A, "from the loop", {})
            await asyncio.to_thread(memory.put, A, "from a thread", {})
            assert len(await memory.asearch(A)) == 2

    asyncio.run(main())


def test_the_same_store_on_several_loops(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store") as memory:
        for at in range(3):
            asyncio.run(memory.aput(A, f"k{at}", {}))
        assert len(memory.search(A)) == 3


def test_an_async_store_that_is_given_stays_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with grainstore.aopen(tmp_path / "store") as store:
            async with GrainStore(store) as memory:
                await memory.abatch([PutOp(A, "k", {"n": 1})])
                results = await memory.abatch([GetOp(A, "k"), SearchOp(A)])
                assert results[0] == results[1][0] or results[0].value == results[1][0].value  # type: ignore
            with pytest.raises(grainstore.StoreIOError, match="closed"):
                await memory.aget(A, "k")
            assert not store.closed

    asyncio.run(main())
