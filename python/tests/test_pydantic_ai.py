"""Memories of Pydantic AI: beside the stores of the harness, in an agent, from many at once."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

import grainstore

try:
    from pydantic_ai_harness.memory import MetadataMemoryStore
except ImportError as error:
    pytest.skip(f"pydantic-ai-harness 0.62 or later is not installed: {error}", allow_module_level=True)

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    SearchableMemoryStore,
    SqliteMemoryStore,
)

from grainstore.pydantic_ai import GrainMemoryStore

#: How many sequences of calls all answer; GRAINSTORE_SEQUENCES has it done for longer.
SEQUENCES = int(os.environ.get("GRAINSTORE_SEQUENCES", "20"))

PATHS = ["a", "b.md", "x/a", "x/b", "x/y/c", "x/y/d", "x.y", "X/a", "x/yy", ".h/z", "-", "x/y/z/w"]
ODD_PATHS = ["", "/a", "a/", "a//b", "../a", "a/..", ".", "a/./b", "a b", "é", "x" * 201, "a:b", "a\n", "..."]
TEXTS = ["", "tea", "Tea and coffee\n", "e\u0301 \ufeff", "coffee " * 50, "日本\x01", "x" * 300, "the cello\n" * 20]
METADATA = [None, {}, {"by": "e\u0301\ufeff"}, {"a": "1", "b": "2"}, {"x": "\0"}, {"x": "y" * 5_000}]
QUERIES = ["tea", "coffee tea", "x", "CELLO", "é", "  ", "missing", "a", "e the"]
OPERATIONS = ["op 1", "e\u0301", "op:3", "", "\ufeff5"]


class AllOfIt(MetadataMemoryStore, SearchableMemoryStore, Protocol):
    """What the stores of the harness are."""


@pytest.fixture
def memory(store: grainstore.Store) -> GrainMemoryStore:
    return GrainMemoryStore(store)


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_it_is_a_store_of_the_harness(memory: GrainMemoryStore) -> None:
    assert isinstance(memory, MemoryStore)
    assert isinstance(memory, MetadataMemoryStore)
    assert isinstance(memory, SearchableMemoryStore)


class Tried:
    """A store with what its versions are called, which is its own matter."""

    def __init__(self, store: AllOfIt) -> None:
        self.store = store
        self.versions: list[str | None] = [None]

    def _named(self, version: str | None) -> int:
        if version not in self.versions:
            self.versions.append(version)
        return self.versions.index(version)

    async def do(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a call comes to: its answer, or the class of its error."""
        given = dict(arguments)
        if "expected_version" in given:
            number = given["expected_version"]
            given["expected_version"] = self.versions[number] if number < len(self.versions) else "none such"
        try:
            answer = await getattr(self.store, name)(**given)
        except Exception as error:
            return type(error)
        if isinstance(answer, MemoryMutation):
            return ("mutation", self._named(answer.version), answer.replayed, answer.existed)
        if name == "read" and answer is not None:
            known = (answer.content, answer.operation_id, answer.truncated, answer.metadata)
            return ("file", self._named(answer.version), *known)
        return answer


