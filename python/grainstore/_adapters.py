"""What the adapters of frameworks share: whose store they use, names and texts of any signs, and whole erasures."""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import time
import unicodedata
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote_to_bytes

from ._answers import Found
from ._errors import ConflictError, ErasedError, NotFoundError
from ._store import AsyncStore, Store
from ._store import open as open_store

if TYPE_CHECKING:
    from typing_extensions import Self

#: What an adapter takes: a store that is open, or the directory of one.
AnyStore: TypeAlias = Store | AsyncStore | str | os.PathLike[str]

#: The relation of grains that hold a part of a text.
PART = "part"

#: Bytes of a text that is kept as it is, and of each part of one that is not (a grain has 1 MiB).
PART_BYTES = 512 * 1024

#: Bytes that are stored in one commit (a batch has 32 MiB).
BATCH_BYTES = 24 * 1024 * 1024

#: Bytes of a part beside its data, more or less.
_BESIDE = 1024

#: What was erased meanwhile, or never stored.
GONE = (ErasedError, NotFoundError)

#: Refusals, after which nothing was stored for sure. After other errors it may have been.
_REFUSED = (ConflictError, LookupError, PermissionError, TypeError, ValueError)

#: The relation of grains that say what is being erased.
_ERASING = "erasing"

#: Addresses that one of them has room for.
_ADDRESSES = 8_000

#: Milliseconds after which nobody is at what was begun: an hour.
LAPSED = 3_600_000

# The tables that names are encoded by, the same under every version of Python.
_TABLES = unicodedata.ucd_3_2_0
# A path is divided by colons; a percent sign begins what is encoded.
_MARKS = "%:"
# An empty name: no text is encoded so.
_EMPTY = "%"

_log = logging.getLogger("grainstore")


class Holder:
    """Holds the store of an adapter, and closes it by ``close``, or at the end of ``with``, if it was opened here."""

    _store: Store
    _owned: bool

    def _hold(self, store_or_path: AnyStore) -> Store:
        self._store, self._owned = _opened(store_or_path)
        return self._store

    def close(self) -> None:
        """Closes the store, if this opened it."""
        if self._owned:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # All frameworks bring it.
        import anyio.to_thread

        await anyio.to_thread.run_sync(self.close)


def _opened(store_or_path: AnyStore) -> tuple[Store, bool]:
    """The store to call, and whether it was opened here."""
    if isinstance(store_or_path, Store):
        return store_or_path, False
    if isinstance(store_or_path, AsyncStore):
        return store_or_path.sync, False
    if isinstance(store_or_path, (str, os.PathLike)):
        return open_store(store_or_path), True
    raise TypeError(f"an adapter takes a store or the path of one, not {type(store_or_path).__qualname__}")


def whose(store: Store, user_id: str | None) -> dict[str, str]:
    """The ``user_id`` of an adapter as grains and queries have it: the one it was given, or that of the session."""
    user_id = store.user_id if user_id is None else user_id
    return {} if user_id is None else {"user_id": user_id}


def namespace_kept(namespace: str) -> str:
    """A namespace as grains have it, to be compared with theirs."""
    return unicodedata.normalize("NFC", namespace)


def found(
    store: Store, where: Mapping[str, Any], is_wanted: Callable[[Found], bool], *, few: bool = False, **query: Any
) -> Iterator[Found]:
    """Of what a query finds, what is wanted. With ``few`` it reads one grain first, and more if that is not enough."""
    sizes = [1, 20, 200] if few else [200]
    cursor = None
    while True:
        page = store.page(where, limit=sizes[0], cursor=cursor, **query)
        yield from filter(is_wanted, page.results)
        cursor = page.next_cursor
        if cursor is None:
            return
        sizes = sizes[1:] or sizes


# Names


def encoded(text: str, marks: str = _MARKS) -> str:
    """A text that Grainstore keeps as it is, in which nothing divides a path: what would be is percent-encoded.

    It is the same under every version of Python.
    """
    if not text:
        return _EMPTY
    keeps = is_stable(text, _TABLES)
    return "".join(sign if _stays(sign, keeps, marks) else _percent(sign) for sign in text)


