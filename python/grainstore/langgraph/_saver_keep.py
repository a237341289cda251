"""What becomes of a whole thread: deleting, pruning and copying."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from .._errors import ErasedError, LimitError, NotFoundError
from .._store import Store
from ._saver_commit import commit, without_doubt
from ._saver_keys import STEPS, VALUES, Place, name_of, owner, thread_of
from ._saver_log import Step, found, of_thread, records
from ._saver_records import Channel, Head, Writes, channels_bytes, channels_of, newest_heads
from ._saver_threads import are_listed, entries_of, threads
from ._saver_tuples import Reader, ancestors
from ._saver_values import (
    SHEET_BYTES,
    Gone,
    Kept,
    Library,
    Packing,
    Sheet,
    early,
    early_at,
    grains_of,
    loads,
    settled,
    sheets_of,
)

# Values that no checkpoint names are left alone so long, in milliseconds: they may be those of one to come.
_PATIENCE_MS = 3_600_000
# Grains that are erased at a time: each is a commit of its own, but the way to it and back is gone side by side.
_ERASED_AT_ONCE = 8
# Checkpoints and writes that a copy stores at a time.
_COPIED_AT_ONCE = 100


def delete(store: Store, thread: str) -> None:
    """Erases all that there is of a thread, in one commit, and then that it is listed."""
    if _has_grains(store, thread):
        without_doubt(lambda: store.erase_user(owner(thread), "the thread was deleted"))
        # What begins the thread anew is dated after the erasure, whose time has milliseconds.
        erased_at = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == erased_at:
            time.sleep(0.0002)
    if are_listed(store):
        # Read before it is looked whether the thread has begun anew: what begins it later has another entry.
        entries = entries_of(store, thread)
        if not _has_grains(store, thread):
            _erase_all(store, entries)


def _has_grains(store: Store, thread: str) -> bool:
    return bool(store.page(of_thread(thread), limit=1, include_superseded=True).results)


def delete_runs(store: Store, run_ids: Iterable[str]) -> None:
    """Erases the checkpoints of runs, with their writes, and the values that no other checkpoint names."""
    runs = set(run_ids)
    for thread in _threads_of(store, runs):
        settled(functools.partial(_delete_runs_of, store, thread, runs))


def _delete_runs_of(store: Store, thread: str, runs: set[str]) -> None:
    heads = newest_heads(record for record in _records(store, thread) if isinstance(record, Head))
    trim(store, thread, {key for key, head in heads.items() if head.run_id in runs}, set())


def _threads_of(store: Store, runs: Iterable[str]) -> list[str]:
    """The threads that have something of runs; values may be all that an interrupted call has left of them."""
    owners: set[str] = set()
    places = [of_thread(one) for one in threads(store)] if are_listed(store) else [{}]
    for namespace in (STEPS, VALUES):
        for run in runs:
            for place in places:
                where = {**place, "run_id": name_of(run), "namespace": namespace}
                owners.update(one.grain["user_id"] for one in found(store, where))
    return [thread_of(one) for one in sorted(owners)]


def prune(store: Store, serde: SerializerProtocol, thread: str) -> None:
    """Erases all checkpoints of a thread but the newest of each namespace, and those that it needs."""
    settled(lambda: _prune(store, serde, thread))


def _prune(store: Store, serde: SerializerProtocol, thread: str) -> None:
    all_records = list(_records(store, thread))
    heads = newest_heads(record for record in all_records if isinstance(record, Head))
    newest: dict[Place, Head] = {}
    for head in heads.values():
        other = newest.get(head.place)
        if other is None or head.id > other.id:
            newest[head.place] = head
    keep: set[tuple[Place, str]] = set()
    for head in newest.values():
        keep.update((head.place, one) for one in _needed(store, serde, head))
    # Writes that an interrupted pruning has left.
    left = {(record.place, record.id) for record in all_records if isinstance(record, Writes)}
    older = {(place, id) for place, id in left - heads.keys() if place in newest and id < newest[place].id}
    trim(store, thread, heads.keys() - keep, older)


def _needed(store: Store, serde: SerializerProtocol, head: Head) -> Iterator[str]:
    """A checkpoint, and the ancestors whose writes make the values of its delta channels."""
    yield head.id
    reader = Reader(store, serde)
    counted = reader.metadata(head).get("counters_since_delta_snapshot") or {}
    channels = reader.channels(head)
    open_channels = {name for name in counted if not _has_value(channels, name)}
    for step in ancestors(store, Step(head)):
        if not open_channels:
            return
        yield step.head.id
        channels = reader.channels(step.head)
        open_channels = {name for name in open_channels if not _has_value(channels, name)}


def _has_value(channels: Mapping[str, Channel], name: str) -> bool:
    return name in channels and channels[name].value is not None


def trim(store: Store, thread: str, dropped: set[tuple[Place, str]], older: set[tuple[Place, str]]) -> None:
    """Erases checkpoints of a thread with their writes, the writes of ``older`` ones, and values nobody names.

    The writes go first and the heads behind them: an interrupted call is finished by the next one, which finds the
    heads. Values go when no head names them, so that no reader finds a checkpoint without its values.
    """
    library = Library(store)
    everything = list(_records(store, thread))
    writes = [one for one in everything if isinstance(one, Writes) and (one.place, one.id) in dropped | older]
    heads = [one for one in everything if isinstance(one, Head) and (one.place, one.id) in dropped]
    doomed: list[Head | Writes] = [*writes, *heads]
    let_go = {address for record in doomed for address in _values_of(library, record)}
    for some in (writes, heads):
        _erase_all(store, [record.address for record in some])
    # Writes that were stored meanwhile: from now on nobody stores any, since the heads are gone.
    late = [one for one in _records(store, thread) if isinstance(one, Writes) and (one.place, one.id) in dropped]
    let_go |= {address for record in late for address in _values_of(Library(store), record)}
    _erase_all(store, [record.address for record in late])
    _erase_values(store, thread, let_go)


def _erase_values(store: Store, thread: str, let_go: set[str]) -> None:
    """Erases values that nobody names: those of checkpoints that went, and what an interrupted call has left."""
    # The list of candidates comes first: what is stored from now on is none.
    candidates = _addresses(store, thread, let_go)
    named: set[str] = set()
    # Twice, since a checkpoint that is stored meanwhile may name what only one that is erased meanwhile named.
    for _ in range(2):
        for record in _records(store, thread):
            named.add(record.address)
            named.update(_values_of(Library(store), record))
    of_runs: list[str] = []
    others: list[str] = []
    for some in loads({address: SHEET_BYTES for address in candidates if address not in named}):
        for address, grain in zip(some, grains_of(store, some), strict=True):
            if grain is not None and (address in let_go or _is_left_over(grain)):
                (of_runs if "run_id" in grain else others).append(address)
    # Those by which the next call finds this thread, if this one is interrupted, go last.
    for some in (others, of_runs):
        _erase_all(store, some)


def _addresses(store: Store, thread: str, let_go: set[str]) -> list[str]:
    try:
        addresses: list[str] = store.subject_report(owner(thread))["addresses"]
    except ErasedError:
        # Of an encrypted store, where somebody deletes the thread meanwhile.
        return list(let_go)
    except LimitError:
        # The thread has more grains than a report; what is left over waits for a later call.
        return list(let_go)
    return addresses


def _is_left_over(grain: Mapping[str, Any]) -> bool:
    """True for values without a checkpoint, unless they may be those of one to come."""
    if grain.get("namespace") != VALUES:
        return False
    at = early_at(grain)
    return at is None or at < time.time_ns() // 1_000_000 - _PATIENCE_MS


def _values_of(library: Library, record: Head | Writes) -> set[str]:
    """The addresses of the values that a checkpoint or writes name."""
    return {sheet.address for kept in _all_kept(library, record) for sheet in kept.sheets()}


def _all_kept(library: Library, record: Head | Writes) -> list[Kept]:
    if isinstance(record, Writes):
        return [write.value for write in record.writes]
    channels = _channels(library, record).values()
    return [*record.kept(), *(channel.value for channel in channels if channel.value is not None)]


def _channels(library: Library, head: Head) -> dict[str, Channel]:
    library.fetch([head.channels])
    return channels_of(library.bytes_of(head.channels))


def copy(store: Store, basis: str | None, source: str, target: str) -> None:
    """Copies all checkpoints and writes of a thread, the oldest first, with values of their own."""
    moved = _Moved(store, target)
    try:
        for some in _portions(list(_records(store, source))[::-1]):
            moved.values(basis, some)
            commit(store, basis, target, functools.partial(moved.grains, some))
    except Gone as error:
        message = f"something of thread {source!r} was deleted while it was copied"
        raise NotFoundError(message, code="ERR_NOT_FOUND", hint="delete the copy, and copy again") from error


def _portions(all_records: Sequence[Head | Writes]) -> Iterator[Sequence[Head | Writes]]:
    for at in range(0, len(all_records), _COPIED_AT_ONCE):
        yield all_records[at : at + _COPIED_AT_ONCE]


def _copied(grain: Mapping[str, Any]) -> dict[str, Any]:
    """Values as those of another thread, which are stored before what names them."""
    first, *others = grain["content_refs"]
    run = {"run_id": grain["run_id"]} if "run_id" in grain else {}
    return {"namespace": VALUES, "content_refs": [{**first, "metadata": early()}, *others], **run}


def _as_they_are(fields: Sequence[Mapping[str, Any]], _: Packing) -> Sequence[Mapping[str, Any]]:
    return fields


class _Moved:
    """A thread on its way to another: which values are there already."""

    def __init__(self, store: Store, target: str) -> None:
        self._store = store
        self._target = target
        self._library = Library(store)
        self._sheets: dict[str, Sheet] = {}

    def values(self, basis: str | None, some: Sequence[Head | Writes]) -> None:
        """Copies the values of records that are not there yet."""
        sizes = {
            sheet.address: sheet.size
            for record in some
            for kept in _all_kept(self._library, record)
            for sheet in kept.sheets()
            if sheet.address not in self._sheets
        }
        for addresses in loads(sizes):
            fields = [_copied(grain) for grain in sheets_of(self._store, addresses)]
            made = commit(self._store, basis, self._target, functools.partial(_as_they_are, fields))
            for address, copy in zip(addresses, made, strict=True):
                self._sheets[address] = Sheet(copy["address"], sizes[address])

    def grains(self, some: Sequence[Head | Writes], packing: Packing) -> list[dict[str, Any]]:
        """The records as those of the other thread."""
        moved: list[dict[str, Any]] = []
        for record in some:
            place = Place(self._target, record.place.ns)
            if isinstance(record, Writes):
                writes = [replace(write, value=self._moved(write.value)) for write in record.writes]
                moved.extend(replace(record, place=place, writes=writes).grains())
            else:
                moved.append(self._head(place, record, packing).fields())
        return moved

    def _head(self, place: Place, head: Head, packing: Packing) -> Head:
        channels = {
            name: Channel(channel.version, None if channel.value is None else self._moved(channel.value))
            for name, channel in _channels(self._library, head).items()
        }
        data = channels_bytes(channels)
        kept = Kept(head.channels.tag, data) if head.channels.data is not None else packing.apart("json", data)
        packing.seal()
        checkpoint, metadata = self._moved(head.checkpoint), self._moved(head.metadata)
        return replace(head, place=place, checkpoint=checkpoint, metadata=metadata, channels=kept)

    def _moved(self, kept: Kept) -> Kept:
        return replace(kept, parts=[(self._sheets[sheet.address], at) for sheet, at in kept.parts])


def _records(store: Store, thread: str) -> Iterator[Head | Writes]:
    return records(store, of_thread(thread))


def _erase_all(store: Store, addresses: Sequence[str]) -> None:
    """Erases grains, several at a time, in no order."""
    if len(addresses) < 2:
        for address in addresses:
            _erase(store, address)
        return
    with ThreadPoolExecutor(_ERASED_AT_ONCE, "grainstore-erasing") as pool:
        # The first that fails keeps those behind it from being begun.
        for _ in pool.map(functools.partial(_erase, store), addresses):
            pass


def _erase(store: Store, address: str) -> None:
    with contextlib.suppress(ErasedError, NotFoundError):
        without_doubt(lambda: store.erase(address, "the checkpoint was deleted"))