class Calls:
    """Makes calls by chance, with versions by the number in which they came."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.paths = self.chance.sample(PATHS, 5)
        self.made = 1

    def path(self) -> str:
        return self.chance.choice(ODD_PATHS if self.chance.random() < 0.05 else self.paths)

    def operation(self) -> MemoryOperation | None:
        if self.chance.random() < 0.5:
            return None
        return MemoryOperation(self.chance.choice(OPERATIONS), self.chance.choice(["1", "1", "1", "2"]))

    def change(self, current: int) -> dict[str, Any]:
        expected = current if self.chance.random() < 0.8 else self.chance.randrange(self.made + 2)
        return {"expected_version": expected, "operation": self.operation()}

    async def next(self, first: Tried) -> tuple[str, dict[str, Any]]:
        chance, path = self.chance, self.path()
        kind = chance.choices(["read", "write", "delete", "list_paths", "search", "get_operation"], [3, 8, 2, 2, 3, 2])[
            0
        ]
        if kind == "read":
            return kind, {"path": path, "max_chars": chance.choice([0, 1, 5, 10_000])}
        if kind == "list_paths":
            prefixes = ["", "x", "x/", "x/y", "x/y/", "b", "none", "/", "x//", "..", "X"]
            return kind, {"prefix": chance.choice(prefixes), "limit": chance.choice([0, 1, 2, 100])}
        if kind == "search":
            bounds = {name: chance.choice([0, 1, 2, 10, 100]) for name in ("limit", "max_files")}
            bounds |= {name: chance.choice([0, 1, 7, 30, 1_000]) for name in ("max_chars", "max_file_chars")}
            return kind, {
                "prefix": chance.choice(["", "x/", "x/y/", "none"]),
                "query": chance.choice(QUERIES),
                **bounds,
            }
        if kind == "get_operation":
            return kind, {"operation": self.operation() or MemoryOperation("never", "1")}
        known = await first.do("read", {"path": path, "max_chars": 1})
        self.made = len(first.versions)
        change = self.change(known[1] if isinstance(known, tuple) else 0)
        if kind == "delete":
            return kind, {"path": path, **change}
        metadata = chance.choice(
            [None, {}, {"by": "e\u0301\ufeff"}, {"a": "1", "b": "2"}, {"x": "\0"}, {"x": "y" * 5_000}]
        )
        return "write_with_metadata", {"path": path, "content": chance.choice(TEXTS), "metadata": metadata, **change}


async def _same(seed: int, stores: list[Tried]) -> None:
    calls = Calls(seed)
    for step in range(60):
        name, arguments = await calls.next(stores[0])
        answers = [await one.do(name, arguments) for one in stores]
        assert all(answer == answers[0] for answer in answers), (step, name, arguments, answers)
        if "path" in arguments:
            look = {"path": arguments["path"], "max_chars": 10_000}
            assert len({str(await one.do("read", look)) for one in stores}) == 1, (step, name, arguments)


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_it_answers_as_the_stores_of_the_harness_do(seed: int, memory: GrainMemoryStore, tmp_path: Path) -> None:
    sqlite = SqliteMemoryStore(database=tmp_path / "memory.sqlite")
    run(_same(seed, [Tried(memory), Tried(InMemoryStore()), Tried(sqlite)]))


def test_versions_are_addresses_and_the_history_stays(memory: GrainMemoryStore, store: grainstore.Store) -> None:
    async def main() -> str:
        first = await memory.write("n/MEMORY.md", "tea", expected_version=None)
        second = await memory.write("n/MEMORY.md", "coffee", expected_version=first.version)
        third = await memory.write("n/MEMORY.md", "tea", expected_version=second.version)
        assert len({first.version, second.version, third.version}) == 3
        assert third.version is not None
        return third.version

    version = run(main())
    assert [one["context"]["text"] for one in store.history(version)] == ["tea", "coffee", "tea"]
    assert store.get(version)["namespace"] == "pydantic-ai-memory:n"


def test_what_is_deleted_is_erased_and_its_operations_are_known(
    memory: GrainMemoryStore, store: grainstore.Store
) -> None:
    write, change, delete = (MemoryOperation(id, "f") for id in ("write", "change", "delete"))

    async def main() -> None:
        first = await memory.write("secret", "hunter1", expected_version=None, operation=write)
        second = await memory.write("secret", "hunter2", expected_version=first.version, operation=change)
        gone = await memory.delete("secret", expected_version=second.version, operation=delete)
        assert gone == MemoryMutation(version=None, replayed=False, existed=True)
        for version in (first.version, second.version):
            assert version is not None
            with pytest.raises(grainstore.ErasedError):
                store.get(version)
        again = await memory.write("secret", "hunter1", expected_version=None, operation=write)
        assert again == MemoryMutation(version=first.version, replayed=True, existed=False)
        assert await memory.get_operation(change) == MemoryMutation(second.version, replayed=True, existed=True)
        assert await memory.get_operation(delete) == MemoryMutation(version=None, replayed=True, existed=True)
        assert await memory.read("secret", max_chars=10) is None
        with pytest.raises(MemoryOperationConflictError):
            await memory.get_operation(MemoryOperation("change", "other"))
        await memory.write("secret", "hunter1", expected_version=None)

    run(main())
    left = store.query({"namespace": "pydantic-ai-memory"}, include_superseded=True)
    assert sorted("text" in found["context"] for found in left) == [False, True]


def test_every_sign_of_a_text_is_kept(memory: GrainMemoryStore) -> None:
    async def main() -> None:
        text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))
        await memory.write("x", text, expected_version=None)
        read = await memory.read("x", max_chars=10**6)
        assert read is not None and read.content == text

    run(main())


def test_of_many_that_write_one_does(store: grainstore.Store) -> None:
    async def main() -> None:
        stores = [GrainMemoryStore(store.aio) for _ in range(8)]
        version: str | None = None
        for content in ("a", "b"):
            work = [one.write("x", content, expected_version=version) for one in stores]
            told = await asyncio.gather(*work, return_exceptions=True)
            [done] = [one for one in told if isinstance(one, MemoryMutation)]
            assert sum(isinstance(one, MemoryConflictError) for one in told) == 7
            version = done.version
        operation = MemoryOperation("once", "f")
        work = [one.write("x", "c", expected_version=version, operation=operation) for one in stores]
        once = await asyncio.gather(*work)
        assert len({one.version for one in once}) == 1 and sum(not one.replayed for one in once) == 1
        work = [
            one.delete("x", expected_version=once[0].version, operation=MemoryOperation("end", "f")) for one in stores
        ]
        ended = await asyncio.gather(*work)
        assert sum(not one.replayed for one in ended) == 1

    run(main())


def test_an_operation_is_done_once_at_whatever_path(store: grainstore.Store) -> None:
    operation = MemoryOperation("once", "f")

    async def main(kept: grainstore.Store, namespace: str) -> None:
        stores = [GrainMemoryStore(kept.aio, namespace=namespace) for _ in range(8)]
        work = [one.write(f"f/{at}", "x", expected_version=None, operation=operation) for at, one in enumerate(stores)]
        done = await asyncio.gather(*work)
        assert sum(not one.replayed for one in done) == 1 and len({one.version for one in done}) == 1
        assert len(await stores[0].list_paths(limit=9)) == 1

    run(main(store, "memory"))
    assert len(list(store.query({"namespace": "memory"}, include_superseded=True))) == 1
    run(main(store.session(namespace="team"), "team:memory"))


def test_an_operation_that_a_crash_cut_short_can_be_done(
    memory: GrainMemoryStore, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = MemoryOperation("1", "f")
    memory._files._claim("operation:1")
    monkeypatch.setattr("grainstore._files._CLAIMED", 200)
    done = run(memory.write("x", "text", expected_version=None, operation=operation))
    assert not done.replayed
    assert len(list(store.query({"namespace": "pydantic-ai-memory"}, include_superseded=True))) == 1


def test_a_file_larger_than_a_grain(memory: GrainMemoryStore) -> None:
    async def main() -> None:
        text = random.Random(1).randbytes(1_200_000).hex()
        written = await memory.write("large", text, expected_version=None)
        read = await memory.read("large", max_chars=10**7)
        assert read is not None and read.content == text and not read.truncated
        await memory.delete("large", expected_version=written.version)
        assert await memory.list_paths(limit=10) == []

    run(main())


def test_another_process_sees_the_files_and_a_kill_loses_none(tmp_path: Path) -> None:
    code = """
        import asyncio, sys
        from grainstore.pydantic_ai import GrainMemoryStore
        async def main():
            memory = GrainMemoryStore(sys.argv[1])
            version = None
            for at in range(1_000_000):
                version = (await memory.write("log", str(at), expected_version=version)).version
                print(at, version, flush=True)
        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "store")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    memory = GrainMemoryStore(tmp_path / "store")
    seen = run(memory.read("log", max_chars=100))
    assert int(seen.content) >= 4
    process.kill()
    lines += process.communicate()[0].splitlines()
    last = run(memory.read("log", max_chars=100))
    assert int(last.content) >= int(lines[-1].split()[0])
    memory.close()


