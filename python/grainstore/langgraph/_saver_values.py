"""Bytes in grains: cut into parts, which several may share a grain, and put together again."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .._errors import ErasedError, IntegrityError
from .._store import Store
from ._saver_keys import VALUES, name_of, text_of

T = TypeVar("T")

#: Bytes of values in one grain: in base64 that is below the 1 MiB of a grain.
SHEET_BYTES = 640 * 1024
#: Bytes that may stand in the grain of a checkpoint, or of its writes, itself.
INLINE_BYTES = 32 * 1024
#: Bytes of values beyond which they are stored before what names them, and not in one commit with it.
EARLY_BYTES = 1024 * 1024
# Sheets that are stored at a time: a batch has at most 32 MiB.
_SHEETS_AT_ONCE = 24
# Bytes of values that are read at a time: an answer has at most 8 MiB, in base64.
_READ_BYTES = 4 * 1024 * 1024
_READ_GRAINS = 1000
# Bytes of values that are kept to be read again.
_LIBRARY_BYTES = 16 * 1024 * 1024

_ATTEMPTS = 5
_DATA = "data:application/octet-stream;base64,"


class Gone(Exception):
    """Bytes were erased between the reading of a checkpoint and theirs."""


def settled(call: Callable[[], T]) -> T:
    """Reads again where what was read was erased meanwhile: the next time it is not found.

    Raises ``IntegrityError`` where values of a checkpoint are missing that is there.
    """
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(Gone):
            return call()
    raise IntegrityError(
        "values of a checkpoint are missing",
        code="ERR_INTEGRITY",
        hint="look the store over with Store.verify(full=True)",
    )


@dataclass(eq=False)
class Sheet:
    """A grain with parts of values. ``address`` is empty until it is known."""

    address: str = ""
    size: int = 0
    parts: list[bytes] = field(default_factory=list)


@dataclass
class Kept:
    """A value of a serializer: its type, and its bytes here or in parts of sheets."""

    tag: str
    data: bytes | None
    parts: list[tuple[Sheet, int]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """It as a grain has it. The sheets have their addresses by now."""
        if self.data is not None:
            return {"type": name_of(self.tag), "data": base64.b64encode(self.data).decode("ascii")}
        return {"type": name_of(self.tag), "parts": [[sheet.address, at, sheet.size] for sheet, at in self.parts]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Kept:
        """It, from a grain."""
        if "data" in plain:
            return cls(text_of(plain["type"]), base64.b64decode(plain["data"]))
        parts = [(Sheet(address, size), at) for address, at, size in plain["parts"]]
        return cls(text_of(plain["type"]), None, parts)

    def sheets(self) -> Iterator[Sheet]:
        """The sheets that its bytes are in."""
        for sheet, _ in self.parts:
            yield sheet


class Packing:
    """Values on their way into grains.

    ``common`` are the fields that all of the grains have. Few bytes are committed with what names them: ``grains``
    are those to commit. More than ``EARLY_BYTES`` are stored by ``put`` before it, which answers their addresses.
    """

    def __init__(
        self,
        common: Mapping[str, Any],
        address: Callable[[dict[str, Any]], str],
        put: Callable[[list[dict[str, Any]]], list[str]],
    ) -> None:
        self._common = common
        self._address = address
        self._put = put
        self._open: list[Sheet] = []
        self._inline = INLINE_BYTES
        self.grains: list[dict[str, Any]] = []

    def inline(self, tag: str, data: bytes) -> Kept:
        """Keeps bytes in the grain that names them as long as there is room, else in sheets."""
        if len(data) <= self._inline:
            self._inline -= len(data)
            return Kept(tag, data)
        return self.apart(tag, data)

    def apart(self, tag: str, data: bytes) -> Kept:
        """Keeps bytes in sheets; empty ones need none."""
        kept = Kept(tag, None if data else b"")
        at = 0
        while at < len(data):
            if not self._open or self._open[-1].size >= SHEET_BYTES:
                self._open.append(Sheet())
            sheet = self._open[-1]
            part = data[at : at + SHEET_BYTES - sheet.size]
            kept.parts.append((sheet, len(sheet.parts)))
            sheet.parts.append(part)
            sheet.size += len(part)
            at += len(part)
        return kept

    def seal(self) -> None:
        """Makes grains of the sheets, which gives them their addresses."""
        sheets, self._open = self._open, []
        if sum(sheet.size for sheet in sheets) <= EARLY_BYTES:
            for sheet in sheets:
                grain = self._grain(sheet, {})
                sheet.address = self._address(grain)
                self.grains.append(grain)
            return
        for at in range(0, len(sheets), _SHEETS_AT_ONCE):
            batch = sheets[at : at + _SHEETS_AT_ONCE]
            addresses = self._put([self._grain(sheet, early()) for sheet in batch])
            for sheet, address in zip(batch, addresses, strict=True):
                sheet.address = address

    def _grain(self, sheet: Sheet, metadata: Mapping[str, Any]) -> dict[str, Any]:
        references = [_reference(part) for part in sheet.parts]
        references[0]["metadata"] = metadata
        sheet.parts = []
        return {**self._common, "namespace": VALUES, "content_refs": references}


def _reference(part: bytes) -> dict[str, Any]:
    return {"uri": _DATA + base64.b64encode(part).decode("ascii"), "modality": "binary"}


class Library:
    """Reads sheets, and keeps some of those that were read last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[str, list[bytes]] = {}
        self._size = 0

    def fetch(self, values: Iterable[Kept]) -> None:
        """Reads what these values need; :meth:`bytes_of` has it until the next call. Raises :class:`Gone`."""
        sizes = {sheet.address: sheet.size for kept in values for sheet in kept.sheets()}
        missing = {address: size for address, size in sizes.items() if address not in self._parts}
        if self._size + sum(missing.values()) > _LIBRARY_BYTES:
            self._parts = {address: parts for address, parts in self._parts.items() if address in sizes}
            self._size = sum(sizes[address] for address in self._parts)
        for addresses in loads(missing):
            for address, grain in zip(addresses, sheets_of(self._store, addresses), strict=True):
                self._parts[address] = _parts_of(grain)
                self._size += sizes[address]

    def bytes_of(self, kept: Kept) -> bytes:
        """The bytes of a value whose sheets were fetched."""
        if kept.data is not None:
            return kept.data
        return b"".join(self._parts[sheet.address][at] for sheet, at in kept.parts)


