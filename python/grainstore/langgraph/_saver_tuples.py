"""Checkpoints as LangGraph has them, from grains and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._store import Store
from ._saver_keys import Place, id_of, place_of, text
from ._saver_log import Step, step_of
from ._saver_records import Channel, Head, Write, channels_bytes, channels_of, version_text
from ._saver_values import Kept, Library, Packing

# Bytes of values that are read at once for several checkpoints.
_PREPARED_BYTES = 4 * 1024 * 1024


def config_of(place: Place, checkpoint_id: str, thread: object = None) -> RunnableConfig:
    """The config of a checkpoint, with the thread id as it was given."""
    return {
        "configurable": {
            "thread_id": place.thread if thread is None else thread,
            "checkpoint_ns": place.ns,
            "checkpoint_id": checkpoint_id,
        }
    }


class Reader:
    """Makes tuples of steps. Raises ``Gone`` where a step was erased meanwhile."""

    def __init__(self, store: Store, serde: SerializerProtocol) -> None:
        self._library = Library(store)
        self._serde = serde

    def metadata(self, head: Head) -> dict[str, Any]:
        """The metadata of a checkpoint."""
        return dict(self._value(head.metadata))

    def channels(self, head: Head) -> dict[str, Channel]:
        """The channels of a checkpoint."""
        self._library.fetch([head.channels])
        return channels_of(self._library.bytes_of(head.channels))

    def prepare(self, steps: Sequence[Step]) -> None:
        """Reads at once what the tuples of these need, of so many of them as are small together."""
        found: list[Kept] = []
        size = 0
        for step in steps:
            more = self._all_kept(step)
            size += sum(sheet.size for kept in more for sheet in kept.sheets())
            if size > _PREPARED_BYTES:
                break
            found += more
        self._library.fetch(found)

    def _all_kept(self, step: Step) -> list[Kept]:
        values = (channel.value for channel in self.channels(step.head).values())
        written = (write.value for _, write in step.writes())
        return [*step.head.kept(), *(value for value in values if value is not None), *written]

    def tuple_of(self, step: Step, thread: object = None) -> CheckpointTuple:
        """A checkpoint with all that belongs to it."""
        head, channels, writes = step.head, self.channels(step.head), step.writes()
        values = {name: channel.value for name, channel in channels.items() if channel.value is not None}
        self._library.fetch(self._all_kept(step))
        checkpoint: Checkpoint = self._loaded(head.checkpoint)
        checkpoint["channel_values"] = {name: self._loaded(value) for name, value in values.items()}
        return CheckpointTuple(
            config=config_of(head.place, head.id, thread),
            checkpoint=checkpoint,
            metadata=self._loaded(head.metadata),
            parent_config=config_of(head.place, head.parent, thread) if head.parent else None,
            pending_writes=[(call.task, write.channel, self._loaded(write.value)) for call, write in writes],
        )

    def history(self, ancestors: Iterable[Step], channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """What ancestors, the nearest first, tell of channels: their writes, oldest first, and where they begin."""
        written: dict[str, list[PendingWrite]] = {name: [] for name in channels}
        seeds: dict[str, Any] = {}
        for step in ancestors:
            wanted = [name for name in written if name not in seeds]
            for call, write in reversed(step.writes()):
                if write.channel in wanted:
                    written[write.channel].append((call.task, write.channel, self._value(write.value)))
            stored = self.channels(step.head)
            for name in wanted:
                if name in stored and (value := stored[name].value) is not None:
                    seeds[name] = self._value(value)
            if len(seeds) == len(written):
                break
        return {name: _history(writes, seeds, name) for name, writes in written.items()}

    def _value(self, kept: Kept) -> Any:
        self._library.fetch([kept])
        return self._loaded(kept)

    def _loaded(self, kept: Kept) -> Any:
        return self._serde.loads_typed((kept.tag, self._library.bytes_of(kept)))


def _history(writes: list[PendingWrite], seeds: Mapping[str, Any], name: str) -> DeltaChannelHistory:
    history: DeltaChannelHistory = {"writes": writes[::-1]}
    if name in seeds:
        history["seed"] = seeds[name]
    return history


def ancestors(store: Store, step: Step | None) -> Iterator[Step]:
    """The checkpoints that one goes on from, the nearest first."""
    seen: set[str] = set()
    while step is not None and step.head.parent and step.head.parent not in seen:
        seen.add(step.head.parent)
        step = step_of(store, step.head.place, step.head.parent)
        if step is not None:
            yield step


def head_of(
    packing: Packing,
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    before: Mapping[str, Channel],
    at: int,
) -> Head:
    """A checkpoint on its way into grains.

    ``metadata`` is all of it, ``before`` are the channels of the checkpoint that it goes on from.
    """
    rest: dict[str, Any] = dict(checkpoint)
    values: Mapping[str, Any] = rest.pop("channel_values", {})
    channels = _channels(packing, serde, rest.get("channel_versions", {}), values, new_versions, before)
    packing.seal()
    head = Head(
        place_of(config),
        text(checkpoint["id"], "the id of a checkpoint"),
        id_of(config),
        at,
        packing.inline(*serde.dumps_typed(rest)),
        packing.inline(*serde.dumps_typed(metadata)),
        packing.inline("json", channels_bytes(channels)),
        run_of(metadata),
    )
    packing.seal()
    return head


def run_of(metadata: CheckpointMetadata) -> str | None:
    """The run that made a checkpoint, by its metadata."""
    run_id = metadata.get("run_id")
    return text(run_id, "run_id") if isinstance(run_id, str) else None


def _channels(
    packing: Packing,
    serde: SerializerProtocol,
    versions: ChannelVersions,
    values: Mapping[str, Any],
    new_versions: ChannelVersions,
    before: Mapping[str, Channel],
) -> dict[str, Channel]:
    """The channels of a checkpoint: those of before that did not change, and new values of all others."""
    all_versions: dict[str, Any] = {**dict.fromkeys(values), **versions, **new_versions}
    channels: dict[str, Channel] = {}
    for name, number in all_versions.items():
        version = version_text(number)
        former = before.get(text(name, "the name of a channel"))
        stays = former is not None and former.version == version and name not in new_versions
        if former is not None and stays and (former.value is not None or name not in values):
            channels[name] = former
        else:
            value = packing.apart(*serde.dumps_typed(values[name])) if name in values else None
            channels[name] = Channel(version, value)
    return channels


def writes_of(packing: Packing, serde: SerializerProtocol, writes: Sequence[tuple[str, Any]]) -> list[Write]:
    """Pending writes on their way into grains; errors, interrupts and their like have an index of their own."""
    made = [
        Write(
            WRITES_IDX_MAP.get(channel, index),
            text(channel, "the name of a channel"),
            packing.inline(*serde.dumps_typed(value)),
        )
        for index, (channel, value) in enumerate(writes)
    ]
    packing.seal()
    return made
