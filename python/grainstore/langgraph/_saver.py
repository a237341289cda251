"""A checkpointer of LangGraph on a store: :class:`GrainSaver`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._errors import ErasedError
from .._store import AsyncStore, Store
from . import _saver_keep as keep
from ._saver_commit import Committed, Make, Missing, commit, deleted, missing
from ._saver_handle import Handle
from ._saver_keys import Place, configurable, id_of, order, place_of, text, thread_text
from ._saver_log import Step, descending, last_stored, last_written, newest, of_all, of_place, of_thread, step_of
from ._saver_memory import Memory
from ._saver_records import Channel, Clock, Head, Writes
from ._saver_tuples import Reader, ancestors, config_of, head_of, run_of, writes_of
from ._saver_values import Gone, Packing, settled

S = TypeVar("S", bound="GrainSaver")
T = TypeVar("T")

# Checkpoints of a list whose values are read at a time.
_LISTED_AT_ONCE = 16


class GrainSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph in a store (docs/langgraph-saver.md).

    ``store_or_path`` is a :class:`grainstore.Store`, a :class:`grainstore.AsyncStore`, or the path of a store, which
    is opened when it is first needed and closed by :meth:`close` or at the end of ``with``; a store that was given is
    left open. It has to be the operator's: without a namespace and a user. ``serde`` makes bytes of values, and
    ``processing_basis`` is the basis that all grains name, where the preset of the store asks for one.

    A ``put`` is on the disk when it returns. Methods and their twins for asyncio do the same; the latter run on the
    threads of the store, and never on the loop.

    >>> from langgraph.checkpoint.base import empty_checkpoint
    >>> with GrainSaver(tmp_path) as saver:
    ...     config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    ...     stored = saver.put(config, empty_checkpoint(), {"source": "input", "step": -1}, {})
    ...     saver.get_tuple(config).metadata["source"]
    'input'
    """

    def __init__(
        self,
        store_or_path: Store | AsyncStore | str | os.PathLike[str],
        *,
        serde: SerializerProtocol | None = None,
        processing_basis: str | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._handle = Handle(store_or_path)
        self._basis = processing_basis
        self._clock = Clock()
        self._memory = Memory()

    def __repr__(self) -> str:
        return f"<GrainSaver {self._handle.name}>"

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread and namespace; None where there is none.

        The newest is the one with the greatest id. Raises ``ValueError`` for a config without a thread.
        """
        place, checkpoint_id = place_of(config), id_of(config)
        thread = configurable(config)["thread_id"]

        def read() -> CheckpointTuple | None:
            step = self._step(place, checkpoint_id)
            found = None if step is None else self._reader().tuple_of(step, thread)
            if step is not None:
                self._memory.add(step.head)
            return found

        return settled(read)

    def _reader(self) -> Reader:
        return Reader(self._handle.store(), self.serde)

    def _step(self, place: Place, checkpoint_id: str | None) -> Step | None:
        store = self._handle.store()
        if checkpoint_id is None:
            return newest(store, place)
        return step_of(store, place, checkpoint_id)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the greatest id first: of a thread, of one of its namespaces, or of all threads (None).

        ``filter`` has values that the metadata must have, None for keys that it must not have; ``before`` names a
        checkpoint whose id all are below; ``limit`` is how many there are at most. They are read as they are asked for.
        """
        before_id = None if before is None else id_of(before)
        only = id_of(config) if config else None
        reader = self._reader()
        store = self._handle.store()
        found = descending(store, _where(config), before_id) if config else of_all(store, before_id)
        suiting = (
            step for step in found if (only is None or step.head.id == only) and _suits(reader, step.head, filter)
        )
        left = sys.maxsize if limit is None else max(limit, 0)
        while some := [*itertools.islice(suiting, min(left, _LISTED_AT_ONCE))]:
            left -= len(some)
            with contextlib.suppress(Gone):
                reader.prepare(some)
            for step in some:
                try:
                    one = reader.tuple_of(step, _thread_in(config))
                except Gone:
                    # It was deleted meanwhile.
                    continue
                yield one

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint tell of delta channels: their writes, oldest first, and a ``seed``."""
        if not channels:
            return {}
        place, checkpoint_id = place_of(config), id_of(config)

        def read() -> dict[str, DeltaChannelHistory]:
            step = self._step(place, checkpoint_id)
            return self._reader().history(ancestors(self._handle.store(), step), channels)

        return settled(read)

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint with the values of its channels, in one commit. Returns its config.

        The ``checkpoint_id`` of the config is that of the checkpoint it goes on from: channels with the version that
        they had there are not stored again. Raises :class:`grainstore.ErasedError` if that one was deleted, alone or
        with its thread.
        """
        place, parent_id = place_of(config), id_of(config)
        checkpoint_id = text(checkpoint["id"], "the id of a checkpoint")
        full = get_checkpoint_metadata(config, metadata)
        at = self._clock.stamp(last_stored(self._handle.store(), place, checkpoint_id))

        def store(after: Head | Missing | None) -> Head:
            before = self._channels(after) if parent_id is not None and isinstance(after, Head) else {}
            heads = []

            def make(packing: Packing) -> Sequence[Mapping[str, Any]]:
                heads.append(head_of(packing, self.serde, config, checkpoint, full, new_versions, before, at))
                return [heads[-1].fields()]

            (made,) = self._commit(place, make, after, run_of(full))
            return replace(heads[-1], address=made["address"], grain=made["grain"])

        # The first checkpoint of a subgraph goes on from that of the graph which called it.
        head = self._fenced(_calling(place, metadata) if parent_id is None else (place, parent_id), store)
        self._memory.add(head)
        return config_of(place, head.id, configurable(config)["thread_id"])

    def _channels(self, head: Head) -> dict[str, Channel]:
        try:
            return self._reader().channels(head)
        except Gone:
            # The checkpoint is gone as well, which the commit is told.
            return {}

    def _commit(self, place: Place, make: Make, after: Head | Missing | None, run_id: str | None = None) -> Committed:
        return commit(self._handle.store(), self._basis, place.thread, make, after, run_id)

    def _fenced(self, origin: tuple[Place, str] | None, store: Callable[[Head | Missing | None], T]) -> T:
        """Stores what goes on from a checkpoint, or belongs to it. It is looked for if this saver does not have it."""
        if origin is None:
            return store(None)
        # Asked before it is looked for: meanwhile a call beside this one may store it, and remember it.
        was_there = self._memory.has_known(*origin)
        known = self._memory.head(*origin)
        if known is None:
            found = self._stored(*origin)
            if found is None and was_there:
                raise deleted(*origin)
            return store(missing(*origin) if found is None else found)
        try:
            return store(known)
        except ErasedError:
            again = self._stored(*origin)
            if again is None:
                raise
            # It was stored again since, as by a copy of its thread.
            return store(again)

    def _stored(self, place: Place, checkpoint_id: str) -> Head | None:
        step = step_of(self._handle.store(), place, checkpoint_id)
        if step is None:
            return None
        self._memory.add(step.head)
        return step.head

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores pending writes of a task beside a checkpoint, all or none.

        A write that the task has with the same index already stays as it is; errors, interrupts and their like take
        the place of those before. Raises :class:`grainstore.ErasedError` if the checkpoint was deleted, alone or with
        its thread.
        """
        if not writes:
            return
        place, checkpoint_id = place_of(config), id_of(config)
        if checkpoint_id is None:
            raise ValueError("writes need the checkpoint that they belong to: configurable.checkpoint_id")
        task, path = text(task_id, "task_id"), text(task_path, "task_path")
        at = self._clock.stamp(last_written(self._handle.store(), place, checkpoint_id, task))

        def make(packing: Packing) -> Sequence[Mapping[str, Any]]:
            made = writes_of(packing, self.serde, writes)
            return [*Writes(place, checkpoint_id, task, path, at, made).grains()]

        self._fenced((place, checkpoint_id), lambda after: self._commit(place, make, after))

    # Whole threads

    def delete_thread(self, thread_id: str) -> None:
        """Erases a thread for good, with all its namespaces. Used again, the thread begins anew."""
        keep.delete(self._handle.store(), thread_text(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erases the checkpoints whose metadata has one of these run ids, with their writes."""
        keep.delete_runs(self._handle.store(), [text(one, "run_id") for one in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes of a thread to another, with values of its own."""
        source, target = thread_text(source_thread_id), thread_text(target_thread_id)
        if source != target:
            keep.copy(self._handle.store(), self._basis, source, target)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Erases checkpoints of threads: with ``keep_latest`` all but the newest of each namespace, ``delete`` all.

        Ancestors of the newest stay as long as one of its delta channels is made of their writes.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"a strategy of pruning is 'keep_latest' or 'delete', not {strategy!r}")
        for thread in [thread_text(one) for one in thread_ids]:
            if strategy == "delete":
                keep.delete(self._handle.store(), thread)
            else:
                keep.prune(self._handle.store(), self.serde, thread)

    # The same for asyncio

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As :meth:`get_tuple`."""
        return await self._handle.run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As :meth:`list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await self._handle.run(_following, found)) is not None:
            yield one

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As :meth:`get_delta_channel_history`."""
        return await self._handle.run(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As :meth:`put`. Of a task that is cancelled, the checkpoint may be stored all the same."""
        return await self._handle.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As :meth:`put_writes`."""
        await self._handle.run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As :meth:`delete_thread`."""
        await self._handle.run(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As :meth:`delete_for_runs`."""
        await self._handle.run(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As :meth:`copy_thread`."""
        await self._handle.run(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As :meth:`prune`."""
        await self._handle.run(lambda: self.prune(thread_ids, strategy=strategy))

    # Versions, and the store

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after ``current``: a number of 32 digits, and a random part, as savers of LangGraph have it."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    def close(self) -> None:
        """Closes the store that was opened at a path. A store that was given stays open."""
        self._handle.close()

    async def aclose(self) -> None:
        """As :meth:`close`."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self: S) -> S:
        self._handle.store()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self: S) -> S:
        await self._handle.run(self._handle.store)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _following(found: Iterator[CheckpointTuple]) -> CheckpointTuple | None:
    return next(found, None)


def _where(config: RunnableConfig) -> dict[str, Any]:
    """The condition for the checkpoints that a config of ``list`` means."""
    place, only = place_of(config), id_of(config)
    whole_thread = configurable(config).get("checkpoint_ns") is None
    where = of_thread(place.thread) if whole_thread else of_place(place)
    return where if only is None else {**where, "time_from": order(only), "time_to": order(only)}


def _calling(place: Place, metadata: CheckpointMetadata) -> tuple[Place, str] | None:
    """The checkpoint of the graph that called a subgraph, as the metadata has it."""
    parents: object = metadata.get("parents")
    every = parents.items() if isinstance(parents, Mapping) else ()
    found = [(ns, one) for ns, one in every if isinstance(ns, str) and isinstance(one, str) and one]
    if not found:
        return None
    # The one that called it has the longest namespace of all that it is in.
    ns, checkpoint_id = max(found, key=lambda one: len(one[0]))
    return Place(place.thread, text(ns, "a namespace in parents")), text(checkpoint_id, "an id in parents")


def _thread_in(config: RunnableConfig | None) -> object:
    return configurable(config)["thread_id"] if config else None


def _suits(reader: Reader, head: Head, filter: Mapping[str, Any] | None) -> bool:
    """True if the metadata of a checkpoint has the values of a filter; not if it was deleted meanwhile."""
    if not filter:
        return True
    try:
        metadata = reader.metadata(head)
    except Gone:
        return False
    return all(metadata.get(name) == value for name, value in filter.items())
