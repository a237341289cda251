"""The examples of docs/python.md and README.md run as they stand, and print what they say."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

import grainstore
from grainstore import _errors

#: Where the pages are: with the source, or where it is told, as for the tests of a wheel.
ROOT = Path(os.environ.get("GRAINSTORE_DOCS") or Path(__file__).resolve().parents[2])
PYTHON = ROOT / "docs" / "python.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code of a page, and what it is said to print, if that is said."""

    line: int
    code: str
    prints: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of Python of a page. A block of text right behind one is what it prints."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    for fence, behind in zip(fences, [*fences[1:], None], strict=True):
        if fence[1] != "python":
            continue
        told = behind is not None and behind[1] == "text" and not text[fence.end() : behind.start()].strip()
        line = text.count("\n", 0, fence.start(2))
        yield Block(line, fence[2], behind[2] if told and behind is not None else None)


def run_page(page: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs the blocks of a page from top to bottom, in a directory and without a network, and counts them."""
    monkeypatch.chdir(directory)
    # Processes that a page starts find the package where this one does.
    monkeypatch.setenv("PYTHONPATH", str(Path(grainstore.__file__).parents[1]))
    without_network(monkeypatch)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for block in blocks(page):
        printed = run_code(block.code, f"{page.name}", block.line, names)
        if block.prints is not None:
            assert printed == block.prints, f"{page.name}, line {block.line + 1}"
        count += 1
    return count


def run_code(code: str, name: str, line: int, names: dict[str, Any]) -> str:
    """Runs code, and returns what it printed. Its lines are those of the page in a traceback."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, name, "exec"), names)
    return printed.getvalue()


def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses names and addresses of the network to this process."""
    connect = socket.socket.connect

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("an example asks for the network")

    def local(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            refuse()
        connect(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", local)


#: What the examples of a page import beside the package, which may not be installed.
NEEDS = {"docs/python.md": ["anthropic.lib.tools", "pydantic_ai_harness.memory", "agents"]}


@pytest.mark.parametrize("name", ["docs/python.md", "python/README.md"])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(name, []):
        pytest.importorskip(module, reason=f"{name} needs {module}, which cannot be imported here")
    assert run_page(ROOT / name, tmp_path, monkeypatch) > 0


def test_the_table_of_errors_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+Error)` \| ([^|]*)\| (.*) \|$", PYTHON.read_text(encoding="utf-8"), re.MULTILINE)
    told = {name: set(re.findall(r"`((?:ERR_|CAL-E)\w+)`", codes)) for name, _, codes in rows}
    coded: dict[str, set[str]] = {}
    for code, kind in _errors._BY_CODE.items():
        coded.setdefault(kind.__name__, set()).add(code)
    assert {name: codes for name, codes in told.items() if name in coded} == coded
    kinds = {name for name, kind in vars(_errors).items() if isinstance(kind, type) and name.endswith("Error")}
    assert told.keys() == kinds - {"GrainstoreError"}
    for name, told_bases, _ in rows:
        bases = [one.__name__ for one in getattr(_errors, name).__bases__ if one is not _errors.GrainstoreError]
        assert bases == re.findall(r"`(\w+)`", told_bases), name


def test_every_method_and_every_argument_of_open_is_told() -> None:
    text = PYTHON.read_text(encoding="utf-8")
    methods = {name for name in dir(grainstore.Store) if not name.startswith("_")}
    assert {name for name in methods if f"`{name}" not in text and f"`store.{name}" not in text} == set()
    arguments = inspect.signature(grainstore.open).parameters.keys() - {"path"}
    assert {name for name in arguments if f"`{name}`" not in text} == set()


def test_a_block_that_prints_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nprint(1)\n```\n```text\n2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md, line 4"):
        run_page(page, tmp_path, monkeypatch)


def test_an_example_gets_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    code = 'import socket\nsocket.create_connection(("192.0.2.1", 80), 1)'
    page.write_text(f"```python\n{code}\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="asks for the network"):
        run_page(page, tmp_path, monkeypatch)
