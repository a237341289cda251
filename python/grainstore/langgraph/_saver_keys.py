"""Where the grains of a thread lie, and in which order: names, and the times that stand for ids of checkpoints."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

#: The namespace of checkpoints and pending writes, and that of the bytes of channels.
STEPS = "langgraph-checkpoints:steps"
VALUES = "langgraph-checkpoints:values"

# The latest time that a grain can be created at, in milliseconds.
_LATEST = 2**32 * 1000 - 1
#: Ids that are no time (not UUIDs of version 6) lie from here on, behind all times that a UUID of today can have.
NAMED = 1 << 52

# What a name has as it is: printed ASCII, without the percent sign, with which begins what is encoded.
_PLAIN = "".join(sign for sign in map(chr, range(0x20, 0x7F)) if sign != "%")
_UUID6 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# Units of 100 ns from the beginning of the Gregorian calendar to 1970.
_GREGORIAN = 0x01B21DD213814000


class Place(NamedTuple):
    """A thread, and one of its checkpoint namespaces: ``""`` is that of the graph itself."""

    thread: str
    ns: str

    @property
    def session(self) -> str:
        """The ``session_id`` of its grains. No thread or namespace can make that of another."""
        return f"{quote(self.thread, safe='')}/{quote(self.ns, safe='')}"


def name_of(text: str) -> str:
    """A text as grains name it: percent-encoded, where Grainstore would change or refuse it.

    Grainstore keeps text in the normal form C. Texts that differ in their form alone are other names in LangGraph.
    """
    return quote(text, safe=_PLAIN)


def text_of(name: str) -> str:
    """The text that a name in a grain stands for."""
    return unquote(name)


_OWNER = "langgraph-thread:"


def owner(thread: str) -> str:
    """The ``user_id`` of all grains of a thread, by which they are erased together."""
    return _OWNER + name_of(thread)


def thread_of(user_id: str) -> str:
    """The thread whose grains have this ``user_id``."""
    return text_of(user_id.removeprefix(_OWNER))


def text(value: object, what: str) -> str:
    """A text that can be stored. Raises ``TypeError`` for what is none, ``ValueError`` for half a surrogate pair."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a text, not {type(value).__qualname__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} has half of a surrogate pair, which no text has: {value!a}") from error
    return value


def thread_text(value: object) -> str:
    """A thread id as a text: numbers and UUIDs are taken for theirs."""
    if isinstance(value, (int, uuid.UUID)) and not isinstance(value, bool):
        return str(value)
    return text(value, "thread_id")


def configurable(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that says which checkpoint is meant. Raises ``ValueError`` without a thread id."""
    found = config.get("configurable")
    if not isinstance(found, Mapping) or found.get("thread_id") is None:
        raise ValueError('a config needs its thread: {"configurable": {"thread_id": "..."}}')
    return found


def place_of(config: Mapping[str, Any]) -> Place:
    """The thread and the namespace of a config."""
    found = configurable(config)
    return Place(thread_text(found["thread_id"]), text(found.get("checkpoint_ns") or "", "checkpoint_ns"))


def id_of(config: Mapping[str, Any]) -> str | None:
    """The checkpoint id of a config; None where it names none."""
    found = (config.get("configurable") or {}).get("checkpoint_id")
    return text(found, "checkpoint_id") if found else None


def moment(checkpoint_id: str) -> int | None:
    """The time in an id, in milliseconds since 1970, that a grain may have; None where it has none."""
    at = order(checkpoint_id)
    return at if at <= _LATEST else None


def task_run(place: Place, checkpoint_id: str, task: str) -> str:
    """The ``run_id`` of the writes of a task, by which they are found."""
    names = "\n".join(map(name_of, [*place, checkpoint_id, task]))
    return f"langgraph-task:{hashlib.sha256(names.encode()).hexdigest()[:32]}"


def order(checkpoint_id: str) -> int:
    """The time under which the grains of a checkpoint lie, in milliseconds.

    Ids that compare as greater have no smaller one, among UUIDs of version 6 and among all others.
    """
    if _UUID6.fullmatch(checkpoint_id):
        high, mid, low = checkpoint_id[:8], checkpoint_id[9:13], checkpoint_id[15:18]
        milliseconds = (int(high + mid + low, 16) - _GREGORIAN) // 10_000
        return min(max(milliseconds, 0), NAMED - 1)
    return NAMED + int.from_bytes(checkpoint_id.encode()[:6].ljust(6, b"\0"), "big")
