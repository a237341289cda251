"""What the adapters of frameworks share: whose store they use, and texts of any length and any signs."""

from __future__ import annotations

import base64
import os
import unicodedata
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

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

#: Parts that are stored in one commit (a batch has 32 MiB).
_PARTS_AT_ONCE = 32


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


def keep(store: Store, text: str, owner: Mapping[str, Any], *, readable: bool = True) -> dict[str, Any]:
    """Stores what of a text does not fit a grain, and returns what the grain has to hold, for :func:`text_of`.

    A text that a grain keeps sign by sign stands there as ``text`` if it is to be ``readable``. Any other is ``data``
    (compressed, base64): a grain is in Unicode's form NFC and has no byte-order marks. Beyond :data:`PART_BYTES` its
    ``parts`` are grains of their own, with the fields of ``owner``.

    Raises ``UnicodeEncodeError`` for half of a surrogate pair.
    """
    encoded = text.encode("utf-8")
    size = {"bytes": len(encoded)}
    if readable and len(encoded) <= PART_BYTES and _is_kept(text):
        return {**size, "text": text}
    data = zlib.compress(encoded)
    if len(data) <= PART_BYTES:
        return {**size, "data": base64.b64encode(data).decode("ascii")}
    pieces = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
    parts: list[str] = []
    for at in range(0, len(pieces), _PARTS_AT_ONCE):
        grains = [_part(piece, owner) for piece in pieces[at : at + _PARTS_AT_ONCE]]
        parts.extend(put.address for put in store.put_many(grains))
    return {**size, "parts": parts}


def text_of(store: Store, kept: Mapping[str, Any]) -> str:
    """The text that :func:`keep` took apart. Raises ``LookupError`` if a part was erased meanwhile."""
    text = kept.get("text")
    if isinstance(text, str):
        return text
    if "data" in kept:
        data = base64.b64decode(kept["data"])
    else:
        data = b"".join(base64.b64decode(store.get(part)["context"]["data"]) for part in kept["parts"])
    return zlib.decompress(data).decode("utf-8")


def _is_kept(text: str) -> bool:
    return "\ufeff" not in text and unicodedata.is_normalized("NFC", text)


def _part(piece: bytes, owner: Mapping[str, Any]) -> dict[str, Any]:
    data = base64.b64encode(piece).decode("ascii")
    return {**owner, "type": "state", "relation": PART, "context": {"data": data}}
