"""The twin for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

import grainstore
from grainstore import AsyncStore, Belief, Event, Store


def run(path: Path, use: object) -> None:
    async def main() -> None:
        async with grainstore.aopen(path) as store:
            await use(store)  # type: ignore[operator]

    asyncio.run(main())


def test_both_have_the_same_methods() -> None:
    def methods(face: type) -> dict[str, object]:
        named = {name: getattr(face, name) for name in dir(face) if not name.startswith("_")}
        return {name: inspect.signature(one) for name, one in named.items() if callable(one)}

    assert methods(Store) == methods(AsyncStore)
    assert len(methods(Store)) > 50


def test_it_answers_what_is_awaited(tmp_path: Path) -> None:
    async def use(store: AsyncStore) -> None:
        tea = await store.put(Belief("alice", "prefers", "tea", confidence=0.9))
        await store.supersede(tea, Belief("alice", "prefers", "coffee", confidence=0.9))
        assert (await store.get(tea)).state.superseded_by
        found = [found["object"] async for found in store.query({"subject": "alice"})]
        assert found == ["coffee"]
        assert "coffee" in (await store.assemble("drink", about="alice")).text
        assert store.sync.exists(tea)
        with pytest.raises(grainstore.NotFoundError):
            await store.get("0" * 64)
        with pytest.raises(ValueError, match=r"grain\.content"):
            await store.put(Event("\ud800"))

    run(tmp_path / "store", use)


def test_many_tasks_at_once_on_bounded_threads(tmp_path: Path) -> None:
    async def use(store: AsyncStore) -> None:
        puts = await asyncio.gather(*(store.put(Event(f"event {at}")) for at in range(300)))
        assert len({put.address for put in puts}) == 300
        mine = [one for one in threading.enumerate() if one.name.startswith("grainstore_")]
        assert 0 < len(mine) <= 8

    run(tmp_path / "store", use)


def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    asked = threading.Event()
    answered = threading.Event()

    def embed(texts: list[str]) -> list[list[float]]:
        asked.set()
        assert answered.wait(60)
        return [[1.0, 0.0] for _ in texts]

    async def main() -> None:
        embedder = grainstore.Embedder(embed, "m", 2, timeout=60)
        async with grainstore.aopen(tmp_path / "store", embedder=embedder) as store:
            await store.put(Event("hello"))
            waiting = asyncio.create_task(store.wait_for_vectors(60))
            while not asked.is_set():
                await asyncio.sleep(0.01)
            assert not waiting.done()
            await store.put(Event("another"))
            answered.set()
            assert await waiting

    asyncio.run(main())


def test_a_task_that_is_cancelled_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    async def use(store: AsyncStore) -> None:
        for _ in range(20):
            task = asyncio.create_task(store.put_many(Event(f"e{at}") for at in range(200)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await store.put(Event("last"))
        assert (await store.verify(full=True))["ok"]
        assert (await store.stats())["grains"] % 200 == 1

    run(tmp_path / "store", use)


def test_one_store_on_two_loops(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store") as store:

        async def put(name: str) -> str:
            return (await store.aio.put(Event(name))).address

        addresses = [asyncio.run(put("one")), asyncio.run(put("two"))]
        threads = [threading.Thread(target=lambda name=name: asyncio.run(put(name))) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(addresses)) == 2 and store.stats()["grains"] == 5


def test_opening_fails_where_it_is_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(grainstore.NotFoundError):
            await grainstore.aopen(tmp_path / "none", create=False)
        store = await grainstore.aopen(tmp_path / "store")
        await store.close()
        with pytest.raises(grainstore.StoreIOError, match="closed"):
            await store.put(Event("x"))

    asyncio.run(main())
