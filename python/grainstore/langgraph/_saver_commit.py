"""Committing the grains of a thread: all of them or none, and none to a thread that was deleted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from .._errors import AccessError, ErasedError, InDoubtError
from .._store import Store
from ._saver_keys import Place, moment, name_of, owner
from ._saver_records import Head
from ._saver_threads import are_listed, entry_of
from ._saver_values import Packing

T = TypeVar("T")

#: What makes the grains of a record, whose values it gives to the packing.
Make: TypeAlias = Callable[[Packing], Sequence[Mapping[str, Any]]]
#: Grains that were stored: each a ``grain`` with its ``address``.
Committed: TypeAlias = list[dict[str, Any]]

# How often is asked for what may be asked twice, and whose answer was lost.
_ATTEMPTS = 5
# Entries of the audit log that are read at a time, and how many times at most.
_ENTRIES = 500
_PAGES = 200


class Missing(NamedTuple):
    """A checkpoint that is not there: not yet, no more, or never was. It would have come at ``time``, in ms."""

    place: Place
    id: str
    time: int


def missing(place: Place, checkpoint_id: str) -> Missing | None:
    """A checkpoint that is not there; None for an id that tells no time."""
    time = moment(checkpoint_id)
    return None if time is None else Missing(place, checkpoint_id, time)


def commit(
    store: Store,
    basis: str | None,
    thread: str,
    make: Make,
    after: Head | Missing | None = None,
    run_id: str | None = None,
) -> Committed:
    """Stores what ``make`` makes, with its values. Returns each grain, with its ``address``.

    ``after`` is the checkpoint that it goes on from. A head is stored along, which changes nothing as long as it is
    there, and refuses all of it (:class:`ErasedError`) once it was erased. What goes on from one that is missing is
    dated as that one, which refuses all of it if the thread was deleted since. ``run_id`` is the run whose grains they
    are.
    """
    at = _date(after)
    fence = [after.grain] if isinstance(after, Head) else []
    while True:
        entries = [entry_of(thread, _common(thread, basis, None, at))] if not fence and are_listed(store) else []
        common = _common(thread, basis, run_id, at)
        packing = Packing(common, lambda grain: _address(store, grain), lambda grains: _put(store, fence, grains))
        try:
            records = [{**common, **fields} for fields in make(packing)]
            addresses = _put(store, fence, [*entries, *packing.grains, *records])
        except ErasedError as error:
            if isinstance(after, Missing) or (after is not None and error.index == 0):
                raise deleted(after.place, after.id) from error
            at = _after_erasures(store, at, error)
            continue
        own = addresses[len(entries) + len(packing.grains) :]
        return [{"address": address, "grain": grain} for address, grain in zip(own, records, strict=True)]


def without_doubt(call: Callable[[], T]) -> T:
    """Calls what may be called twice, again where its answer was lost with the process that had the store open."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return call()
        except InDoubtError:
            continue
    return call()


def deleted(place: Place, checkpoint_id: str) -> ErasedError:
    """The refusal of what goes on from a checkpoint that was deleted."""
    return ErasedError(
        f"checkpoint {checkpoint_id!r} of thread {place.thread!r}, which this goes on from, was deleted",
        code="ERR_ERASED",
        hint="begin the run anew, without this checkpoint_id",
    )


def _date(after: Head | Missing | None) -> int:
    """When grains are created, in milliseconds: not before what they go on from, also where the clock was set back."""
    if isinstance(after, Missing):
        return after.time
    now = time.time_ns() // 1_000_000
    return now if after is None else max(now, after.grain["created_at"])


def _after_erasures(store: Store, at: int, refusal: ErasedError) -> int:
    """A time after the last erasure of a thread that the audit log has from ``at`` on: this thread's may be that one.

    So a thread begins anew in the millisecond of its erasure, and after the clock was set back. Raises ``refusal``
    where there is none among the last 100,000 entries, and in a session that may not read the log.
    """
    try:
        end = store.audit(limit=1)["head"]["sequence"] + 1
        for _ in range(_PAGES):
            begin = max(end - _ENTRIES, 0)
            for entry in reversed(_entries(store, begin, end)):
                if entry["operation"] == "erase_user" and entry["decision"] == "done" and entry["time_ms"] >= at:
                    return int(entry["time_ms"]) + 1
            end = begin
    except AccessError:
        pass
    raise refusal


def _entries(store: Store, begin: int, end: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    while begin < end:
        some = store.audit(after=begin - 1 if begin else None, limit=end - begin)["entries"]
        if not some:
            break
        entries += some
        begin = some[-1]["sequence"] + 1
    return entries


def _common(thread: str, basis: str | None, run_id: str | None, at: int) -> dict[str, Any]:
    common = {"type": "state", "context": {}, "user_id": owner(thread), "created_at": at}
    if basis is not None:
        common["processing_basis"] = basis
    if run_id is not None:
        common["run_id"] = name_of(run_id)
    return common


def _address(store: Store, grain: dict[str, Any]) -> str:
    address: str = store.call("encode", {"grain": grain})["address"]
    return address


def _put(store: Store, fence: list[dict[str, Any]], grains: list[dict[str, Any]]) -> list[str]:
    """Stores grains in one commit. Returns their addresses. The same grains are stored once, however often."""
    if not grains:
        return []
    puts = without_doubt(lambda: store.put_many([*fence, *grains]))
    return [put.address for put in puts][len(fence) :]