def decoded(text: str) -> str:
    """The text that was encoded."""
    return "" if text == _EMPTY else unquote_to_bytes(text).decode("utf-8", "surrogatepass")


def is_stable(text: str, tables: Any = unicodedata) -> bool:
    """True if Grainstore keeps a text as it is.

    That is so of the normal form C without a byte-order mark. Signs that these ``tables`` of Unicode do not know yet
    are not trusted: later ones may have another form for them.
    """
    if text.isascii():
        return True
    if not tables.is_normalized("NFC", text):
        return False
    return not any(sign == "\ufeff" or tables.category(sign) in ("Cn", "Cs") for sign in set(text))


def _stays(sign: str, keeps: bool, marks: str) -> bool:
    if sign in marks or _TABLES.category(sign) == "Cc":
        return False
    return keeps or sign.isascii()


def _percent(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))


# Texts


def taken_apart(text: str, *, readable: bool = True, room: int = PART_BYTES) -> tuple[dict[str, Any], list[bytes]]:
    """What a grain has to hold of a text, and the pieces that are to be grains of their own.

    A text that a grain keeps sign by sign stands there as ``text`` if it is to be ``readable``. Any other is ``data``
    (compressed, base64): a grain is in Unicode's form NFC and has no byte-order marks. Beyond ``room`` bytes it is in
    pieces, whose addresses are the ``parts`` of the grain.

    Raises ``UnicodeEncodeError`` for half of a surrogate pair.
    """
    plain = text.encode("utf-8")
    size = {"bytes": len(plain)}
    if readable and len(plain) <= room and is_stable(text):
        return {**size, "text": text}, []
    data = zlib.compress(plain)
    if len(data) <= room:
        return {**size, "data": base64.b64encode(data).decode("ascii")}, []
    return size, [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]


def keep_pieces(store: Store, pieces: Iterable[tuple[bytes, Mapping[str, Any]]]) -> list[str]:
    """Stores pieces, each with the fields of its owner, and returns their addresses: all of them or none is stored."""
    parts: list[str] = []
    with erased_if_refused(store, parts):
        for batch in _batches(pieces):
            parts.extend(put.address for put in store.put_many(batch))
    return parts


def keep(store: Store, text: str, owner: Mapping[str, Any]) -> dict[str, Any]:
    """Stores what of a text does not fit a grain, and returns what the grain has to hold, for :func:`text_of`."""
    kept, pieces = taken_apart(text)
    return {**kept, "parts": keep_pieces(store, ((piece, owner) for piece in pieces))} if pieces else kept


def text_of(store: Store, kept: Mapping[str, Any]) -> str:
    """The text that was taken apart. Raises ``LookupError`` if a part was erased meanwhile."""
    text = kept.get("text")
    if isinstance(text, str):
        return text
    if "data" in kept:
        data = base64.b64decode(kept["data"])
    else:
        data = b"".join(base64.b64decode(store.get(part)["context"]["data"]) for part in kept["parts"])
    return zlib.decompress(data).decode("utf-8")


