"""The memory tool of Anthropic: its answers beside those of the reference class, histories, erasure, races."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grainstore

pytest.importorskip("anthropic.lib.tools")

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from kit import cut_short

from grainstore.anthropic import AsyncGrainMemoryTool, GrainMemoryTool

#: How many sequences of commands both answer; GRAINSTORE_SEQUENCES has it done for longer.
SEQUENCES = int(os.environ.get("GRAINSTORE_SEQUENCES", "25"))

NAMES = ["a", "b", "notes.md", ".hidden", "é", "e\u0301", "a b", "100%", "x:y", "日本", "C", "c", "a~", "..x", "%2e"]
TEXTS = [
    "",
    "\n",
    "one",
    "one\n",
    "one\ntwo\nthree\n",
    "one\r\ntwo\r\n",
    "aa",
    "aaa\naaaa\n",
    "e\u0301\n",
    "\ufeffbom\n",
    "tab\there\x00null\n",
    "\u2028line\u2029\x0b\x0c\x85\n",
    "k" * 1500,
    "\n\n\n",
    "日本語\n" * 400,
]
PIECES = ["", "a", "aa", "one", "\n", "two\n", "e\u0301", "\u00e9", "\ufeff", "missing", "k", "\r\n"]


def command(name: str, **arguments: Any) -> dict[str, Any]:
    return {"command": name, **arguments}


def outcome(tool: BetaAbstractMemoryTool, given: dict[str, Any]) -> str:
    """What the model is told: the answer, or the error as the tool runner shows it."""
    try:
        return f"answer: {tool.call(given)}"
    except ToolError as error:
        return f"error: {error.content}"
    except Exception as error:
        return f"error: {error!r}"


ODD_PATHS = [
    "/memories/../etc/passwd",
    "/memories/a/../../x",
    "/memories/../memories/a",
    "/memories/..",
    "/memories/../memoriesx",
    "/etc",
    "",
    "memories/a",
    "/Memories",
    "/memories/" + "n" * 256,
    "/memories/a/" + "é" * 128 + "/b",
    "/memories/a\x00b",
]


class Commands:
    """Makes commands by chance, more often than not about files that were made before."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.names = self.chance.sample(NAMES, 4)
        self.files = ["/memories/" + self.names[0]]

    def path(self) -> str:
        chance = self.chance
        path = "/memories"
        for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3, 4])):
            path += "/" + chance.choice(self.names)
        odd = chance.random()
        if odd < 0.02:
            return chance.choice(ODD_PATHS)
        if odd < 0.05:
            return chance.choice([path + "/", path.replace("/", "//"), path + "/.", path + "/x/..", path + "x"])
        return path

    def file(self) -> str:
        return self.path() if self.chance.random() < 0.25 else self.chance.choice(self.files)

    def next(self) -> dict[str, Any]:
        chance = self.chance
        kind = chance.choices(["view", "create", "str_replace", "insert", "delete", "rename"], [5, 5, 5, 4, 1, 2])[0]
        if kind == "view":
            ranges = [None, None, [1, 2], [2, -1], [0, 0], [3, 2], [-5, 1], [2, -2], [1], [], [100, 200]]
            return command("view", path=chance.choice([self.path(), self.file()]), view_range=chance.choice(ranges))
        if kind == "create":
            self.files.append(self.path())
            return command("create", path=self.files[-1], file_text=chance.choice(TEXTS))
        if kind == "str_replace":
            old, new = chance.choice(PIECES), chance.choice(PIECES)
            return command("str_replace", path=self.file(), old_str=old, new_str=new)
        if kind == "insert":
            line = chance.choice([0, 0, 0, 1, 1, 2, 3, -1, 1000])
            text = chance.choice(PIECES + TEXTS)
            return command("insert", path=self.file(), insert_line=line, insert_text=text)
        if kind == "delete":
            return command("delete", path=chance.choice([self.path(), self.file()]))
        old, new = chance.choice([self.path(), self.file()]), self.path()
        self.files.append(new)
        return command("rename", old_path=old, new_path=new)


def comparable(told: str) -> str:
    """What was told, without the sizes of directories, which are up to the file system."""
    if not told.startswith("answer: Here're the files"):
        return told
    header, first, *lines = told.split("\n")
    first = first.split("\t", 1)[1]
    return "\n".join([header, first, *(re.sub(r"^[^\t]*\t(.*/)$", r"\1", line) for line in lines)])


