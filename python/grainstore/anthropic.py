"""Anthropic's memory tool on a store: ``pip install grainstore[anthropic]``.

>>> tool = GrainMemoryTool("memory.grains")  # doctest: +SKIP
>>> client.beta.messages.run_tools(tools=[tool], ...)  # doctest: +SKIP

Each file is a chain of versions: what a model overwrites stays in the history. A deleted file is erased for good.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ._adapters import AnyStore, Holder
from ._files import CHANGED, Entry, Files, Path

try:
    import anyio.to_thread
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise ImportError("grainstore.anthropic needs the SDK: pip install grainstore[anthropic]") from error

__all__ = ["AsyncGrainMemoryTool", "GrainMemoryTool"]

_ROOT = "/memories"
_MAX_LINES = 999_999
_NUMBER_WIDTH = 6
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4095
#: What a directory takes, as file systems say of a small one.
_DIRECTORY_BYTES = 4096
#: How often a change is made anew because something else came first.
_ATTEMPTS = 64


class GrainMemoryTool(Holder, BetaAbstractMemoryTool):
    """The memory tool, on a store or the path of one.

    Files lie in ``namespace``, which is the tool's alone; two tools of one namespace share their files, in one process
    or several. ``user_id`` says whose they are, for ``erase_user``: a tool of one person has none of another's; without
    it they are of the person of the store's session. ``fields`` are what else each grain holds, such as
    ``processing_basis``. Answers and errors are those of ``BetaLocalFilesystemMemoryTool``: ``ToolError`` for what a
    model can mend, ``OSError`` for what a file system refuses. Deleting needs a session that may erase, else it is an
    :class:`grainstore.AccessError`; where a rule or a hold keeps one of the files, all stay.
    """

    def __init__(
        self,
        store_or_path: AnyStore,
        *,
        namespace: str = "anthropic-memory",
        user_id: str | None = None,
        fields: Mapping[str, Any] | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = Files(self._hold(store_or_path), namespace, user_id, fields)
        self._lock = threading.RLock()

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The lines of a file, numbered, or what lies in a directory, two levels deep."""
        path = _parsed(command.path)
        with self._lock:
            try:
                entry = self._looked_up(path)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise _no_path(command.path) from error
            if entry is None:
                return self._listing(path, command.path)
            text = self._read(entry, command.path)
        return _numbered_view(text, command.path, command.view_range)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Makes a file, and the directories above it. One that is there is an error."""
        path = _parsed(command.path)
        command.file_text.encode("utf-8")
        with self._lock:
            self._make_directories(path[:-1])
            if self._exists(path):
                raise ToolError(f"File {command.path} already exists")
            self._entered(path[:-1])
            try:
                self._files.create(path, command.file_text)
            except CHANGED as error:
                raise ToolError(f"File {command.path} already exists") from error
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that stands in a file once, and shows the lines around it."""
        text, at = self._changed(command.path, lambda text: _replaced(text, command))
        shown = _numbered(text.split("\n"), max(0, at - 2), at + 3)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Inserts lines behind a line of a file, or before the first (0)."""
        self._changed(command.path, lambda text: (_inserted(text, command), 0))
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Erases a file, or a directory with all in it, with the whole history, for good."""
        path = _parsed(command.path)
        if not path:
            raise ToolError("Cannot delete the /memories directory itself")
        with self._lock:
            if not self._exists(path):
                raise ToolError(f"The path {command.path} does not exist")
            entries = self._files.below(path)
            entry = self._files.find(path)
            if entry is not None:
                entries.append(entry)
            self._files.check_removal(entries)
            for one in entries:
                self._removed(one)
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file with its history, or a directory with all in it, file by file."""
        old, new = _parsed(command.old_path), _parsed(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")
        taken = ToolError(f"The destination {command.new_path} already exists")
        with self._lock:
            if self._exists(new):
                raise taken
            directory = self._files.find(old)
            self._files.check_move([*self._files.below(old), *([] if directory is None else [directory])])
            self._make_directories(new[:-1])
            try:
                self._entered(old[:-1])
                self._entered(new[:-1])
                entry = self._looked_up(old)
            except FileNotFoundError as error:
                raise ToolError(f"The path {command.old_path} does not exist") from error
            if new[: len(old)] == old:
                raise _os_error(errno.EINVAL, command.new_path)
            if entry is not None or self._files.find(old) is not None:
                self._moved(old, new, taken)
            for inner in self._files.below(old):
                self._moved(inner.path, new + inner.path[len(old) :], taken)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Erases all files, with the whole history, for good."""
        with self._lock:
            self._files.clear()
        return "All memory cleared"

    # Within

    def _looked_up(self, path: Path) -> Entry | None:
        """The file of a path; None for a directory. Raises what a file system does where there is neither."""
        for depth in range(1, len(path) + 1):
            if len(path[depth - 1].encode("utf-8")) > _MAX_NAME_BYTES:
                raise _os_error(errno.ENAMETOOLONG, _shown(path))
            entry = self._files.find(path[:depth])
            if entry is None and not self._files.has_below(path[:depth]):
                raise _os_error(errno.ENOENT, _shown(path))
            if entry is not None and not entry.is_directory:
                if depth < len(path):
                    raise _os_error(errno.ENOTDIR, _shown(path))
                return entry
        return None

    def _exists(self, path: Path) -> bool:
        try:
            self._looked_up(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _entered(self, directory: Path) -> None:
        """Raises what a file system does if this is no directory."""
        if self._looked_up(directory) is not None:
            raise _os_error(errno.ENOTDIR, _shown(directory))

    def _make_directories(self, path: Path) -> None:
        for depth in range(1, len(path) + 1):
            try:
                self._looked_up(path[:depth])
            except FileNotFoundError:
                try:
                    self._files.make_directory(path[:depth])
                except CHANGED:
                    continue

    def _read(self, entry: Entry, path: str) -> str:
        try:
            return self._files.text(entry)
        except CHANGED as error:
            raise ToolError(
                f"The file {path} no longer exists (may have been deleted or renamed concurrently)."
            ) from error

    def _changed(self, shown: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
        """Changes the text of a file; if something else changed it meanwhile, that text."""
        path = _parsed(shown)
        with self._lock:
            for _ in range(_ATTEMPTS):
                try:
                    entry = self._looked_up(path)
                except (FileNotFoundError, NotADirectoryError) as error:
                    raise _no_path(shown) from error
                if entry is None:
                    raise ToolError(f"The path {shown} is not a file.")
                text, at = change(self._read(entry, shown))
                try:
                    self._files.replace(entry, text)
                except CHANGED:
                    continue
                return text, at
        raise _always_changed(shown)

    def _removed(self, entry: Entry) -> None:
        """Removes a file; if something else changed it meanwhile, that version; one that is gone is gone."""
        current: Entry | None = entry
        for _ in range(_ATTEMPTS):
            if current is None:
                return
            try:
                return self._files.remove(current)
            except CHANGED:
                current = self._files.find(entry.path)
        raise _always_changed(_shown(entry.path))

    def _moved(self, old: Path, new: Path, taken: ToolError) -> None:
        """Moves a file; if something else changed it meanwhile, that version; one that is gone is gone."""
        for _ in range(_ATTEMPTS):
            entry = self._files.find(old)
            if entry is None:
                return
            if self._files.find(new) is not None:
                raise taken
            try:
                return self._files.move(entry, new)
            except CHANGED:
                continue
        raise _always_changed(_shown(old))

    def _listing(self, path: Path, shown: str) -> str:
        sizes: dict[Path, int | None] = {}
        for entry in self._files.below(path):
            inner = entry.path[len(path) :]
            for depth in range(1, len(inner)):
                sizes.setdefault(inner[:depth], None)
            sizes[inner] = None if entry.is_directory else entry.context["bytes"]
        lines = [f"{_size(_DIRECTORY_BYTES)}\t{shown}"]
        for inner in sorted(sizes):
            if len(inner) > 2 or any(name.startswith(".") for name in inner):
                continue
            size = sizes[inner]
            name = "/".join(inner) + ("/" if size is None else "")
            lines.append(f"{_size(_DIRECTORY_BYTES if size is None else size)}\t{shown}/{name}")
        header = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
        return "\n".join([header, *lines])


class AsyncGrainMemoryTool(BetaAsyncAbstractMemoryTool):
    """:class:`GrainMemoryTool` for asynchronous clients: its commands run on threads, and never block the loop.

    A command that has begun is done, also if its task is cancelled.
    """

    def __init__(
        self,
        store_or_path: AnyStore,
        *,
        namespace: str = "anthropic-memory",
        user_id: str | None = None,
        fields: Mapping[str, Any] | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = GrainMemoryTool(store_or_path, namespace=namespace, user_id=user_id, fields=fields)

    async def close(self) -> None:
        """Closes the store, if the tool opened it."""
        await anyio.to_thread.run_sync(self._tool.close)

    async def __aenter__(self) -> AsyncGrainMemoryTool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """As of :class:`GrainMemoryTool`."""
        return await anyio.to_thread.run_sync(self._tool.clear_all_memory)


def _parsed(path: str) -> Path:
    """The components of a path below the root. Raises ``ToolError`` for one that leads out of it."""
    if not path.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    if "\0" in path:
        # Raises ValueError, in the words of this Python.
        os.lstat(path)
    if len(path.encode("utf-8")) > _MAX_PATH_BYTES:
        raise _os_error(errno.ENAMETOOLONG, path)
    root = _ROOT[1:]
    names = [root]
    for name in path[len(_ROOT) :].split("/"):
        if name in ("", "."):
            continue
        if name != "..":
            names.append(name)
        elif names:
            names.pop()
        else:
            break
    if names[:1] != [root]:
        raise ToolError(f"Path {path} would escape /memories directory")
    return tuple(names[1:])


def _shown(path: Path) -> str:
    return "/".join([_ROOT, *path])


def _os_error(number: int, path: str) -> OSError:
    """The error of a file system, of the class of its number."""
    return OSError(number, os.strerror(number), path)


def _no_path(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _always_changed(path: str) -> ToolError:
    return ToolError(f"The file {path} is changed by others all the time. Please try again.")


def _numbered_view(text: str, path: str, view_range: list[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > _MAX_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 0, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0]) - 1
        last = len(lines) if view_range[1] == -1 else view_range[1]
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"


def _numbered(lines: list[str], first: int, last: int) -> str:
    """Lines from the index ``first`` up to ``last``, each with its number."""
    return "\n".join(
        f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines[first:last], start=first + 1)
    )


def _replaced(text: str, command: BetaMemoryTool20250818StrReplaceCommand) -> tuple[str, int]:
    """The text with its replacement, and the index of the line where that begins."""
    places = _places(text, command.old_str)
    if not places:
        raise ToolError(
            f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
        )
    if text.count(command.old_str) > 1:
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    at = places[0]
    changed = text[:at] + command.new_str + text[at + len(command.old_str) :]
    return changed, text.count("\n", 0, at)


def _places(text: str, part: str) -> list[int]:
    """Where a part of a text begins, also where it overlaps itself."""
    places = []
    at = text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _inserted(text: str, command: BetaMemoryTool20250818InsertCommand) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else changed + "\n"


def _size(count: int) -> str:
    """Bytes in the largest unit of which there is one, with a decimal where it is not whole."""
    unit, scale = 0, 1
    while unit < 3 and count >= scale * 1024:
        unit, scale = unit + 1, scale * 1024
    size = count / scale
    return f"{size:.0f}{'BKMG'[unit]}" if size == int(size) else f"{size:.1f}{'BKMG'[unit]}"