def grains_of(store: Store, addresses: list[str]) -> list[dict[str, Any] | None]:
    """Grains by their addresses, None for those that are not there.

    Raises :class:`Gone` where the key of an encrypted one is destroyed meanwhile.
    """
    try:
        grains: list[dict[str, Any] | None] = store.call("get_batch", {"addresses": addresses})["grains"]
    except ErasedError as error:
        raise Gone(str(error)) from error
    return grains


def sheets_of(store: Store, addresses: list[str]) -> list[dict[str, Any]]:
    """Grains by their addresses. Raises :class:`Gone` if one is not there."""
    grains = [grain for grain in grains_of(store, addresses) if grain is not None]
    if len(grains) < len(addresses):
        raise Gone(f"{len(addresses) - len(grains)} grains are gone")
    return grains


def early() -> dict[str, Any]:
    """What tells of values that they are stored before what names them, and when, in milliseconds."""
    return {"early": time.time_ns() // 1_000_000}


def early_at(grain: Mapping[str, Any]) -> int | None:
    """When values were stored that were stored before what names them."""
    at: int | None = (grain["content_refs"][0].get("metadata") or {}).get("early")
    return at


def _parts_of(grain: Mapping[str, Any]) -> list[bytes]:
    return [base64.b64decode(reference["uri"][len(_DATA) :]) for reference in grain["content_refs"]]


def loads(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Addresses, as many at a time as an answer has room for."""
    load: list[str] = []
    room = _READ_BYTES
    for address, size in sizes.items():
        if load and (size > room or len(load) == _READ_GRAINS):
            yield load
            load, room = [], _READ_BYTES
        load.append(address)
        room -= size
    if load:
        yield load
