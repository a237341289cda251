"""Items in a store of Grainstore: how they are read, written and erased, whoever else does so meanwhile."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .. import Found, Put, Store
from .._errors import (
    AccessError,
    CancelledError,
    ConflictError,
    ErasedError,
    InDoubtError,
    IntegrityError,
    InvalidationDeniedError,
    NotFoundError,
    PolicyError,
    ReadOnlyError,
    StoreIOError,
)
from ._store_grains import (
    ITEM,
    LEASE,
    MARK,
    MARK_SUBJECT,
    PART,
    Lease,
    Version,
    item_grain,
    lease_grain,
    lease_of,
    mark_grain,
    new_number,
    part_grain,
    place_in,
    version_of,
)
from ._store_names import ROOT, Place, namespace_of, path_of, tag_of
from ._store_values import Text, value_of

# Why grains are erased, as the audit log has it.
_REASON = "an item of LangGraph was deleted, replaced or has expired"
# How often something is tried again where others write the same item.
_TRIES = 200
# Parts that are read at a time: an answer has room for them.
_PARTS_A_TIME = 8
# Bytes of parts that are written at a time; a batch may have 32 MiB.
_PARTS_A_BATCH = 32
# Grains that a query reads at a time.
_PAGES = (10, 40, 160, 500)
# What is written of an item before it is there, is erased by a sweep after this time: an hour.
_UNFINISHED = 3_600_000_000
# A lease is renewed where a hundredth of its time has gone by.
_FINENESS = 100
# How often something is asked whose answer is lost with the process that had the store open.
_ASKED = 3
# Errors that leave open whether a version is there: its parts have to stay. After any other it is not.
_OPEN = (CancelledError, InDoubtError, IntegrityError, MemoryError, StoreIOError, TimeoutError)

_log = logging.getLogger("grainstore")

Vectors = Sequence[Mapping[str, Any]]
T = TypeVar("T")


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass
class _Beside:
    """What is written of a version before it: the addresses of its parts and of its lease."""

    parts: list[str] = field(default_factory=list)
    lease: list[str] = field(default_factory=list)

    def addresses(self) -> list[str]:
        """All of it, the lease last: a sweep begins with it."""
        return [*self.parts, *self.lease]


class Items:
    """The items of a store."""

    def __init__(self, store: Store, *, omit_expired: bool) -> None:
        self.store = store
        self._omit_expired = omit_expired
        self._lock = threading.Lock()
        self._last = 0
        # When the marks of all namespaces were last looked at.
        self._looked: int | None = None

    def tick(self) -> int:
        """A time that no item of this process was put at before."""
        with self._lock:
            self._last = max(now_us(), self._last + 1)
            return self._last

    def check(self) -> None:
        """Refuses what a fork of the process that opened the store, or a closed one, cannot do: ``StoreIOError``."""
        # It is no part of the public face.
        shared: Any = getattr(self.store, "_shared")  # noqa: B009
        shared.check()

    # Reading

    def get(self, place: Place) -> tuple[Version, dict[str, Any]] | None:
        """The current version of an item, and its value."""
        version = self._current(place)
        return None if version is None else self.read(version)

    def read(self, version: Version) -> tuple[Version, dict[str, Any]] | None:
        """A version and its value; None where it is expired, deleted meanwhile, or no JSON that can be read."""
        if self.is_hidden(version):
            return None
        text = self._text(version)
        if text is None:
            return None
        value = value_of(text)
        if value is None:
            _log.warning("the value of %s cannot be read, and is passed over", version.place)
            return None
        return version, value

    def is_hidden(self, version: Version) -> bool:
        """True if it is expired, and what is expired is left out."""
        return self._omit_expired and self._is_expired(version)

    def scan(self, namespace: Sequence[str]) -> Iterator[Version]:
        """The items in a namespace and below it.

        The namespaces come in the order in which they came into being, the items of each in the order in which they
        were first put.
        """
        for path in self.spaces(namespace):
            yield from self._in_order(path)

    def spaces(self, namespace: Sequence[str]) -> list[str]:
        """The paths of the namespaces with items, from this one on, in the order in which they came into being."""
        where = {"namespace": path_of(namespace), "relation": MARK}
        found = [(mark["context"]["created"], mark["namespace"]) for mark in self.store.query(where)]
        return [path for _, path in sorted(set(found))]

    def has_items(self, path: str) -> bool:
        """True if exactly this namespace has an item that can be read."""
        # The first one is enough, as a rule.
        found = self._found(_exactly(path), pages=(1, *_PAGES))
        versions = (version_of(one.address, one.grain) for one in found)
        return any(not self.is_hidden(version) and self._is_whole(version) for version in versions)

    def _found(self, where: Mapping[str, Any], *, pages: Sequence[int] = _PAGES, **query: Any) -> Iterator[Found]:
        """What a query finds: a few grains at first, and more with every page, since most ask for few."""
        sizes = itertools.chain(pages, itertools.repeat(pages[-1]))
        cursor = None
        for size in sizes:
            page = self.store.page(where, limit=size, cursor=cursor, **query)
            yield from page.results
            cursor = page.next_cursor
            if cursor is None:
                return

    def with_words(self, namespace: Sequence[str], words: str) -> Iterator[tuple[float, Version]]:
        """The items that have some of these words, the best first."""
        where = {"namespace": path_of(namespace), "type": "belief"}
        for found in self._found(where, text=words):
            grain = found.grain
            if grain["relation"] == ITEM:
                yield found.score, version_of(found.address, grain)
            elif grain["relation"] == PART:
                version = self._current(place_in(grain))
                if version is not None and found.address in version.parts:
                    yield found.score, version

    def near(self, namespace: Sequence[str], vector: Mapping[str, Any]) -> Iterator[tuple[float, Version]]:
        """The items with the nearest vectors, the nearest first: as many as a search of vectors answers."""
        where = {"namespace": path_of(namespace), "relation": ITEM}
        try:
            for found in self._found(where, vector=vector):
                yield _cosine(found.score), version_of(found.address, found.grain)
        except NotFoundError:
            # No vector of this model is stored.
            return

    def nearness(self, version: Version, vector: Mapping[str, Any]) -> float | None:
        """The cosine of the nearest vector of one item."""
        where = {"subject": version.place.subject, "relation": ITEM, "tags_all": [tag_of(version.place.path)]}
        try:
            found = next(iter(self.store.query(where, vector=vector, limit=1)), None)
        except NotFoundError:
            return None
        return None if found is None else _cosine(found.score)

    def _current(self, place: Place) -> Version | None:
        found = self.store.latest(place.subject, ITEM, namespace=place.path)
        return None if found is None else version_of(found.address, found.grain)

    def _in_order(self, path: str) -> Iterator[Version]:
        """The items of exactly this namespace, in the order in which they were first put."""
        found = self._found(_exactly(path), sort="oldest")
        versions = (version_of(one.address, one.grain) for one in found)
        for _, same in itertools.groupby(versions, lambda version: version.created // 1000):
            # One that is put while it is read may be found twice.
            latest = {version.place: version for version in sorted(same, key=lambda version: version.updated)}
            yield from sorted(latest.values(), key=lambda version: version.created)

    def _text(self, version: Version) -> str | None:
        """The JSON of a version; None where parts of it are erased."""
        if not version.parts:
            return version.json
        pieces: list[str] = []
        for begin in range(0, len(version.parts), _PARTS_A_TIME):
            addresses = list(version.parts[begin : begin + _PARTS_A_TIME])
            grains = self.store.call("get_batch", {"addresses": addresses})["grains"]
            if None in grains:
                return None
            pieces.extend(grain["object"] for grain in grains)
        return "".join(pieces)

    def _is_whole(self, version: Version) -> bool:
        return all(map(self.store.exists, version.parts))

    # Writing

    def put(self, place: Place, text: Text, vectors: Vectors, *, ttl: int | None, at: int) -> None:
        """Puts an item in its place: a new one, or a new version of the one that is there.

        ``ttl`` is how many microseconds it is kept after it was last used, ``at`` the time of the put. Raises
        :class:`ConflictError` where others write the item all the time.
        """
        for _ in range(_TRIES):
            if self._put_once(place, text, vectors, ttl, at):
                return
        raise ConflictError(
            f"the item {place} is written by others all the time",
            code="ERR_CONFLICT",
            hint="put it again",
        )

    def _put_once(self, place: Place, text: Text, vectors: Vectors, ttl: int | None, now: int) -> bool:
        old = self._old(place)
        number = new_number()
        ends = None if ttl is None else now_us() + ttl
        beside = _Beside()
        try:
            self._put_beside(beside, place, text, number, now, ends)
            grain = item_grain(
                place,
                text,
                number=number,
                created=now if old is None else old.created,
                updated=now if old is None else max(now, old.updated + 1),
                ttl=ttl,
                ends=ends,
                vectors=len(vectors),
                parts=beside.parts,
            )
            address = self._put_version(place, old, grain, vectors)
        except _OPEN:
            raise
        except Exception:
            self._tidy(beside.addresses())
            raise
        if address is None:
            self._tidy(beside.addresses())
            return False
        return self._settle(address, place, beside, old, ttl)

    def _put_version(self, place: Place, old: Version | None, grain: Mapping[str, Any], vectors: Vectors) -> str | None:
        """Writes the grain of a version: its address, or None where another writer was faster.

        Where the answer is lost, it looks whether the grain is there, and asks again if not.
        """
        number = grain["context"]["number"]
        doubt: InDoubtError | None = None
        for _ in range(_ASKED):
            try:
                if old is None:
                    return self.store.put(grain, same_fact="unique", vectors=vectors or None).address
                return self.store.supersede(old.address, grain, vectors=vectors or None).address
            except InDoubtError as error:
                doubt = error
            except (ConflictError, ErasedError, NotFoundError):
                # What is in the way may be this version, which was put after it was looked for.
                return None if doubt is None else self._address_of(place, number)
            try:
                there = self._address_of(place, number)
            except TimeoutError:
                break
            if there is not None:
                return there
        assert doubt is not None
        raise doubt

    def _address_of(self, place: Place, number: int) -> str | None:
        """The address of a version, be it current or not."""
        grains = self._grains(place).items()
        found = (one for one, grain in grains if grain["relation"] == ITEM and grain["context"]["number"] == number)
        return next(found, None)

    def _settle(self, address: str, place: Place, beside: _Beside, old: Version | None, ttl: int | None) -> bool:
        """Looks whether all of a version that was put is there: who deleted the item meanwhile has erased some."""
        kept = [*beside.parts, *(beside.lease if ttl is not None else ())]
        if not all(map(self.store.exists, kept)):
            self._tidy([address, *beside.addresses()])
            return False
        if ttl is None:
            self._tidy(beside.lease)
        if old is not None and old.ttl is not None:
            self._tidy_leases(place, {old.number})
        return True

    def _old(self, place: Place) -> Version | None:
        """The version that a put supersedes. What is deleted in part, or expired, is erased: the put begins anew."""
        old = self._current(place)
        if old is None:
            return None
        if not self._is_whole(old):
            self.delete(place)
            return None
        if self.is_hidden(old):
            self._expire(old)
            return None
        return old

    def _put_beside(self, beside: _Beside, place: Place, text: Text, number: int, now: int, ends: int | None) -> None:
        """Writes the parts and the lease of a version before it is there itself."""
        parts = text.parts if len(text.parts) > 1 else ()
        if ends is not None or parts:
            ends = now + _UNFINISHED if ends is None else ends
            beside.lease.append(self.store.put(lease_grain(place, of=number, ends=ends, at=now)).address)
        grains = [part_grain(place, part, number=number, index=index, at=now) for index, part in enumerate(parts)]
        for begin in range(0, len(grains), _PARTS_A_BATCH):
            puts = self.store.put_many(grains[begin : begin + _PARTS_A_BATCH])
            beside.parts.extend(put.address for put in puts)

    # Erasing

    def delete(self, place: Place) -> bool:
        """Erases all versions of an item for good. True if there was one.

        Raises :class:`InvalidationDeniedError` or :class:`PolicyError` where one has to be kept: then all are.
        """
        existed = False
        for _ in range(_TRIES):
            current = self._current(place)
            grains = self._grains(place)
            self._check_erasable(grains)
            existed = existed or current is not None
            self._erase_all(sorted(grains, key=lambda one: _rank(one, grains[one], current)))
            self._tidy_leases(place, _with_ttl(grains))
            later = self._current(place)
            if later is None or current is None or later.created != current.created:
                break
        return existed

    def _expire(self, version: Version) -> bool:
        """Erases an expired item, unless it was put again meanwhile. True if it was erased."""
        grains = self._grains(version.place)
        self._check_erasable(grains)
        if not self._erase(version.address):
            return False
        if self._current(version.place) is not None:
            return False
        self._erase_all(self._remains(grains))
        self._tidy_leases(version.place, _with_ttl(grains))
        return True

    def _remains(self, grains: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Of the grains of an item that is erased, those of its versions: leases last, as a sweep begins with them."""
        versions = _numbers(grains)
        of = {address: grain for address, grain in grains.items() if grain["context"]["number"] in versions}
        return sorted(of, key=lambda address: of[address]["relation"] == LEASE)

    def _grains(self, place: Place) -> dict[str, dict[str, Any]]:
        """All grains of an item by their addresses, those that were superseded too."""
        where = {"subject": place.subject, "tags_all": [tag_of(place.path)]}
        found = self.store.query(where, include_superseded=True)
        # Without the texts, which may be long.
        return {
            one.address: {"relation": one["relation"], "context": one["context"]}
            for one in found
            if one["relation"] in (ITEM, PART, LEASE)
        }

    def _check_erasable(self, grains: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses an erasure before anything is erased, if a version is under hold or has to be kept."""
        for address, grain in grains.items():
            if grain["relation"] == ITEM and self._is_kept(address):
                self._erase(address)

    def _is_kept(self, address: str) -> bool:
        try:
            return _again(lambda: self.store.erase(address, _REASON, dry_run=True)).get("refusal") is not None
        except (ErasedError, NotFoundError):
            return False

    def _erase_all(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            self._erase(address)

    def _tidy(self, addresses: Iterable[str]) -> None:
        """Erases what is of no use any more. Where that is not allowed, it stays, and what was asked for is done."""
        with contextlib.suppress(AccessError, InvalidationDeniedError, PolicyError):
            self._erase_all(addresses)

    def _erase(self, address: str) -> bool:
        """Erases a grain. False if it was erased before."""
        for asked in range(_ASKED):
            try:
                self.store.erase(address, _REASON)
            except InDoubtError:
                if asked == _ASKED - 1:
                    raise
            except (ErasedError, NotFoundError):
                return asked > 0
            else:
                break
        return True

    # Expiry

    def _is_expired(self, version: Version) -> bool:
        now = now_us()
        if version.ends is None or version.ends > now:
            return False
        return self._end(version, self._leases(version.place)) <= now

    def _leases(self, place: Place) -> list[Lease]:
        where = {"subject": place.subject, "relation": LEASE, "tags_all": [tag_of(place.path)]}
        return [lease_of(one.address, one.grain) for one in self.store.query(where)]

    def _tidy_leases(self, place: Place, numbers: Collection[int]) -> None:
        """Erases the leases of versions that are no more: a read may have written one meanwhile."""
        if numbers:
            self._tidy([lease.address for lease in self._leases(place) if lease.of in numbers])

    def _end(self, version: Version, leases: Iterable[Lease]) -> int:
        assert version.ends is not None
        return max([version.ends, *(lease.ends for lease in leases if lease.of == version.number)])

    def renew(self, versions: Iterable[Version]) -> None:
        """Lets items that were read begin their time anew."""
        now = now_us()
        grains: list[dict[str, Any]] = []
        renewed: list[Version] = []
        old: list[str] = []
        for version in versions:
            if version.ttl is None:
                continue
            leases = [lease for lease in self._leases(version.place) if lease.of == version.number]
            if now + version.ttl - self._end(version, leases) <= version.ttl // _FINENESS:
                continue
            grains.append(lease_grain(version.place, of=version.number, ends=now + version.ttl, at=now))
            renewed.append(version)
            old.extend(lease.address for lease in leases)
        if not grains:
            return
        # A store that is only read, or whose owner ends, lets its items be read all the same.
        with contextlib.suppress(ReadOnlyError, InDoubtError):
            puts = self.store.put_many(grains)
            self._tidy(old)
            # Who erases a version, or puts one over it, looks for its leases after that: this comes before, or sees it.
            for version, put in zip(renewed, puts, strict=True):
                current = self._current(version.place)
                if current is None or current.number != version.number:
                    self._tidy([put.address])

    def sweep(self) -> int:
        """Erases what has expired, and what was never finished. Returns how many items it erased."""
        where = {"namespace": ROOT, "relation": LEASE, "time_to": now_us() // 1000}
        lapsed: dict[Place, list[Lease]] = {}
        for found in list(self.store.query(where)):
            lease = lease_of(found.address, found.grain)
            if lease.ends <= now_us():
                lapsed.setdefault(lease.place, []).append(lease)
        swept = sum(self._sweep_item(place, leases) for place, leases in lapsed.items())
        for namespace in {place.namespace for place in lapsed}:
            self.leave(namespace)
        self._leave_empty()
        return swept

    def _sweep_item(self, place: Place, lapsed: Sequence[Lease]) -> bool:
        # The grains first: none of them is of an item that is put after it was seen that there is none.
        grains = self._grains(place)
        current = self._current(place)
        if current is not None and self._is_expired(current):
            try:
                return self._expire(current)
            except (InvalidationDeniedError, PolicyError) as refusal:
                _log.info("%s has expired, and is kept: %s", place, refusal)
                return False
        if current is None:
            self._erase_all(self._remains(grains))
        unfinished = {lease.of for lease in lapsed} - _numbers(grains)
        parts = [address for address, grain in grains.items() if grain["relation"] == PART]
        self._tidy(part for part in parts if grains[part]["context"]["number"] in unfinished)
        self._tidy(lease.address for lease in lapsed)
        # Whoever put the version meanwhile has seen its lease, or sees that it is gone and puts it again.
        current = self._current(place) if unfinished else None
        if current is not None and current.number in unfinished and current.ends is not None:
            self.store.put(lease_grain(place, of=current.number, ends=current.ends, at=now_us()))
        return False

    # Namespaces

    def enter(self, namespace: Sequence[str]) -> None:
        """Marks that a namespace has items: before one is put, and again after it, since others may have left it."""
        path = path_of(namespace)
        for _ in range(_TRIES):
            mark = self.store.latest(MARK_SUBJECT, MARK, namespace=path)
            try:
                if mark is None:
                    self.store.put(mark_grain(path, created=self.tick(), leaves=False), same_fact="unique")
                elif mark["context"]["leaves"]:
                    self._change_mark(mark.address, path, mark["context"]["created"], leaves=False)
                return
            except (ConflictError, ErasedError, InDoubtError):
                continue

    def leave(self, namespace: Sequence[str]) -> None:
        """Takes the mark from a namespace that has no items.

        The mark tells first that it is to go. Whoever puts an item meanwhile sees that, or that it is gone, after the
        put, and marks the namespace again: no put that has returned leaves an item without a mark.
        """
        path = path_of(namespace)
        _again(lambda: self._leave(path))

    def _leave(self, path: str) -> None:
        if self._has_any(path):
            return
        mark = self.store.latest(MARK_SUBJECT, MARK, namespace=path)
        if mark is not None:
            try:
                address = mark.address
                if not mark["context"]["leaves"]:
                    address = self._change_mark(address, path, mark["context"]["created"], leaves=True).address
            except (ConflictError, ErasedError):
                return
            if self._has_any(path):
                return
            self._tidy([address])
        self._erase_former_marks(path)

    def _leave_empty(self) -> None:
        """Takes the marks from namespaces without items, which a process that was killed has left.

        That is done once an hour, since it reads the marks of all namespaces.
        """
        now = now_us()
        if self._looked is not None and now < self._looked + _UNFINISHED:
            return
        marks = self.store.query({"namespace": ROOT, "relation": MARK}, include_superseded=True)
        for path in {mark["namespace"] for mark in marks}:
            self.leave(namespace_of(path))
        self._looked = now

    def _change_mark(self, old: str, path: str, created: int, *, leaves: bool) -> Put:
        put = self.store.supersede(old, mark_grain(path, created=created, leaves=leaves))
        self._erase_former_marks(path)
        return put

    def _erase_former_marks(self, path: str) -> None:
        where = {"subject": MARK_SUBJECT, "relation": MARK, "tags_all": [tag_of(path)]}
        marks = [mark.address for mark in self.store.query(where, include_superseded=True)]
        # Asked after the list was made: none of it but this one is current.
        current = self.store.latest(MARK_SUBJECT, MARK, namespace=path) if marks else None
        self._tidy(mark for mark in marks if current is None or mark != current.address)

    def _has_any(self, path: str) -> bool:
        return bool(self.store.page(_exactly(path), limit=1).results)


def _exactly(path: str) -> dict[str, Any]:
    """The items of a namespace, without those of the namespaces below it."""
    return {"namespace": path, "relation": ITEM, "tags_all": [tag_of(path)]}


def _numbers(grains: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """The numbers of the versions among grains."""
    return {grain["context"]["number"] for grain in grains.values() if grain["relation"] == ITEM}


def _with_ttl(grains: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """The numbers of the versions that have a time to live: others have no lease that is renewed."""
    contexts = [grain["context"] for grain in grains.values() if grain["relation"] == ITEM]
    return {context["number"] for context in contexts if "ttl" in context}


def _again(call: Callable[[], T]) -> T:
    """What a call answers that may be done twice: it is asked again where its answer is lost."""
    for _ in range(_ASKED - 1):
        with contextlib.suppress(InDoubtError):
            return call()
    return call()


def _rank(address: str, grain: Mapping[str, Any], current: Version | None) -> int:
    """In which order the grains of an item are erased: the current version last, and just before it its parts.

    Where it ends midway, the item is there as it was, or is none.
    """
    if current is None:
        return 0
    if address == current.address:
        return 2
    return 1 if address in current.parts else 0


def _cosine(score: float) -> float:
    """The cosine of a score of vectors (docs/rpc.md, query)."""
    return 2 * score - 1


__all__ = ["Items", "now_us"]