def _batches(pieces: Iterable[tuple[bytes, Mapping[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for piece, owner in pieces:
        data = base64.b64encode(piece).decode("ascii")
        if batch and size + len(data) + _BESIDE > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append({**owner, "type": "state", "relation": PART, "context": {"data": data}})
        size += len(data) + _BESIDE
    if batch:
        yield batch


# Erasing


@contextlib.contextmanager
def erased_if_refused(store: Store, parts: Sequence[str]) -> Iterator[None]:
    """Erases parts again if what they are of is refused."""
    try:
        yield
    except _REFUSED:
        erase_if_allowed(store, parts, "what it was a part of was refused")
        raise


def erase_if_allowed(store: Store, addresses: Iterable[str], reason: str) -> None:
    """Erases what is of no use any more; where that is not allowed, it stays."""
    with contextlib.suppress(PermissionError):
        erase(store, addresses, reason)


def erase(store: Store, addresses: Iterable[str], reason: str) -> None:
    """Erases grains, also if some are gone."""
    for address in addresses:
        with contextlib.suppress(*GONE):
            store.erase(address, reason)


def finished(grains: Iterable[Found]) -> list[Found]:
    """Grains without the parts that belong to none of them yet, since somebody may be about to store the rest."""
    grains = list(grains)
    named = {part for grain in grains for part in grain.grain.get("context", {}).get("parts", ())}
    lapsed = time.time_ns() // 1_000_000 - LAPSED
    return [
        grain
        for grain in grains
        if grain.grain.get("relation") != PART or grain.address in named or grain["created_at"] < lapsed
    ]


def _is_address(given: Any) -> bool:
    return isinstance(given, str) and len(given) == 64


class Erasing:
    """Erasures of many grains that a crash does not leave half done.

    What is to be erased is noted first, in grains with the fields of an ``owner``: :meth:`finish` does what a crash
    cut short.
    """

    def __init__(self, store: Store, owner: Mapping[str, Any], reason: str) -> None:
        self._store = store
        self._owner = {**owner, "type": "state", "subject": _ERASING, "relation": _ERASING}
        self._reason = reason

    def check(self, addresses: Iterable[str]) -> None:
        """Raises what keeps one of these grains from being erased. Nothing is erased."""
        for address in addresses:
            with contextlib.suppress(*GONE):
                if self._store.erase(address, self._reason, dry_run=True).get("refusal") is not None:
                    # It says why, and erases nothing.
                    self._store.erase(address, self._reason)

    def erase_all(self, addresses: Sequence[str]) -> None:
        """Erases all of these grains, or raises what keeps one of them, and erases none."""
        self.check(addresses)
        if not addresses:
            return
        self._finish(self._note(addresses, None), addresses)

    def erase_with_parts(self, address: str, parts: Sequence[str]) -> bool:
        """Erases a grain and then its parts. False if somebody else erased it meanwhile."""
        notes: list[str] = []
        if parts:
            self.check([address, *parts])
            notes = self._note(parts, address)
        try:
            self._store.erase(address, self._reason)
        except GONE:
            erase_if_allowed(self._store, notes, self._reason)
            return False
        self._finish(notes, parts)
        return True

    def finish(self, where: Mapping[str, Any], is_wanted: Callable[[Found], bool]) -> None:
        """Finishes what was cut short. A session that may not erase leaves it to one that may."""
        where = {**where, "type": "state", "relation": _ERASING}
        for note in list(found(self._store, where, is_wanted)):
            of = note["context"].get("of")
            is_there = of is not None and self._store.exists(of)
            if is_there and note["created_at"] > time.time_ns() // 1_000_000 - LAPSED:
                # Somebody may be about to erase it.
                continue
            try:
                self._finish([note.address], () if is_there else self._own(note))
            except PermissionError as error:
                _log.info("an erasure is left unfinished: %s", error)

    def _own(self, note: Found) -> Iterator[str]:
        """What a note may have erased: nothing beyond its own namespace, whoever wrote it."""
        own = note.get("namespace", "shared")
        for address in filter(_is_address, note["context"].get("erase", ())):
            # One by one, since an answer has 8 MiB.
            with contextlib.suppress(*GONE):
                space = self._store.get(address).get("namespace", "shared")
                if space == own or space.startswith(f"{own}:"):
                    yield address

    def _note(self, addresses: Sequence[str], of: str | None) -> list[str]:
        """Notes what is to be erased; with ``of``, once that is gone."""
        groups = [list(addresses[at : at + _ADDRESSES]) for at in range(0, len(addresses), _ADDRESSES)]
        contexts = [{"erase": group, **({} if of is None else {"of": of})} for group in groups]
        grains = [{**self._owner, "run_id": uuid.uuid4().hex, "context": context} for context in contexts]
        return [put.address for put in self._store.put_many(grains)]

    def _finish(self, notes: Iterable[str], addresses: Iterable[str]) -> None:
        erase(self._store, addresses, self._reason)
        erase(self._store, notes, self._reason)
