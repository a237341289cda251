"""Several processes on one store, and processes that are killed at each of their steps."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from grainstore.langgraph import GrainStore, _store_items, _store_values

# Characters of a value that has three parts.
BIG = 2_500
HOUR = 3_600_000_000

# Runs steps on copies of a store, each in a process that is killed just before its first write, its second, and so on.
KILLER = """
    import os, shutil, signal, sys
    import grainstore
    from grainstore.langgraph import GrainStore, _store_values
    _store_values.PART_CHARACTERS = 1000
    path, steps = sys.argv[1:]

    def run(copy, at):
        memory = GrainStore(copy)
        memory.get(("a",), "k")
        do, count = grainstore.Store._do, 0

        def counted(self, method, *args, **kwargs):
            nonlocal count
            if method in ("put", "put_batch", "supersede", "erase"):
                count += 1
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)
            return do(self, method, *args, **kwargs)

        grainstore.Store._do = counted
        exec(steps)

    for at in range(1, 40):
        copy = f"{path}-{at}"
        shutil.copytree(path, copy)
        process = os.fork()
        if process == 0:
            run(copy, at)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if status == 0:
            break
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
        print(copy, flush=True)
"""


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store_values, "PART_CHARACTERS", 1000)


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def killed_at_each_step(path: Path, steps: str) -> list[str]:
    """The copies of a store on which steps were killed at each of their writes."""
    return ended(started(textwrap.dedent(KILLER), path, steps)).split()


def left(memory: GrainStore) -> set[str]:
    """The relations of all grains that are there."""
    found = memory._opened().store.query({}, include_superseded=True)
    return {grain["relation"] for grain in found}


def prepared(path: Path) -> None:
    with GrainStore(path) as memory:
        memory.put(("a",), "k", {"by": "old", "text": "o" * BIG})
        memory.put(("a",), "k", {"by": "older", "text": "p" * BIG}, ttl=600)


def test_a_kill_in_the_middle_of_a_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store"
    prepared(path)
    steps = f'memory.put(("a",), "k", {{"by": "new", "text": "n" * {BIG}}})'
    killed = killed_at_each_step(path, steps)
    assert len(killed) >= 4
    clock = _store_items.now_us
    for copy in killed:
        with GrainStore(copy) as memory:
            item = memory.get(("a",), "k")
            assert item is not None
            assert item.value["text"] == {"older": "p", "new": "n"}[item.value["by"]] * BIG
            assert memory.search(("a",), query="x")[0].value == item.value
            assert memory.list_namespaces() == [("a",)]
            with monkeypatch.context() as patch:
                patch.setattr(_store_items, "now_us", lambda: clock() + 2 * HOUR)
                memory.sweep_ttl()
            # What was not finished is gone, and the item is as it was.
            parts = memory._opened().store.query({"relation": "langgraphpart"})
            assert sum(1 for _ in parts) == (9 if item.value["by"] == "new" else 6)
            assert memory.get(("a",), "k") == item
            memory.delete(("a",), "k")
            assert left(memory) == set()
            assert memory._opened().store.verify(full=True)["ok"]


def test_a_kill_in_the_middle_of_the_first_put(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with GrainStore(path) as memory:
        memory.put(("other",), "k", {})
    steps = f'memory.put(("a",), "k", {{"text": "n" * {BIG}}})'
    for copy in killed_at_each_step(path, steps):
        with GrainStore(copy) as memory:
            item = memory.get(("a",), "k")
            assert item is None or item.value == {"text": "n" * BIG}
            there = [] if item is None else [("a",)]
            assert memory.list_namespaces(prefix=("a",)) == there
            assert len(memory.search(("a",))) == len(there)
            memory.put(("a",), "k", {"text": "again"})
            again = memory.get(("a",), "k")
            assert again is not None and again.value == {"text": "again"}
            memory.delete(("a",), "k")
            memory.delete(("other",), "k")
            assert left(memory) == set()


def test_a_kill_in_the_middle_of_a_delete(tmp_path: Path) -> None:
    path = tmp_path / "store"
    prepared(path)
    killed = killed_at_each_step(path, 'memory.delete(("a",), "k")')
    assert len(killed) >= 8
    for copy in killed:
        with GrainStore(copy) as memory:
            item = memory.get(("a",), "k")
            assert item is None or item.value == {"by": "older", "text": "p" * BIG}
            assert memory.list_namespaces() == ([] if item is None else [("a",)])
            memory.delete(("a",), "k")
            assert left(memory) == set()


@pytest.mark.parametrize(
    "steps", ['memory.delete(("a",), "k")', 'memory.put(("b", "alice"), "k", {})', "memory.sweep_ttl()"]
)
def test_a_sweep_takes_the_marks_of_namespaces_without_items(tmp_path: Path, steps: str) -> None:
    path = tmp_path / "store"
    with GrainStore(path) as memory:
        memory.put(("a",), "k", {"n": 1}, ttl=0 if "sweep" in steps else None)
        memory.put(("kept",), "k", {})
    killed = killed_at_each_step(path, steps)
    assert len(killed) >= 2
    for copy in killed:
        with GrainStore(copy) as memory:
            memory.sweep_ttl()
            found = memory._opened().store.query({}, include_superseded=True)
            namespaces = {grain["namespace"] for grain in found if grain["relation"] == "langgraphspace"}
            items = {item.namespace for item in memory.search(())}
            assert namespaces == {"langgraph:store:" + ":".join(labels) for labels in items}
            assert ("kept",) in memory.list_namespaces()


def test_a_kill_in_the_middle_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store"
    with GrainStore(path) as memory:
        memory.put(("a",), "k", {"text": "o" * BIG})
        memory.put(("a",), "k", {"text": "p" * BIG}, ttl=0)
    killed = killed_at_each_step(path, "memory.sweep_ttl()")
    assert len(killed) >= 6
    for copy in killed:
        with GrainStore(copy) as memory:
            memory.sweep_ttl()
            assert memory.get(("a",), "k") is None
            memory.delete(("a",), "k")
            assert left(memory) == set()


def test_two_processes_lose_no_put(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from grainstore.langgraph import GrainStore
        path, name = sys.argv[1:]
        with GrainStore(path) as memory:
            for at in range(20):
                memory.put(("shared",), "one", {"by": name, "at": at, "text": name * 150_000 if at % 5 == 0 else ""})
                memory.put(("own", name), f"k{at}", {"at": at})
                item = memory.get(("shared",), "one")
                assert item.value["text"] in ("", item.value["by"] * 150_000), "mixed"
            print("done")
    """)
    path = tmp_path / "store"
    processes = [started(code, path, name) for name in ("x", "y", "z")]
    assert [ended(process) for process in processes] == ["done"] * 3
    with GrainStore(path) as memory:
        assert len(memory.search(("own",), limit=100)) == 60
        store = memory._opened().store
        history = store.history(subject="one", relation="langgraphitem", namespace="langgraph:store:shared")
        assert len(history) == 60
        assert sorted(memory.list_namespaces()) == [("own", "x"), ("own", "y"), ("own", "z"), ("shared",)]
        assert store.verify(full=True)["ok"]


