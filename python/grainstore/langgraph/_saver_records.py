"""Checkpoints and pending writes as grains.

A checkpoint is one grain, its head, which names the values of its channels. The values lie in grains of their own
(``_saver_values``), stored once: the head of the next checkpoint names those that did not change. The writes of a call
of ``put_writes`` are one grain, or several where they are many.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._answers import Found
from .._errors import StoreVersionError
from ._saver_keys import STEPS, Place, name_of, order, task_run, text_of
from ._saver_values import Kept

_URI = "langgraph:"
# How checkpoints and writes lie in grains; it goes up when that changes.
_FORMAT = 1
# Bytes of the JSON of writes that one grain may have.
_WRITES_BYTES = 256 * 1024


class Clock:
    """Stamps, in microseconds since 1970, by which records are ordered. No two of a process are the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def stamp(self, after: int) -> int:
        """A stamp later than all before it, and than ``after``, wherever the clock of the system stands."""
        with self._lock:
            self._last = max(self._last + 1, after + 1, time.time_ns() // 1000)
            return self._last


def version_text(version: object) -> str:
    """What tells versions of a channel apart: 1, 1.0 and "1" are three."""
    return f"{type(version).__name__}:{version}"


@dataclass
class Head:
    """A checkpoint, without the values of its channels."""

    place: Place
    id: str
    parent: str | None
    at: int
    checkpoint: Kept
    metadata: Kept
    channels: Kept
    run_id: str | None = None
    address: str = ""
    grain: dict[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """The fields of its grain."""
        metadata = {
            **_named("checkpoint", self.place, self.id, self.at),
            "parent": None if self.parent is None else name_of(self.parent),
            "checkpoint": self.checkpoint.plain(),
            "metadata": self.metadata.plain(),
            "channels": self.channels.plain(),
        }
        run = {} if self.run_id is None else {"run_id": name_of(self.run_id)}
        return {**_step(self.place, self.id, metadata), **run}

    def kept(self) -> list[Kept]:
        """What it is made of, beside the values of channels."""
        return [self.checkpoint, self.metadata, self.channels]


@dataclass
class Write:
    """A pending write."""

    index: int
    channel: str
    value: Kept


@dataclass
class Writes:
    """The pending writes of a task, as one call stored them."""

    place: Place
    id: str
    task: str
    path: str
    at: int
    writes: list[Write]
    address: str = ""

    def grains(self) -> Iterator[dict[str, Any]]:
        """The fields of its grains."""
        for writes in _portions(self.writes):
            metadata = {
                **_named("writes", self.place, self.id, self.at),
                "task": name_of(self.task),
                "path": name_of(self.path),
                "writes": writes,
            }
            yield {**_step(self.place, self.id, metadata), "run_id": task_run(self.place, self.id, self.task)}


def _portions(writes: Sequence[Write]) -> Iterator[list[list[Any]]]:
    portion: list[list[Any]] = []
    room = _WRITES_BYTES
    for write in writes:
        plain = [write.index, name_of(write.channel), write.value.plain()]
        size = len(json.dumps(plain))
        if portion and size > room:
            yield portion
            portion, room = [], _WRITES_BYTES
        portion.append(plain)
        room -= size
    if portion:
        yield portion


def _named(kind: str, place: Place, checkpoint_id: str, at: int) -> dict[str, Any]:
    names = {"thread": name_of(place.thread), "ns": name_of(place.ns), "id": name_of(checkpoint_id)}
    return {"v": _FORMAT, "kind": kind, **names, "at": at}


def _place_in(plain: Mapping[str, Any]) -> tuple[Place, str]:
    """The place and the checkpoint that a grain names."""
    return Place(text_of(plain["thread"]), text_of(plain["ns"])), text_of(plain["id"])


def _step(place: Place, checkpoint_id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    reference = {"uri": _URI + metadata["kind"], "modality": "binary", "metadata": metadata}
    return {
        "namespace": STEPS,
        "session_id": place.session,
        "timestamp_ms": order(checkpoint_id),
        "content_refs": [reference],
    }


def parsed(found: Found) -> Head | Writes | None:
    """The checkpoint or the writes of a grain; None for a grain of somebody else.

    Raises ``StoreVersionError`` for one of a later version of this package.
    """
    references: list[dict[str, Any]] = found.grain.get("content_refs") or [{}]
    uri, plain = references[0].get("uri"), references[0].get("metadata", {})
    if uri not in (_URI + "checkpoint", _URI + "writes"):
        return None
    if plain["v"] > _FORMAT:
        thread = text_of(plain["thread"])
        message = f"a later version of grainstore has stored checkpoints of thread {thread!r}"
        raise StoreVersionError(message, code="ERR_STORE_VERSION", hint="use that version here, too")
    if uri == _URI + "checkpoint":
        return _head(found, plain)
    return _writes(found, plain)


def _head(found: Found, plain: Mapping[str, Any]) -> Head:
    parent, run_id = plain.get("parent"), found.grain.get("run_id")
    return Head(
        *_place_in(plain),
        None if parent is None else text_of(parent),
        plain["at"],
        Kept.of(plain["checkpoint"]),
        Kept.of(plain["metadata"]),
        Kept.of(plain["channels"]),
        None if run_id is None else text_of(run_id),
        found.address,
        found.grain,
    )


def _writes(found: Found, plain: Mapping[str, Any]) -> Writes:
    writes = [Write(index, text_of(channel), Kept.of(value)) for index, channel, value in plain["writes"]]
    task, path = text_of(plain["task"]), text_of(plain["path"])
    return Writes(*_place_in(plain), task, path, plain["at"], writes, found.address)


@dataclass
class Channel:
    """A channel of a checkpoint: its version, and its value, None where it has none."""

    version: str
    value: Kept | None


def channels_bytes(channels: Mapping[str, Channel]) -> bytes:
    """The channels of a checkpoint as JSON. Their values have their addresses by now."""
    plain = {
        name: [channel.version, None if channel.value is None else channel.value.plain()]
        for name, channel in channels.items()
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def channels_of(data: bytes) -> dict[str, Channel]:
    """The channels of a checkpoint, from JSON."""
    plain = json.loads(data)
    return {
        name: Channel(version, None if value is None else Kept.of(value)) for name, (version, value) in plain.items()
    }


def newest_heads(heads: Iterable[Head]) -> dict[tuple[Place, str], Head]:
    """Of heads of the same checkpoint, which was stored again, the last."""
    found: dict[tuple[Place, str], Head] = {}
    for head in heads:
        other = found.get((head.place, head.id))
        if other is None or (head.at, head.address) > (other.at, other.address):
            found[head.place, head.id] = head
    return found


def pending(calls: Iterable[Writes]) -> list[tuple[Writes, Write]]:
    """The writes that count, in the order in which a step applies them.

    A write with an index of its task is the first one that came; a special one (a negative index) the last.
    """
    first: dict[tuple[str, int], tuple[Writes, Write]] = {}
    for call in sorted(calls, key=lambda call: (call.at, call.address)):
        for write in call.writes:
            key = (call.task, write.index)
            if write.index < 0 or key not in first:
                first[key] = (call, write)
    return sorted(first.values(), key=lambda one: (one[0].path, one[0].task, one[1].index))
