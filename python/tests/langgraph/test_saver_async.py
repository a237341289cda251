"""The twins for asyncio, paths and stores, and what is closed when."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from saver_kit import checkpoint, config, ids

import grainstore
from grainstore.langgraph import GrainSaver

TWINS = ["get_tuple", "list", "put", "put_writes", "delete_thread", "delete_for_runs", "copy_thread", "prune"]


class Slow(JsonPlusSerializer):
    """A serializer that tells the thread that it runs on, and waits if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self.threads.add(threading.get_ident())
        self.begun.set()
        assert self.go_on.wait(60)
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.threads.add(threading.get_ident())
        return super().loads_typed(data)


def test_both_take_the_same() -> None:
    for name in [*TWINS, "get_delta_channel_history"]:
        mine, twin = (inspect.signature(getattr(GrainSaver, one)) for one in (name, f"a{name}"))
        assert list(mine.parameters) == list(twin.parameters)


@pytest.mark.parametrize("by", ["path", "store", "async store"])
def test_the_loop_is_never_blocked(tmp_path: Path, by: str) -> None:
    async def main() -> None:
        serde = Slow()
        store: Any = tmp_path / "store"
        if by == "store":
            store = grainstore.open(store)
        elif by == "async store":
            store = await grainstore.aopen(store)
        async with GrainSaver(store, serde=serde) as saver:
            serde.go_on.clear()
            task = asyncio.create_task(saver.aput(config(), checkpoint(a=1), {}, {"a": "1"}))
            while not serde.begun.is_set():
                await asyncio.sleep(0.01)
            # The loop is here while the serializer waits.
            serde.go_on.set()
            stored = await task
            await saver.aput_writes(stored, [("a", 2)], "task")
            found = await saver.aget_tuple(config())
            assert found is not None and found.pending_writes == [("task", "a", 2)]
            assert [one async for one in saver.alist(config())] == [found]
            assert [one async for one in saver.alist(None, limit=0)] == []
            await saver.acopy_thread("thread", "copy")
            await saver.aprune(["copy"])
            await saver.adelete_thread("thread")
            assert ids([one async for one in saver.alist(None)]) == [found.checkpoint["id"]]
            assert await saver.aget_delta_channel_history(config=config("copy"), channels=["a"]) == {
                "a": {"writes": []}
            }
        assert threading.get_ident() not in serde.threads
        if by == "store":
            store.close()
        elif by == "async store":
            await store.close()

    asyncio.run(main())


def test_a_cancelled_task_leaves_a_whole_checkpoint_or_none(tmp_path: Path) -> None:
    async def main() -> None:
        serde = Slow()
        async with GrainSaver(tmp_path / "store", serde=serde) as saver:
            for value in range(10):
                made = checkpoint(a=value)
                serde.begun.clear()
                serde.go_on.clear()
                task = asyncio.create_task(saver.aput(config(), made, {}, {"a": "1"}))
                while not serde.begun.is_set():
                    await asyncio.sleep(0.001)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await saver.aget_tuple(config(checkpoint_id=made["id"])) is None
                serde.go_on.set()
                # It had begun, so it is done all the same.
                while (found := await saver.aget_tuple(config(checkpoint_id=made["id"]))) is None:
                    await asyncio.sleep(0.01)
                assert found.checkpoint["channel_values"] == {"a": value}
            # Calls that were cancelled before they began are not done at all.
            waiting = [asyncio.create_task(saver.aput(config("never"), checkpoint(), {}, {})) for _ in range(50)]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert await saver.aget_tuple(config("never")) is None

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_list_that_is_left_early(tmp_path: Path) -> None:
    async def main() -> None:
        async with GrainSaver(tmp_path / "store") as saver:
            for _ in range(5):
                await saver.aput(config(), checkpoint(a=1), {}, {"a": "1"})
            async for _ in saver.alist(config()):
                break
            assert len([one async for one in saver.alist(config())]) == 5

    asyncio.run(main())


def test_a_store_that_was_given_stays_open_and_one_at_a_path_is_closed(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "given") as store:
        with GrainSaver(store) as saver:
            saver.put(config(), checkpoint(), {}, {})
        saver.close()
        assert not store.closed and saver.get_tuple(config()) is not None
    with pytest.raises(grainstore.StoreIOError, match="closed"):
        saver.get_tuple(config())
    with GrainSaver(str(tmp_path / "path")) as saver:
        saver.put(config(), checkpoint(), {}, {})
        clone = saver.with_allowlist([("tests", "Anything")])
    for closed in (saver, clone):
        with pytest.raises(grainstore.StoreIOError, match="the saver is closed"):
            closed.get_tuple(config())
    with pytest.raises(grainstore.StoreIOError, match="the saver is closed"):
        asyncio.run(saver.aget_tuple(config()))
    saver.close()
    # Nobody has it open: it opens for one process alone.
    grainstore.open(tmp_path / "path", exclusive=True).close()


def test_a_path_is_opened_when_it_is_needed(tmp_path: Path) -> None:
    saver = GrainSaver(tmp_path / "store")
    assert not (tmp_path / "store").exists() and "store" in repr(saver)
    assert asyncio.run(saver.aget_tuple(config())) is None
    saver.put(config(), checkpoint(), {}, {})
    asyncio.run(saver.aclose())
    with pytest.raises(grainstore.StoreIOError):
        saver.put(config(), checkpoint(), {}, {})


def test_a_value_that_cannot_be_stored_leaves_nothing(tmp_path: Path) -> None:
    with GrainSaver(tmp_path / "store") as saver:
        made = checkpoint(a=1, b=threading.Lock())
        with pytest.raises(TypeError):
            saver.put(config(), made, {}, {"a": "1", "b": "1"})
        stored = saver.put(config(), checkpoint(a=1), {}, {"a": "1"})
        with pytest.raises(TypeError):
            saver.put_writes(stored, [("a", 1), ("b", threading.Lock())], "task")
        found = saver.get_tuple(config())
        assert found is not None and found.pending_writes == []


def test_versions_go_up() -> None:
    saver = GrainSaver("nowhere")
    current: Any = None
    for _ in range(12):
        following = saver.get_next_version(current, None)
        assert current is None or following > current
        current = following
    assert saver.get_next_version(4, None).startswith("0" * 31 + "5.")  # type: ignore[arg-type]


def test_the_same_thread_at_once(tmp_path: Path) -> None:
    with GrainSaver(tmp_path / "store") as saver:
        first = saver.put(config(), checkpoint(a=1), {}, {"a": "1"})
        wrong: list[BaseException] = []

        def work(task: str) -> None:
            try:
                for step in range(5):
                    saver.put_writes(first, [("a", step)], f"{task} {step}")
                    saver.put(first, checkpoint(versions={"a": "1", "b": task}, a=1, b=step), {}, {"b": task})
                    assert saver.get_tuple(config()) is not None
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(f"task {at}",)) for at in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and len(list(saver.list(config()))) == 31
        found = saver.get_tuple(first)
        assert found is not None and len(found.pending_writes or ()) == 30
