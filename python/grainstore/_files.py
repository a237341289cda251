"""Files by path, of which each is a chain of versions of a grain.

A file is a grain of the type ``state``: its ``subject`` is the path with percent-encoded components, its ``namespace``
the one of the adapter with the directories below it, and its ``entity_id`` stays the same in all versions, parts of
texts and moves. A change supersedes the version that was read, so that of two that change it one is refused. What
lies in a namespace below, and is no directory of these files, belongs to others.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from ._adapters import (
    GONE,
    LAPSED,
    PART,
    Erasing,
    erase,
    erase_if_allowed,
    erased_if_refused,
    finished,
    found,
    keep,
    namespace_kept,
    text_of,
    whose,
)
from ._answers import Found, Version
from ._errors import ConflictError, IntegrityError
from ._store import Store

_log = logging.getLogger("grainstore")

#: The components of a path, below the root of the files.
Path: TypeAlias = "tuple[str, ...]"

#: What came first, where a version cannot be replaced: the version is current no more, or erased.
CHANGED = (ConflictError, *GONE)

_FILE = "file"
_REMOVING = "removing"
_REMOVED = "removed"
_CLAIM = "claim"
_REASON = "the file was removed"

#: Milliseconds after which what somebody claimed is free again, since a crash may have ended it.
_CLAIMED = 10_000
#: Seconds between two looks at what somebody else claimed.
_LOOK = 0.01


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
        self.namespace = namespace_kept(namespace)
        # An encrypted store finds grains of a person by the person alone.
        self._whose = whose(store, user_id)
        self._owner = {**(more or {}), **self._whose}
        self._place_of_all = {**self._whose, "namespace": self.namespace}
        self._erasing = Erasing(store, {**self._owner, **self._place_of_all, "entity_id": "erasing"}, _REASON)
        self._finish_removals()

    # Reading

    def find(self, path: Path) -> Entry | None:
        """The current version of a file, or a directory that was made."""
        return next(self._entries(self._place(path), few=True, sort="newest"), None)

    def below(self, directory: Path) -> list[Entry]:
        """All files and directories below a directory, sorted by path."""
        return sorted(self._entries(self._where(directory)), key=lambda entry: entry.path)

    def has_below(self, directory: Path) -> bool:
        """True if there is anything below a directory."""
        return next(self._entries(self._where(directory), few=True), None) is not None

    def text(self, entry: Entry) -> str:
        """The text of a version. Raises one of :data:`CHANGED` if it was erased meanwhile.

        Raises :class:`IntegrityError` if the version is still there, and a part of its text is not.
        """
        try:
            return text_of(self.store, entry.context)
        except CHANGED as error:
            current = self.find(entry.path)
            if current is None or current.address != entry.address:
                raise
            raise IntegrityError(
                f"a part of the text of {'/'.join(entry.path)} was erased",
                code="ERR_INTEGRITY",
                hint="remove the file, and make it anew",
            ) from error

    def versions(self, entry: Entry) -> list[Entry]:
        """All versions of a file, newest first, under whatever paths it had."""
        return [_entry(version) for version in self.store.history(entry.address) if self._is_mine(version)]

    def tagged(self, tag: str) -> list[Mapping[str, Any]]:
        """Grains in any state with a tag, each as a dict with its ``address``."""
        return [{**one.grain, "address": one.address} for one in self._all(tags_all=[tag])]

    # Writing

    def create(self, path: Path, text: str, **fields: Any) -> str:
        """Stores a file that is not there, and returns its address. Raises :class:`ConflictError` if it is."""
        return self._create(path, uuid.uuid4().hex, text, fields)

    def make_directory(self, path: Path) -> None:
        """Makes a directory. Raises :class:`ConflictError` if there is something."""
        self._create(path, uuid.uuid4().hex, None, {})

    def replace(self, entry: Entry, text: str, **fields: Any) -> str:
        """Puts a new version in place of one. Raises one of :data:`CHANGED` if it is not the current one."""
        kept = self._kept(entry.id, text)
        grain = self._grain(entry.path, entry.id, {**kept, **fields.pop("context", {})}, fields)
        with erased_if_refused(self.store, kept.get("parts", ())):
            return self.store.supersede(entry.address, grain, reason="the file was changed").address

    def move(self, entry: Entry, path: Path) -> None:
        """Gives a file another path, where nothing may be. Raises one of :data:`CHANGED`."""
        moved = self._moved(entry.address, entry, path)
        if len(list(self._entries(self._place(path)))) > 1:
            self._moved(moved, entry, entry.path)
            raise ConflictError(f"something else was moved to {_subject(path)}", code="ERR_CONFLICT")

    def check_move(self, entries: list[Entry]) -> None:
        """Raises what keeps one of these files from being moved. Nothing is changed."""
        for entry in entries:
            with contextlib.suppress(*CHANGED):
                if self.store.explain_policy(entry.address)["policy"]["open_to"] == "nobody":
                    # It says why, and moves nothing.
                    self._moved(entry.address, entry, entry.path)

    def check_removal(self, entries: list[Entry]) -> None:
        """Raises what keeps one of these files from being removed. Nothing is changed."""
        for entry in entries:
            self._erasing.check(one.address for one in self._all(entity_id=entry.id))

    def remove(self, entry: Entry, **receipt: Any) -> None:
        """Erases a file with all its versions for good. Raises one of :data:`CHANGED` if it is not current.

        What ``receipt`` holds, ``context`` and ``structural_tags``, stays. A removal that is cut short is finished
        when the files are opened next.
        """
        self.check_removal([entry])
        stone = self._stone(entry.id, _REMOVING, receipt)
        self._finish_removal(self.store.supersede(entry.address, stone, reason=_REASON).address, stone)

    def leave(self, receipt: Mapping[str, Any]) -> None:
        """Stores a receipt of what was done to no file."""
        self.store.put(self._stone(uuid.uuid4().hex, _REMOVED, receipt))

    def clear(self) -> None:
        """Erases all files for good, with what is left of those that were removed: all of them, or none if one is kept.

        What is cut short is finished when the files are opened next.
        """
        relations = (_FILE, PART, _REMOVING, _REMOVED, _CLAIM)
        grains = finished(one for name in relations for one in self._all(type="state", relation=name))
        self._erasing.erase_all([grain.address for grain in grains])
        # A file that was moved meanwhile is a version more, with the parts that were erased.
        for id in {grain["entity_id"] for grain in grains if grain.get("relation") == _FILE}:
            while later := self._all(entity_id=id):
                self._erasing.erase_all([grain.address for grain in later])

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Lets one at a time do what has this name, of all threads and processes.

        Raises :class:`ConflictError` if others do it all the time.
        """
        claim = self._claim(name)
        try:
            yield
        finally:
            self._release(claim, name)

    # Within

    def _namespace(self, directory: Path) -> str:
        return ":".join([self.namespace, *(quote(name, safe="") for name in directory)])

    def _where(self, directory: Path) -> dict[str, Any]:
        return {**self._whose, "namespace": self._namespace(directory), "type": "state", "relation": _FILE}

    def _place(self, path: Path) -> dict[str, Any]:
        return {**self._where(path[:-1]), "subject": _subject(path)}

    def _create(self, path: Path, id: str, text: str | None, fields: dict[str, Any]) -> str:
        kept = self._kept(id, text)
        grain = self._grain(path, id, {**kept, **fields.pop("context", {})}, fields)
        with erased_if_refused(self.store, kept.get("parts", ())):
            return self.store.put(grain, same_fact="unique").address

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
        self._erasing.finish(self._place_of_all, self._is_mine)
        for stone in self._all(type="state", relation=_REMOVING, include_superseded=False):
            try:
                self._finish_removal(stone.address, stone.grain)
            except PermissionError as error:
                # A session that may not erase leaves it to one that may.
                _log.info("a removal is left unfinished: %s", error)
        erase_if_allowed(self.store, [one.address for one in self._all(relation=_CLAIM) if _is_lapsed(one)], _REASON)

    def _finish_removal(self, address: str, stone: Mapping[str, Any]) -> None:
        id = stone["entity_id"]
        versions = [one.address for one in self._all(entity_id=id)]
        erase(self.store, (version for version in versions if version != address), _REASON)
        if stone.get("structural_tags"):
            receipt = {name: stone[name] for name in ("context", "structural_tags")}
            try:
                self.store.supersede(address, self._stone(id, _REMOVED, receipt), reason=_REASON)
            except CHANGED:
                return
        erase(self.store, [address], _REASON)

    def _claim(self, name: str) -> str:
        """Claims a name, once nobody else has it: the address of the claim.

        Raises :class:`ConflictError` if it does not become free.
        """
        patience = time.monotonic() + 6 * _CLAIMED / 1000
        while time.monotonic() < patience:
            grain = self._claim_grain(name, free=False)
            with contextlib.suppress(*CHANGED):
                return self.store.put(grain, same_fact="unique").address
            other = next(found(self.store, self._claim_place(name), self._is_mine, few=True), None)
            if other is not None and (other["context"]["free"] or _is_lapsed(other, _CLAIMED)):
                with contextlib.suppress(*CHANGED):
                    return self.store.supersede(other.address, grain, reason="the claim was free").address
            time.sleep(_LOOK)
        raise ConflictError(f"{name} is being done by somebody else", code="ERR_CONFLICT", hint="try again")

    def _release(self, claim: str, name: str) -> None:
        reason = "what was claimed is done"
        # What could not be released lapses.
        with contextlib.suppress(*CHANGED, PermissionError):
            chain = [version.address for version in self.store.history(claim)]
            try:
                # Of a claim that lapsed, the newer ones are somebody else's.
                erase(self.store, reversed(chain[chain.index(claim) :]), reason)
            except PermissionError:
                self.store.supersede(claim, self._claim_grain(name, free=True), reason=reason)

    def _claim_place(self, name: str) -> dict[str, Any]:
        return {**self._place_of_all, "type": "state", "relation": _CLAIM, "subject": name}

    def _claim_grain(self, name: str, *, free: bool) -> dict[str, Any]:
        known = {"entity_id": name, "run_id": uuid.uuid4().hex, "context": {"free": free}}
        return {**self._owner, **self._claim_place(name), **known}

    def _all(self, *, include_superseded: bool = True, **where: Any) -> list[Found]:
        """The grains of these files, without those of others."""
        where = {**self._place_of_all, **where}
        return list(found(self.store, where, self._is_mine, include_superseded=include_superseded))

    def _entries(self, where: Mapping[str, Any], **how: Any) -> Iterator[Entry]:
        return map(_entry, found(self.store, where, self._is_mine, **how))

    def _is_mine(self, found: Version | Found) -> bool:
        """False for what somebody else put into the namespace, or into one below it."""
        grain = found.grain
        if not isinstance(grain.get("context"), dict) or "entity_id" not in grain:
            return False
        directory = str(grain.get("subject")).split("/")[:-1] if grain.get("relation") == _FILE else []
        return bool(grain.get("namespace") == ":".join([self.namespace, *directory]))


def _entry(found: Version | Found) -> Entry:
    return Entry(found.address, found.grain)


def _subject(path: Path) -> str:
    return "/".join(quote(name, safe="") for name in path)


def _is_lapsed(found: Found, after: int = LAPSED) -> bool:
    return bool(found["created_at"] < time.time_ns() // 1_000_000 - after)