def test_a_session_that_may_not_erase_is_told_and_loses_nothing(store: grainstore.Store) -> None:
    async def main() -> None:
        limited = GrainMemoryStore(store.session(namespace="team"), namespace="team:memory")
        written = await limited.write("x", "mine", expected_version=None)
        with pytest.raises(grainstore.AccessError):
            await limited.delete("x", expected_version=written.version)
        read = await limited.read("x", max_chars=10)
        assert read is not None and read.content == "mine"

    run(main())


def test_files_of_a_person_go_with_the_person(store: grainstore.Store) -> None:
    async def main() -> None:
        alice = GrainMemoryStore(store, namespace="alice", user_id="alice")
        await alice.write("x", "mine", expected_version=None)
        store.erase_user("alice", "she asked for it")
        assert await alice.read("x", max_chars=10) is None

    run(main())


def test_files_are_of_the_person_of_the_session(store: grainstore.Store) -> None:
    async def main() -> None:
        alice, bob = (GrainMemoryStore(store.session(user_id=name)) for name in ("alice", "bob"))
        await alice.write("x", "mine", expected_version=None)
        assert await bob.list_paths(limit=9) == []
        assert await GrainMemoryStore(store, user_id="alice").list_paths(limit=9) == ["x"]
        assert store.erase_user("alice", "she asked for it")["counts"]["erased"] == 1
        assert await alice.read("x", max_chars=9) is None

    run(main())