def test_a_namespace_that_is_left_and_entered_at_once_is_listed_while_it_has_items(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from grainstore.langgraph import GrainStore
        path, name = sys.argv[1:]
        with GrainStore(path) as memory:
            for at in range(25):
                memory.put(("shared",), name, {"at": at})
                assert ("shared",) in memory.list_namespaces(), "unlisted"
                assert name in [item.key for item in memory.search(("shared",))], "not found"
                memory.delete(("shared",), name)
            memory.put(("shared",), name, {})
    """)
    path = tmp_path / "store"
    processes = [started(code, path, name) for name in ("x", "y", "z")]
    for process in processes:
        ended(process)
    with GrainStore(path) as memory:
        assert {item.key for item in memory.search(("shared",))} == {"x", "y", "z"}
        for name in "xyz":
            memory.delete(("shared",), name)
        assert left(memory) == set()


# Calls of a GrainStore in a fork, each of which ends at once.
FORKED = """
    import asyncio, os, sys, time
    from grainstore import StoreIOError
    from grainstore.langgraph import GrainStore
    from langgraph.store.base import PutOp

    memory = GrainStore(sys.argv[1], ttl={})
    puts = [PutOp(("a",), f"k{at}", {"at": at}) for at in range(3)]
    deletes = [PutOp(("a",), f"k{at}", None) for at in range(3)]
    memory.batch(puts)
    asyncio.run(memory.aget(("a",), "k1"))
    memory.start_ttl_sweeper(1)
    # A thread that opens nothing, and one that holds the lock of opening.
    unused = GrainStore(sys.argv[2])
    unused._pool().submit(int).result()
    unused._opening.acquire()

    async def entered():
        async with memory:
            pass

    calls = {
        "get": lambda: memory.get(("a",), "k1"),
        "aget": lambda: asyncio.run(memory.aget(("a",), "k1")),
        "puts": lambda: memory.batch(puts),
        "deletes": lambda: memory.batch(deletes),
        "adeletes": lambda: asyncio.run(memory.abatch(deletes)),
        "sweep": memory.sweep_ttl,
        "asweep": lambda: asyncio.run(memory.asweep_ttl()),
        "sweeper": memory.start_ttl_sweeper,
        "async with": lambda: asyncio.run(entered()),
        "close": memory.close,
        "aclose": lambda: asyncio.run(memory.aclose()),
        "stop": memory.stop_ttl_sweeper,
        "unused": lambda: asyncio.run(unused.aput(("b",), "k", {})),
    }
    for name, call in calls.items():
        process = os.fork()
        if process == 0:
            try:
                call()
                print(name, "returned", flush=True)
            except StoreIOError as error:
                print(name, "fork" if "fork" in str(error) else error, flush=True)
            os._exit(0)
        for _ in range(1000):
            if os.waitpid(process, os.WNOHANG)[0]:
                break
            time.sleep(0.01)
        else:
            os.kill(process, 9)
            os.waitpid(process, 0)
            print(name, "hangs", flush=True)
    assert memory.get(("a",), "k1").value == {"at": 1}
    memory.close()
"""


def test_a_fork_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    told = ended(started(textwrap.dedent(FORKED), tmp_path / "store", tmp_path / "unused"))
    ends = dict(line.rsplit(" ", 1) for line in told.splitlines())
    assert ends.pop("close") == ends.pop("aclose") == ends.pop("stop") == ends.pop("unused") == "returned"
    assert len(ends) == 9 and set(ends.values()) == {"fork"}


def test_a_program_that_ends_amid_a_sweep_is_silent(tmp_path: Path) -> None:
    code = """
        import sys, threading
        from grainstore.langgraph import GrainStore, _store_items
        from langgraph.store.base import PutOp

        memory = GrainStore(sys.argv[1], ttl={})
        memory.batch([PutOp(("a",), f"k{at}", {}, ttl=0) for at in range(30)])
        begun, erase = threading.Event(), _store_items.Items._erase

        def erased(self, address):
            begun.set()
            return erase(self, address)

        _store_items.Items._erase = erased
        memory.start_ttl_sweeper(0.0001)
        assert begun.wait(60)
    """
    process = started(textwrap.dedent(code), tmp_path / "store")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "", "")