def _everything(tool: BetaAbstractMemoryTool, directory: str = "/memories") -> dict[str, str]:
    """All files that a listing shows, with their texts."""
    seen = {directory: comparable(outcome(tool, command("view", path=directory)))}
    for line in seen[directory].split("\n")[2:]:
        path = line.split("\t")[-1]
        if path.endswith("/"):
            seen.update(_everything(tool, path[:-1]))
        else:
            seen[path] = outcome(tool, command("view", path=path))
    return seen


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_answers_and_errors_are_those_of_the_reference(seed: int, tmp_path: Path) -> None:
    commands = Commands(seed)
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "reference"))
    with GrainMemoryTool(tmp_path / "store") as tool:
        for step in range(60):
            given = commands.next()
            assert comparable(outcome(tool, given)) == comparable(outcome(reference, given)), (step, given)
        assert _everything(tool) == _everything(reference)
        assert tool.clear_all_memory() == reference.clear_all_memory()
        assert _everything(tool) == _everything(reference)


@pytest.fixture
def tool(store: grainstore.Store) -> Iterator[GrainMemoryTool]:
    with GrainMemoryTool(store) as tool:
        yield tool


def tell(tool: BetaAbstractMemoryTool, name: str, **arguments: Any) -> str:
    answer = tool.call(command(name, **arguments))
    assert isinstance(answer, str)
    return answer


def test_sizes_of_files_are_those_of_the_reference(tool: GrainMemoryTool, tmp_path: Path) -> None:
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "reference"))
    for size in (0, 1, 1023, 1024, 1025, 1536, 2047, 10_239, 10_240, 1_048_575, 1_048_576, 1_572_864, 3_000_000):
        for one in (tool, reference):
            tell(one, "create", path=f"/memories/{size:09}", file_text="x" * size)
    mine = tell(tool, "view", path="/memories").split("\n")
    theirs = tell(reference, "view", path="/memories").split("\n")
    assert mine[2:] == theirs[2:]
    assert mine[1] == "4K\t/memories"


