"""Files by path, of which each is a chain of versions of a grain.

A file is a grain of the type ``state``: its ``subject`` is the path with percent-encoded components, its ``namespace``
the one of the adapter with the directories below it, and its ``entity_id`` stays the same in all versions, parts of
texts and moves. A change supersedes the version that was read, so that of two that change it one is refused.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from ._adapters import PART, keep, text_of
from ._answers import Found, Version
from ._errors import ConflictError, ErasedError, NotFoundError
from ._store import Store

_log = logging.getLogger("grainstore")

#: The components of a path, below the root of the files.
Path: TypeAlias = "tuple[str, ...]"

#: What came first, where a version cannot be replaced: the version is current no more, or erased.
CHANGED = (ConflictError, ErasedError, NotFoundError)

_FILE = "file"
_REMOVING = "removing"
_REMOVED = "removed"
_REASON = "the file was removed"


class Entry:
    """A version of a file, or a directory."""

    __slots__ = ("address", "grain", "path")

    def __init__(self, address: str, grain: Mapping[str, Any]) -> None:
        self.address = address
        self.grain = grain
        self.path: Path = tuple(unquote(name) for name in str(grain["subject"]).split("/"))

    @property
    def is_directory(self) -> bool:
        """True for a directory, which has no text."""
        return "bytes" not in self.context

    @property
    def id(self) -> str:
        """What all versions of the file have in common."""
        return str(self.grain["entity_id"])

    @property
    def context(self) -> dict[str, Any]:
        """What the version holds: the text, and what else was written with it."""
        context: dict[str, Any] = self.grain["context"]
        return context


class Files:
    """The files of a namespace of a store: those of a person, if there is a ``user_id``."""

    def __init__(self, store: Store, namespace: str, user_id: str | None, more: Mapping[str, Any] | None) -> None:
        if not namespace:
            raise ValueError("the files need a namespace of their own")
        self.store = store
        self.namespace = namespace
        # An encrypted store finds grains of a person by the person alone.
        self._whose = {} if user_id is None else {"user_id": user_id}
        self._owner = {**(more or {}), **self._whose}
        self._finish_removals()

    # Reading

    def find(self, path: Path) -> Entry | None:
        """The current version of a file, or a directory that was made."""
        found = self.store.page(self._place(path), sort="newest", limit=1).results
        return _entry(found[0]) if found and _is_entry(found[0]) else None

    def below(self, directory: Path) -> list[Entry]:
        """All files and directories below a directory, sorted by path."""
        found = filter(_is_entry, self.store.query(self._where(directory)))
        return sorted(map(_entry, found), key=lambda entry: entry.path)

    def has_below(self, directory: Path) -> bool:
        """True if there is anything below a directory."""
        return bool(self.store.page(self._where(directory), limit=1).results)

    def text(self, entry: Entry) -> str:
        """The text of a version. Raises one of :data:`CHANGED` if it was erased meanwhile."""
        return text_of(self.store, entry.context)

    def versions(self, entry: Entry) -> list[Entry]:
        """All versions of a file, newest first, under whatever paths it had."""
        return [_entry(version) for version in self.store.history(entry.address) if _is_entry(version)]

    def tagged(self, tag: str) -> list[Mapping[str, Any]]:
        """Grains in any state with a tag, each as a dict with its ``address``."""
        where = {**self._whose, "namespace": self.namespace, "tags_all": [tag]}
        found = self.store.query(where, include_superseded=True)
        return [{**one.grain, "address": one.address} for one in found]

    # Writing

    def create(self, path: Path, text: str, **fields: Any) -> str:
        """Stores a file that is not there, and returns its address. Raises :class:`ConflictError` if it is."""
        return self._create(path, uuid.uuid4().hex, text, fields)

    def make_directory(self, path: Path) -> None:
        """Makes a directory. Raises :class:`ConflictError` if there is something."""
        self._create(path, uuid.uuid4().hex, None, {})

    def replace(self, entry: Entry, text: str, **fields: Any) -> str:
        """Puts a new version in place of one. Raises one of :data:`CHANGED` if it is not the current one."""
        context = {**self._kept(entry.id, text), **fields.pop("context", {})}
        grain = self._grain(entry.path, entry.id, context, fields)
        return self.store.supersede(entry.address, grain, reason="the file was changed").address

    def move(self, entry: Entry, path: Path) -> None:
        """Gives a file another path, where nothing may be. Raises one of :data:`CHANGED`."""
        moved = self._moved(entry.address, entry, path)
        if len(self.store.page(self._place(path), limit=2).results) > 1:
            self._moved(moved, entry, entry.path)
            raise ConflictError(f"something else was moved to {_subject(path)}", code="ERR_CONFLICT")

    def remove(self, entry: Entry, **receipt: Any) -> None:
        """Erases a file with all its versions for good. Raises one of :data:`CHANGED` if it is not current.

        What ``receipt`` holds, ``context`` and ``structural_tags``, stays. A removal that is cut short is finished
        when the files are opened next.
        """
        for address in self._all(entity_id=entry.id):
            if self.store.erase(address, _REASON, dry_run=True).get("refusal") is not None:
                # It says why, and erases nothing.
                self.store.erase(address, _REASON)
        stone = self._stone(entry.id, _REMOVING, receipt)
        self._finish_removal(self.store.supersede(entry.address, stone, reason=_REASON).address, stone)

    def leave(self, receipt: Mapping[str, Any]) -> None:
        """Stores a receipt of what was done to no file."""
        self.store.put(self._stone(uuid.uuid4().hex, _REMOVED, receipt))

    def clear(self) -> None:
        """Erases all files for good, with what is left of those that were removed."""
        for relation in (_FILE, PART, _REMOVING, _REMOVED):
            self._erase(self._all(type="state", relation=relation))

    # Within

    def _namespace(self, directory: Path) -> str:
        return ":".join([self.namespace, *(quote(name, safe="") for name in directory)])

    def _where(self, directory: Path) -> dict[str, Any]:
        return {**self._whose, "namespace": self._namespace(directory), "type": "state", "relation": _FILE}

    def _place(self, path: Path) -> dict[str, Any]:
        return {**self._where(path[:-1]), "subject": _subject(path)}

    def _create(self, path: Path, id: str, text: str | None, fields: dict[str, Any]) -> str:
        context = {**self._kept(id, text), **fields.pop("context", {})}
        put = self.store.put(self._grain(path, id, context, fields), same_fact="unique")
        return put.address

    def _moved(self, address: str, entry: Entry, path: Path) -> str:
        grain = self._grain(path, entry.id, entry.context, {})
        return self.store.supersede(address, grain, reason="the file was moved").address

    def _kept(self, id: str, text: str | None) -> dict[str, Any]:
        if text is None:
            return {"directory": True}
        owner = {**self._owner, "namespace": self.namespace, "subject": id, "entity_id": id}
        return keep(self.store, text, {**owner, "run_id": uuid.uuid4().hex})

    def _grain(self, path: Path, id: str, context: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        """A version. Its ``run_id`` tells it from every other, also from one that was erased."""
        known = {"entity_id": id, "run_id": uuid.uuid4().hex, "context": dict(context)}
        return {**self._owner, **self._place(path), **known, **fields}

    def _stone(self, id: str, relation: str, receipt: Mapping[str, Any]) -> dict[str, Any]:
        """What takes the place of a file that is removed."""
        place = {"namespace": self.namespace, "subject": id, "relation": relation}
        known = {"type": "state", "entity_id": id, "run_id": uuid.uuid4().hex, "context": {"removed": True}}
        return {**self._owner, **place, **known, **receipt}

    def _finish_removals(self) -> None:
        where = {**self._whose, "namespace": self.namespace, "type": "state", "relation": _REMOVING}
        for found in list(self.store.query(where)):
            try:
                self._finish_removal(found.address, found.grain)
            except PermissionError as error:
                # A session that may not erase leaves it to one that may.
                _log.info("a removal is left unfinished: %s", error)

    def _finish_removal(self, address: str, stone: Mapping[str, Any]) -> None:
        id = stone["entity_id"]
        versions = self._all(entity_id=id)
        self._erase(version for version in versions if version != address)
        if stone.get("structural_tags"):
            receipt = {name: stone[name] for name in ("context", "structural_tags")}
            try:
                self.store.supersede(address, self._stone(id, _REMOVED, receipt), reason=_REASON)
            except CHANGED:
                return
        self._erase([address])

    def _all(self, **where: str) -> list[str]:
        where = {**self._whose, "namespace": self.namespace, **where}
        return [found.address for found in self.store.query(where, include_superseded=True)]

    def _erase(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            try:
                self.store.erase(address, _REASON)
            except (ErasedError, NotFoundError):
                continue


def _is_entry(found: Version | Found) -> bool:
    """False for what somebody else put into the namespace."""
    return isinstance(found.grain.get("context"), dict) and "entity_id" in found.grain


def _entry(found: Version | Found) -> Entry:
    return Entry(found.address, found.grain)


def _subject(path: Path) -> str:
    return "/".join(quote(name, safe="") for name in path)