def test_namespaces_below_are_of_others(store: grainstore.Store) -> None:
    async def main() -> None:
        outer, inner = GrainMemoryStore(store, namespace="team"), GrainMemoryStore(store, namespace="team:x")
        operation = MemoryOperation("1", "f")
        written = await inner.write("x/a", "inner", expected_version=None, operation=operation)
        assert await outer.list_paths(limit=9) == []
        assert await outer.read("x/a", max_chars=9) is None
        assert await outer.get_operation(operation) is None
        await outer.write("x/a", "outer", expected_version=None, operation=operation)
        assert await inner.list_paths(limit=9) == await outer.list_paths(limit=9) == ["x/a"]
        await inner.delete("x/a", expected_version=written.version)
        assert await outer.list_paths(limit=9) == ["x/a"]
        replayed = await inner.get_operation(operation)
        assert replayed is not None and replayed.version == written.version

    run(main())


def test_a_text_of_which_a_part_was_erased_says_so(memory: GrainMemoryStore, store: grainstore.Store) -> None:
    async def main() -> None:
        written = await memory.write("x", random.Random(2).randbytes(800_000).hex(), expected_version=None)
        store.erase(next(store.query({"relation": "part"})), "by mistake")
        with pytest.raises(grainstore.IntegrityError, match="a part of the text of x was erased"):
            await asyncio.wait_for(memory.read("x", max_chars=9), 30)
        found = await memory.search("", "tea", limit=9, max_files=9, max_chars=99, max_file_chars=99)
        assert found.matches == []
        await memory.write("x", "tea", expected_version=written.version)
        assert (await memory.read("x", max_chars=9)) is not None

    run(main())


@pytest.mark.parametrize("kept", [{"passphrase": "secret"}, {"preset": "gdpr"}])
def test_files_of_two_persons_are_apart_in_any_store(kept: dict[str, str], tmp_path: Path) -> None:
    async def main(alice: GrainMemoryStore, bob: GrainMemoryStore) -> None:
        operation = MemoryOperation("1", "f")
        first = await alice.write("x", "alice", expected_version=None, operation=operation)
        second = await alice.write("x", "alice 2", expected_version=first.version)
        await bob.write("x", "bob", expected_version=None, operation=operation)
        await alice.delete("x", expected_version=second.version)
        assert (await alice.write("x", "alice", expected_version=None, operation=operation)).replayed
        assert (await alice.list_paths(limit=9), await bob.list_paths(limit=9)) == ([], ["x"])

    fields = {"processing_basis": "contract"}
    with grainstore.open(tmp_path / "store", **kept) as store:  # type: ignore[arg-type]
        run(main(*(GrainMemoryStore(store, user_id=name, fields=fields) for name in ("alice", "bob"))))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "store"


def test_an_agent_remembers_across_stores(path: Path) -> None:
    seen: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(str(messages))
        if len(seen) == 1:
            given = {"file": "alice", "content": "alice drinks oolong"}
            return ModelResponse(parts=[ToolCallPart("write_memory", given)])
        if len(seen) == 3:
            return ModelResponse(parts=[ToolCallPart("search_memory", {"query": "oolong"})])
        return ModelResponse(parts=[TextPart("done")])

    async def turn(question: str) -> str:
        async with GrainMemoryStore(path) as memory:
            agent = Agent(FunctionModel(model), capabilities=[Memory(store=memory)])
            return (await agent.run(question)).output

    assert run(turn("remember what alice drinks")) == "done"
    assert run(turn("what does alice drink?")) == "done"
    assert "alice drinks oolong" in seen[3]


def test_without_the_harness_the_extra_is_named() -> None:
    code = "import sys; sys.modules['pydantic_ai_harness'] = None; import grainstore.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: grainstore.pydantic_ai needs the harness: pip install grainstore[pydantic-ai]" in done.stderr