def test_a_change_is_a_version_and_the_history_stays(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    tell(tool, "create", path="/memories/tea.md", file_text="alice likes tea\n")
    tell(tool, "str_replace", path="/memories/tea.md", old_str="tea", new_str="coffee")
    tell(tool, "rename", old_path="/memories/tea.md", new_path="/memories/drinks/alice.md")
    tell(tool, "insert", path="/memories/drinks/alice.md", insert_line=1, insert_text="since May")
    [found] = store.query(text="coffee")
    texts = [version["context"]["text"] for version in store.history(found.address)]
    coffee = "alice likes coffee\n"
    assert texts == [coffee + "since May\n", coffee, coffee, "alice likes tea\n"]
    assert found["namespace"] == "anthropic-memory:drinks"


def test_what_is_deleted_is_erased_for_good(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    mine = store.put(grainstore.Event("something else"))
    tell(tool, "create", path="/memories/d/secret", file_text="hunter1\n")
    tell(tool, "str_replace", path="/memories/d/secret", old_str="hunter1", new_str="hunter2")
    tell(tool, "create", path="/memories/d/large", file_text=random.Random(1).randbytes(900_000).hex())
    everything = {"namespace": "anthropic-memory"}
    addresses = [found.address for found in store.query(everything, include_superseded=True)]
    assert len(addresses) > 5
    tell(tool, "delete", path="/memories/d")
    assert list(store.query(everything, include_superseded=True)) == []
    for address in addresses:
        with pytest.raises(grainstore.ErasedError):
            store.get(address)
    assert tell(tool, "create", path="/memories/d/secret", file_text="hunter1\n").startswith("File created")
    assert store.get(mine)["content"] == "something else"


def test_a_file_larger_than_a_grain_is_kept_in_parts(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    text = random.Random(2).randbytes(1_500_000).hex() + "\nend\n"
    tell(tool, "create", path="/memories/large", file_text=text)
    assert len(list(store.query({"namespace": "anthropic-memory", "relation": "part"}))) > 2
    tell(tool, "str_replace", path="/memories/large", old_str="\nend", new_str="\nthe end")
    tell(tool, "rename", old_path="/memories/large", new_path="/memories/larger")
    assert tell(tool, "view", path="/memories/larger", view_range=[2, 3]).endswith("     2\tthe end\n     3\t")
    assert store.verify(full=True)["ok"]


def test_tools_of_a_namespace_share_files_and_others_do_not(store: grainstore.Store) -> None:
    one, same = GrainMemoryTool(store), GrainMemoryTool(store)
    other = GrainMemoryTool(store, namespace="other-agent")
    tell(one, "create", path="/memories/x", file_text="mine")
    assert "mine" in tell(same, "view", path="/memories/x")
    with pytest.raises(ToolError, match="does not exist"):
        tell(other, "view", path="/memories/x")
    other.clear_all_memory()
    assert "mine" in tell(one, "view", path="/memories/x")


def test_namespaces_below_are_of_others(store: grainstore.Store) -> None:
    outer, inner = GrainMemoryTool(store, namespace="mem"), GrainMemoryTool(store, namespace="mem:bob")
    tell(inner, "create", path="/memories/x", file_text="inner")
    tell(inner, "create", path="/memories/d/large", file_text=random.Random(3).randbytes(800_000).hex())
    files = _everything(inner)
    assert list(_everything(outer)) == ["/memories"]
    for path in ("/memories/x", "/memories/bob", "/memories/d"):
        assert outcome(outer, command("view", path=path)).startswith("error: The path")
    tell(outer, "create", path="/memories/bob/x", file_text="outer")
    assert "outer" in tell(outer, "view", path="/memories/bob/x")
    assert tell(outer, "delete", path="/memories/bob") == "Successfully deleted /memories/bob"
    tell(outer, "create", path="/memories/bob/x", file_text="outer")
    outer.clear_all_memory()
    assert _everything(inner) == files
    assert {found["namespace"] for found in store.query({"namespace": "mem"})} == {"mem:bob", "mem:bob:d"}


def test_files_are_of_the_person_of_the_session(store: grainstore.Store) -> None:
    alice, bob = (GrainMemoryTool(store.session(user_id=name)) for name in ("alice", "bob"))
    tell(alice, "create", path="/memories/x", file_text="mine")
    assert outcome(bob, command("view", path="/memories/x")).startswith("error: The path")
    assert "mine" in tell(GrainMemoryTool(store, user_id="alice"), "view", path="/memories/x")
    assert store.erase_user("alice", "she asked for it")["counts"]["erased"] == 1
    assert outcome(alice, command("view", path="/memories/x")).startswith("error: The path")


def test_files_of_a_person_go_with_the_person(store: grainstore.Store) -> None:
    alice = GrainMemoryTool(store, namespace="memory-of-alice", user_id="alice")
    tell(alice, "create", path="/memories/x", file_text="mine")
    store.erase_user("alice", "she asked for it")
    assert outcome(alice, command("view", path="/memories/x")).startswith("error: The path /memories/x does not")


@pytest.mark.parametrize("kept", [{"passphrase": "secret"}, {"preset": "gdpr"}, {"preset": "hipaa"}, {}])
def test_files_of_two_persons_are_apart_in_any_store(kept: dict[str, str], tmp_path: Path) -> None:
    fields = {"processing_basis": "contract"}
    with grainstore.open(tmp_path / "store", **kept) as store:  # type: ignore[arg-type]
        alice, bob = (GrainMemoryTool(store, user_id=name, fields=fields) for name in ("alice", "bob"))
        tell(alice, "create", path="/memories/d/x", file_text="alice")
        tell(bob, "create", path="/memories/d/x", file_text="bob")
        tell(alice, "insert", path="/memories/d/x", insert_line=1, insert_text="more")
        tell(alice, "rename", old_path="/memories/d", new_path="/memories/e")
        assert tell(bob, "view", path="/memories").split("\n")[2:] == ["4K\t/memories/d/", "3B\t/memories/d/x"]
        whole = tell(alice, "view", path="/memories/e/x")
        if kept.get("preset") == "hipaa":
            with pytest.raises(grainstore.PolicyError):
                tell(alice, "delete", path="/memories/e/x")
            assert tell(alice, "view", path="/memories/e/x") == whole
            return
        tell(alice, "delete", path="/memories/e")
        store.erase_user("alice", "she asked for it")
        assert [found["user_id"] for found in store.query({"user_id": "bob", "relation": "file"})] == ["bob"] * 2
        assert "bob" in tell(bob, "view", path="/memories/d/x")


def test_a_session_that_may_not_erase_is_told_and_loses_nothing(store: grainstore.Store) -> None:
    limited = GrainMemoryTool(store.session(namespace="team"), namespace="team:memory")
    tell(limited, "create", path="/memories/d/x", file_text="mine")
    tell(limited, "rename", old_path="/memories/d", new_path="/memories/e")
    tell(limited, "rename", old_path="/memories/e/x", new_path="/memories/x")
    with pytest.raises(grainstore.AccessError):
        tell(limited, "delete", path="/memories/x")
    with pytest.raises(grainstore.AccessError):
        limited.clear_all_memory()
    assert "mine" in tell(limited, "view", path="/memories/x")


def test_of_many_that_edit_at_once_none_loses_a_line(store: grainstore.Store) -> None:
    tools = [GrainMemoryTool(store) for _ in range(4)]
    tell(tools[0], "create", path="/memories/log", file_text="")

    def work(number: int) -> None:
        for at in range(10):
            tell(tools[number], "insert", path="/memories/log", insert_line=0, insert_text=f"{number} {at}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = tell(tools[0], "view", path="/memories/log").split("\n")[1:-1]
    assert sorted(line.split("\t")[1] for line in lines) == [
        f"{number} {at}" for number in range(4) for at in range(10)
    ]


def test_of_many_that_create_one_does(store: grainstore.Store) -> None:
    told: list[str] = []

    def work(number: int) -> None:
        tool = GrainMemoryTool(store)
        told.append(outcome(tool, command("create", path="/memories/a/b/c", file_text=str(number))))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told)[0] == "answer: File created successfully at: /memories/a/b/c"
    assert sorted(told)[1:] == ["error: File /memories/a/b/c already exists"] * 5


def test_of_many_that_rename_to_one_path_one_does_at_most_and_no_file_is_lost(store: grainstore.Store) -> None:
    tools = [GrainMemoryTool(store) for _ in range(6)]
    for number, tool in enumerate(tools):
        tell(tool, "create", path=f"/memories/{number}", file_text=f"text {number}")
    told: dict[int, str] = {}

    def work(number: int) -> None:
        move = command("rename", old_path=f"/memories/{number}", new_path="/memories/one")
        told[number] = outcome(tools[number], move)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    moved = [number for number in range(6) if told[number].startswith("answer")]
    assert len(moved) <= 1
    for number in range(6):
        path = "/memories/one" if number in moved else f"/memories/{number}"
        assert f"text {number}" in tell(tools[0], "view", path=path)
        assert number in moved or told[number] == "error: The destination /memories/one already exists"


def test_grains_of_others_in_the_namespace_are_left_alone(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    tell(tool, "create", path="/memories/x", file_text="one")
    odd = {"type": "state", "namespace": "anthropic-memory", "relation": "file", "subject": "y", "context": {"a": 1}}
    others = [store.put(odd), store.put(grainstore.Event("mine", namespace="anthropic-memory:chat"))]
    assert tell(tool, "view", path="/memories").split("\n")[2:] == ["3B\t/memories/x"]
    tell(tool, "delete", path="/memories/x")
    assert all(store.exists(other) for other in others)


def test_a_process_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    code = """
        import sys
        from grainstore.anthropic import GrainMemoryTool
        tool = GrainMemoryTool(sys.argv[1])
        tool.call({"command": "create", "path": "/memories/log", "file_text": "0\\n"})
        at = 0
        while True:
            change = {"command": "str_replace", "path": "/memories/log", "old_str": f"{at}\\n"}
            tool.call({**change, "new_str": f"{at + 1}\\n"})
            tool.call({"command": "create", "path": "/memories/gone", "file_text": "x"})
            tool.call({"command": "delete", "path": "/memories/gone"})
            at += 1
            print(at, flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(5)]
    process.kill()
    told += [int(line) for line in process.communicate()[0].splitlines()]
    with GrainMemoryTool(tmp_path / "store") as tool:
        line = tell(tool, "view", path="/memories/log").split("\n")[1]
        assert int(line.split("\t")[1]) in (told[-1], told[-1] + 1)
        with contextlib.suppress(ToolError):
            tell(tool, "delete", path="/memories/gone")
        with grainstore.open(tmp_path / "store") as store:
            left = store.query({"namespace": "anthropic-memory"}, include_superseded=True)
            assert {found["subject"] for found in left} == {"log"}


def test_a_removal_that_was_cut_short_is_finished(store: grainstore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = GrainMemoryTool(store)
    tell(tool, "create", path="/memories/x", file_text="secret")
    with monkeypatch.context() as patched:
        patched.setattr("grainstore._files.Files._finish_removal", lambda *_: None)
        tell(tool, "delete", path="/memories/x")
    everything = {"namespace": "anthropic-memory"}
    assert len(list(store.query(everything, include_superseded=True))) == 2
    assert outcome(tool, command("view", path="/memories/x")).startswith("error: The path")
    GrainMemoryTool(store.session(namespace="anthropic-memory"))
    assert len(list(store.query(everything, include_superseded=True))) == 2
    GrainMemoryTool(store)
    assert list(store.query(everything, include_superseded=True)) == []


def test_a_file_of_which_a_version_is_held_stays_whole(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    tell(tool, "create", path="/memories/x", file_text="one")
    tell(tool, "str_replace", path="/memories/x", old_str="one", new_str="two")
    [found] = store.query({"namespace": "anthropic-memory"})
    new, old = store.history(found.address)
    store.hold(old, "case 7")
    with pytest.raises(grainstore.InvalidationDeniedError):
        tell(tool, "delete", path="/memories/x")
    assert "two" in tell(tool, "view", path="/memories/x")
    assert [version.address for version in store.history(new)] == [new.address, old.address]
    store.lift_hold(old, "settled")
    tell(tool, "delete", path="/memories/x")
    assert list(store.query({"namespace": "anthropic-memory"}, include_superseded=True)) == []


def test_where_one_file_is_held_all_stay(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    for name in "abc":
        tell(tool, "create", path=f"/memories/d/{name}", file_text=name)
    before = _everything(tool)
    [held] = (one for one in store.query({"namespace": "anthropic-memory:d"}) if one["subject"] == "d/b")
    store.hold(held, "case 7")
    delete, rename = (
        command("delete", path="/memories/d"),
        command("rename", old_path="/memories/d", new_path="/memories/e/f"),
    )
    for change in (delete, rename, None):
        with pytest.raises(grainstore.InvalidationDeniedError):
            tool.clear_all_memory() if change is None else tool.call(change)
        assert _everything(tool) == before
    store.lift_hold(held, "settled")
    tool.call(rename)
    tell(tool, "delete", path="/memories/e")
    assert list(store.query({"namespace": "anthropic-memory"}, include_superseded=True)) == []


def test_what_was_cleared_in_part_is_finished(store: grainstore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = GrainMemoryTool(store)
    for name in "abc":
        tell(tool, "create", path=f"/memories/d/{name}", file_text=name)
    cut_short(monkeypatch, store, after=2)
    with pytest.raises(KeyboardInterrupt):
        tool.clear_all_memory()
    monkeypatch.undo()
    left = {"namespace": "anthropic-memory"}
    assert len(list(store.query({**left, "relation": "file"}))) == 2
    assert len(_everything(GrainMemoryTool(store))) == 1
    assert list(store.query(left, include_superseded=True)) == []


def test_a_write_that_comes_too_late_leaves_no_parts(
    tool: GrainMemoryTool, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = random.Random(4).randbytes(800_000).hex()
    tell(tool, "create", path="/memories/x", file_text="first")
    [stale] = tool._files.below(())
    tell(tool, "insert", path="/memories/x", insert_line=0, insert_text="zero")
    with pytest.raises(grainstore.ConflictError):
        tool._files.replace(stale, large)
    monkeypatch.setattr(tool, "_exists", lambda _: False)
    with pytest.raises(ToolError, match="already exists"):
        tell(tool, "create", path="/memories/x", file_text=large)
    assert list(store.query({"namespace": "anthropic-memory", "relation": "part"})) == []


def test_a_text_of_which_a_part_was_erased_says_so(tool: GrainMemoryTool, store: grainstore.Store) -> None:
    tell(tool, "create", path="/memories/x", file_text=random.Random(5).randbytes(800_000).hex())
    store.erase(next(store.query({"relation": "part"})), "by mistake")
    for change in (
        command("view", path="/memories/x"),
        command("insert", path="/memories/x", insert_line=0, insert_text="zero"),
    ):
        with pytest.raises(grainstore.IntegrityError, match="a part of the text of x was erased"):
            tool.call(change)
    tell(tool, "delete", path="/memories/x")
    assert list(store.query({"namespace": "anthropic-memory"}, include_superseded=True)) == []


def test_a_store_to_read_is_read(tmp_path: Path) -> None:
    with GrainMemoryTool(tmp_path / "store") as tool:
        tell(tool, "create", path="/memories/x", file_text="one")
    with grainstore.open(tmp_path / "store", read_only=True) as store:
        reader = GrainMemoryTool(store)
        assert "one" in tell(reader, "view", path="/memories/x")
        for change in (
            command("create", path="/memories/y", file_text=""),
            command("insert", path="/memories/x", insert_line=0, insert_text="zero"),
            command("delete", path="/memories/x"),
            command("rename", old_path="/memories/x", new_path="/memories/y"),
        ):
            with pytest.raises(grainstore.ReadOnlyError):
                reader.call(change)
        assert "one" in tell(reader, "view", path="/memories/x")


def test_a_closed_store_says_so(store: grainstore.Store) -> None:
    tool = GrainMemoryTool(store)
    store.close()
    with pytest.raises(grainstore.StoreIOError, match="closed"):
        tell(tool, "view", path="/memories")


def test_the_async_tool_answers_the_same(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        async with AsyncGrainMemoryTool(tmp_path / "store") as tool:
            assert isinstance(tool, BetaAsyncAbstractMemoryTool)
            assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
            told: list[Any] = [
                await tool.call(command("create", path="/memories/a", file_text="one\n")),
                await tool.call(command("str_replace", path="/memories/a", old_str="one", new_str="two")),
                await tool.call(command("insert", path="/memories/a", insert_line=0, insert_text="zero")),
                await tool.call(command("rename", old_path="/memories/a", new_path="/memories/b")),
                await tool.call(command("view", path="/memories/b")),
                await tool.call(command("delete", path="/memories/b")),
                await tool.clear_all_memory(),
            ]
            with pytest.raises(ToolError, match="does not exist"):
                await tool.call(command("view", path="/memories/b"))
            return told

    with GrainMemoryTool(tmp_path / "other") as tool:
        assert asyncio.run(main()) == [
            tell(tool, "create", path="/memories/a", file_text="one\n"),
            tell(tool, "str_replace", path="/memories/a", old_str="one", new_str="two"),
            tell(tool, "insert", path="/memories/a", insert_line=0, insert_text="zero"),
            tell(tool, "rename", old_path="/memories/a", new_path="/memories/b"),
            tell(tool, "view", path="/memories/b"),
            tell(tool, "delete", path="/memories/b"),
            tool.clear_all_memory(),
        ]


def test_a_command_whose_task_is_cancelled_is_done_or_not(store: grainstore.Store) -> None:
    async def main() -> None:
        tool = AsyncGrainMemoryTool(store.aio)
        for number in range(10):
            create = command("create", path=f"/memories/{number}/x", file_text="whole\n")
            task = asyncio.ensure_future(tool.call(create))
            await asyncio.sleep(number / 2_000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await tool.call(command("create", path="/memories/after", file_text="whole\n"))
        for number in range(10):
            with contextlib.suppress(ToolError):
                seen = await tool.call(command("view", path=f"/memories/{number}/x"))
                assert isinstance(seen, str) and seen.endswith("     1\twhole\n     2\t")

    asyncio.run(main())


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(TypeError, match="a store or the path of one, not int"):
        GrainMemoryTool(7)  # type: ignore[arg-type]


def test_text_that_is_none_is_refused_and_leaves_nothing(tool: GrainMemoryTool) -> None:
    with pytest.raises(UnicodeEncodeError):
        tell(tool, "create", path="/memories/x", file_text="\ud800")
    assert outcome(tool, command("view", path="/memories/x")).startswith("error: The path")


def test_without_the_sdk_the_extra_is_named() -> None:
    code = "import sys; sys.modules['anthropic'] = None; import grainstore.anthropic"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: grainstore.anthropic needs the SDK: pip install grainstore[anthropic]" in done.stderr


def test_a_note_of_an_erasure_reaches_no_further_than_its_namespace(store: grainstore.Store) -> None:
    other = store.put({"type": "event", "content": "of somebody else", "namespace": "other"}).address
    near = store.put({"type": "event", "content": "of a neighbour", "namespace": "memory2"}).address
    tool = GrainMemoryTool(store, namespace="memory")
    tell(tool, "create", path="/memories/a.md", file_text="mine")
    tool._files._erasing._note([other, near], None)
    again = GrainMemoryTool(store, namespace="memory")
    assert store.exists(other) and store.exists(near)
    assert list(store.query({"namespace": "memory", "relation": "erasing"})) == []
    assert "mine" in tell(again, "view", path="/memories/a.md")
