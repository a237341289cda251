"""Memories of Pydantic AI on a store: ``pip install grainstore[pydantic-ai]``.

>>> memory = Memory(store=GrainMemoryStore("memory.grains"))  # doctest: +SKIP
>>> agent = Agent(model, capabilities=[memory])  # doctest: +SKIP

Each file is a chain of versions, whose addresses are the versions of the protocol: what is written over stays in the
history, and a deleted file is erased for good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from ._adapters import AnyStore, Holder
from ._errors import IntegrityError
from ._files import CHANGED, Entry, Files, Path

try:
    import anyio.to_thread
    from pydantic_ai_harness.memory import (
        MemoryConflictError,
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemoryOperationConflictError,
        MemorySearchMatch,
        MemorySearchResult,
    )
except ImportError as error:
    raise ImportError("grainstore.pydantic_ai needs the harness: pip install grainstore[pydantic-ai]") from error

__all__ = ["GrainMemoryStore"]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_MAX_METADATA = 4096
#: Receipts of a file that stay when it is deleted, the latest ones.
_MAX_RECEIPTS = 1024
_MAX_RECEIPT_BYTES = 256 * 1024


class GrainMemoryStore(Holder):
    """The protocols ``MemoryStore``, ``MetadataMemoryStore`` and ``SearchableMemoryStore``, on a store or its path.

    A write with another ``expected_version`` than the current one is a ``MemoryConflictError``, of whatever process
    the other write was. An ``operation`` is done once, and then answers what it answered first (``replayed``), also
    after its file was deleted. ``user_id`` says whose the files are, for ``erase_user``: of two persons, none has the
    other's; without it they are of the person of the store's session. ``fields`` are what else each grain holds, such
    as ``processing_basis``. Deleting needs a session that may erase, else it is an :class:`grainstore.AccessError`.
    What has begun is done, also if its task is cancelled.
    """

    def __init__(
        self,
        store_or_path: AnyStore,
        *,
        namespace: str = "pydantic-ai-memory",
        user_id: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self._files = Files(self._hold(store_or_path), namespace, user_id, fields)

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """The file at a path, cut to ``max_chars`` characters, or None.

        Raises :class:`grainstore.IntegrityError` if a part of its text was erased.
        """
        parts = _checked(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        return await _on_thread(self._read, parts, max_chars)

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """What an operation answered, or None. Raises ``MemoryOperationConflictError`` for another fingerprint."""
        return await _on_thread(self._receipt, operation)

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Makes a file (``expected_version`` None), or writes over that version of it."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """As :meth:`write`, with what the write says about itself: texts by name, 4,096 characters as JSON."""
        context = _metadata(metadata)
        return await _on_thread(self._write, path, _checked(path), content, expected_version, context, operation)

    async def delete(
        self,
        path: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Erases a file with its history for good, if ``expected_version`` is the current one."""
        return await _on_thread(self._delete, path, _checked(path), expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """The paths that begin with a prefix, sorted, at most ``limit``."""
        _check_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        return (await _on_thread(self._paths, prefix))[:limit]

    async def search(
        self,
        prefix: str,
        query: str,
        *,
        limit: int,
        max_files: int,
        max_chars: int,
        max_file_chars: int,
    ) -> MemorySearchResult:
        """The files right below a prefix that have words of a query, those with most of them first.

        A word counts wherever it stands in the first ``max_file_chars`` of a file, and twice in its name.
        """
        _check_prefix(prefix)
        words = query.lower().split()
        if not words or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        return await _on_thread(self._search, prefix, words, limit, max_files, max_chars, max_file_chars)

    # Within

    def _read(self, path: Path, max_chars: int) -> MemoryFile | None:
        while (entry := self._files.find(path)) is not None:
            try:
                text = self._files.text(entry)
            except CHANGED:
                continue
            operation, metadata = entry.context.get("operation"), entry.context.get("metadata")
            return MemoryFile(
                content=text[:max_chars],
                version=entry.address,
                operation_id=None if operation is None else unquote(operation),
                truncated=len(text) > max_chars,
                metadata=None if metadata is None else json.loads(metadata),
            )
        return None

    def _receipt(self, operation: MemoryOperation) -> MemoryMutation | None:
        for grain in self._files.tagged(_tag(operation.id)):
            fingerprint, version, existed = grain["context"]["receipts"][_plain(operation.id)]
            if fingerprint != _plain(operation.fingerprint):
                raise MemoryOperationConflictError(f"operation id {operation.id!r} was used with other arguments")
            return MemoryMutation(version=version or _own_version(grain), replayed=True, existed=existed)
        return None

    def _write(
        self,
        shown: str,
        path: Path,
        content: str,
        expected: str | None,
        context: dict[str, Any],
        operation: MemoryOperation | None,
    ) -> MemoryMutation:
        def change(entry: Entry | None) -> str:
            fields = _fields(context, operation, existed=entry is not None)
            if entry is None:
                return self._files.create(path, content, **fields)
            return self._files.replace(entry, content, **fields)

        return self._changed(shown, path, expected, operation, change)

    def _delete(
        self, shown: str, path: Path, expected: str | None, operation: MemoryOperation | None
    ) -> MemoryMutation:
        def change(entry: Entry | None) -> None:
            if entry is not None:
                self._files.remove(entry, **self._receipts(entry, operation))
            elif operation is not None:
                self._files.leave(_receipt_fields(_receipt_of(operation, existed=False)))

        return self._changed(shown, path, expected, operation, change)

    def _changed(
        self,
        shown: str,
        path: Path,
        expected: str | None,
        operation: MemoryOperation | None,
        change: Callable[[Entry | None], str | None],
    ) -> MemoryMutation:
        """Changes a file if its version is the expected one, and the operation was not done before."""
        before = None if operation is None else self._receipt(operation)
        if before is not None:
            return before
        if operation is None:
            done = self._changed_now(path, expected, change)
        else:
            with self._files.alone(_tag(operation.id)):
                # Somebody else may have done it meanwhile.
                done = self._receipt(operation) or self._changed_now(path, expected, change)
        if done is not None:
            return done
        raise MemoryConflictError(f"memory path {shown!r} has another version than the expected one")

    def _changed_now(
        self, path: Path, expected: str | None, change: Callable[[Entry | None], str | None]
    ) -> MemoryMutation | None:
        """Changes a file; None if its version is not the expected one."""
        entry = self._files.find(path)
        if (None if entry is None else entry.address) != expected:
            return None
        try:
            return MemoryMutation(version=change(entry), replayed=False, existed=entry is not None)
        except CHANGED:
            return None

    def _receipts(self, entry: Entry, operation: MemoryOperation | None) -> dict[str, Any]:
        """Receipts of all that was done to a file, to be kept when it is gone."""
        kept: dict[str, Any] = {} if operation is None else _receipt_of(operation, existed=True)
        room = _MAX_RECEIPT_BYTES
        for version in self._files.versions(entry):
            for id, (fingerprint, _, existed) in version.context.get("receipts", {}).items():
                kept[id] = [fingerprint, version.address, existed]
                room -= 2 * len(id) + len(fingerprint)
            if len(kept) >= _MAX_RECEIPTS or room < 0:
                break
        return _receipt_fields(kept) if kept else {}

    def _paths(self, prefix: str) -> list[str]:
        return [path for path, _ in self._below(prefix)]

    def _below(self, prefix: str) -> list[tuple[str, Entry]]:
        """Paths that begin with a prefix, sorted, with their files."""
        directory = tuple(prefix.split("/")[:-1])
        found = (("/".join(entry.path), entry) for entry in self._files.below(directory))
        return sorted((one for one in found if one[0].startswith(prefix)), key=lambda one: one[0])

    def _search(
        self, prefix: str, words: list[str], limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        files = [one for one in self._below(prefix) if "/" not in one[0][len(prefix) :]]
        truncated = len(files) > max_files
        scored: list[tuple[float, str, str]] = []
        for path, entry in files[:max_files]:
            try:
                whole = self._files.text(entry)
            except (*CHANGED, IntegrityError):
                continue
            truncated = truncated or len(whole) > max_file_chars
            text = whole[:max_file_chars]
            score = sum(text.lower().count(word) + 2 * path[len(prefix) :].lower().count(word) for word in words)
            if score:
                scored.append((-float(score), path, text))
        scored.sort()
        matches: list[MemorySearchMatch] = []
        for rank, path, text in scored[:limit]:
            room = max_chars - len(path) + len(prefix)
            if room <= 0:
                break
            snippet = _snippet(text, words, room)
            matches.append(MemorySearchMatch(path=path, snippet=snippet, score=-rank))
            max_chars = room - len(snippet)
        scanned = min(len(files), max_files)
        return MemorySearchResult(matches=matches, scanned=scanned, truncated=truncated or len(scored) > len(matches))


async def _on_thread(work: Callable[..., T], *arguments: Any) -> T:
    return await anyio.to_thread.run_sync(partial(work, *arguments))


def _checked(path: str) -> Path:
    """The names of a path. Raises ``ValueError`` for one that is none, as the stores of the harness do."""
    names = path.split("/")
    if not all(_NAME.fullmatch(name) and ".." not in name and name != "." for name in names):
        raise ValueError(f"invalid memory path: {path!r}")
    return tuple(names)


def _check_prefix(prefix: str) -> None:
    if prefix:
        _checked(prefix.removesuffix("/"))


def _metadata(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """Metadata as a version holds it; empty for none."""
    if not metadata:
        return {}
    texts = [text for pair in metadata.items() for text in pair]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("names and values of metadata are texts")
    if any("\0" in text for text in texts):
        raise ValueError("names and values of metadata have no null characters")
    size = len(json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":")))
    if size > _MAX_METADATA:
        raise ValueError(f"metadata has {_MAX_METADATA} characters of JSON at most, not {size}")
    return {"metadata": json.dumps(dict(metadata))}


def _fields(context: dict[str, Any], operation: MemoryOperation | None, *, existed: bool) -> dict[str, Any]:
    """What a version holds beside its text: metadata, and the receipt of the operation that wrote it."""
    if operation is None:
        return {"context": context}
    receipt = _receipt_fields(_receipt_of(operation, existed=existed))
    receipt["context"] = {**context, **receipt["context"], "operation": _plain(operation.id)}
    return receipt


def _receipt_of(operation: MemoryOperation, *, existed: bool) -> dict[str, Any]:
    """What was done by its id: the fingerprint, the version (None for that of the grain, or none), and ``existed``."""
    return {_plain(operation.id): [_plain(operation.fingerprint), None, existed]}


def _receipt_fields(receipts: dict[str, Any]) -> dict[str, Any]:
    return {"context": {"receipts": receipts}, "structural_tags": [f"operation:{id}" for id in receipts]}


def _tag(operation_id: str) -> str:
    return f"operation:{_plain(operation_id)}"


def _plain(text: str) -> str:
    """A text in signs that a grain keeps as they are."""
    return quote(text, safe="")


def _own_version(grain: Mapping[str, Any]) -> str | None:
    """The version that a receipt in a version is about: that one. A receipt of a file that is gone is about none."""
    return grain["address"] if "bytes" in grain["context"] else None


def _snippet(text: str, words: list[str], room: int) -> str:
    """A piece of a text with the first of the words a third into it, with dots where the text goes on."""
    lower = text.lower()
    places = [place for place in (lower.find(word) for word in words) if place >= 0]
    begin = max(0, min(places, default=0) - room // 3)
    end = min(len(text), begin + room)
    begin = max(0, end - room)
    piece = text[begin:end]
    dots = "." * min(3, len(piece))
    if begin:
        piece = dots + piece[len(dots) :]
    if end < len(text):
        piece = piece[: len(piece) - len(dots)] + dots
    return piece
