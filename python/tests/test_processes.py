"""Several processes, forks, signals, and the end of an interpreter with work under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import grainstore
from grainstore import Event


def script(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def test_another_process_relays_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "store"
    owner = script(
        """
        import grainstore, sys, time
        store = grainstore.open(sys.argv[1])
        print(store.put(grainstore.Event("from the owner")).address, flush=True)
        time.sleep(600)
        """,
        path,
    )
    assert owner.stdout is not None
    address = owner.stdout.readline().strip()
    with grainstore.open(path) as store:
        assert store.owner_pid == owner.pid
        assert store.get(address)["content"] == "from the owner"
        mine = store.put(Event("from the relay"))
        owner.kill()
        owner.communicate()
        assert store.get(mine)["content"] == "from the relay"
        assert store.owner_pid is None
        assert store.verify(full=True)["ok"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_is_told_and_leaves_the_store_alone(tmp_path: Path) -> None:
    code = """
        import grainstore, os, sys, threading
        store = grainstore.open(sys.argv[1])
        store.put(grainstore.Event("before"))
        store.verify()
        stop = threading.Event()
        def work():
            while not stop.is_set():
                store.put(grainstore.Event(os.urandom(8).hex()))
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                refused = 0
                for call in (store.stats, store.verify, lambda: store.put(grainstore.Event("x"))):
                    try:
                        call()
                    except grainstore.StoreIOError as error:
                        refused += "fork" in str(error)
                store.close()
                del store
                with grainstore.open(sys.argv[1]) as own:
                    refused += own.owner_pid == os.getppid()
                os._exit(0 if refused == 4 else 7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stop.set()
        [thread.join() for thread in threads]
        print(store.verify(full=True)["ok"])
    """
    assert ended(script(code, tmp_path / "store")) == "True"


def test_ctrl_c_ends_what_takes_long(tmp_path: Path) -> None:
    process = script(
        """
        import grainstore, signal, sys, threading
        # What runs in the background of a shell is started without it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        embedder = grainstore.Embedder(lambda texts: threading.Event().wait(), "m", 2, timeout=600)
        store = grainstore.open(sys.argv[1], embedder=embedder)
        store.put(grainstore.Event("hello"))
        print("ready", flush=True)
        try:
            store.cal('RECALL events LIKE "hello"')
            store.wait_for_vectors(1)
            while True:
                store.verify(full=True)
        except KeyboardInterrupt:
            print("interrupted", store.stats()["grains"])
        """,
        tmp_path / "store",
    )
    assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert ended(process) == "interrupted 1"


def test_an_interpreter_ends_with_work_under_way(tmp_path: Path) -> None:
    code = """
        import grainstore, sys, threading, time
        def embed(texts):
            time.sleep(0.02)
            return [[1.0, 0.0] for _ in texts]
        store = grainstore.open(sys.argv[1], embedder=grainstore.Embedder(embed, "m", 2))
        def work():
            at = 0
            while True:
                print(store.put(grainstore.Event(f"{threading.get_ident()} {at}")).address, flush=True)
                at += 1
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
    """
    acknowledged = [line for line in ended(script(code, tmp_path / "store")).splitlines() if len(line) == 64]
    with grainstore.open(tmp_path / "store") as store:
        assert acknowledged and all(found is not None for found in store.get_many(acknowledged))
        assert store.verify(full=True)["ok"]


def test_what_hooks_into_forks_is_imported_at_once() -> None:
    # A module that registers its hooks amid a fork has its locks released there without having taken them.
    script = "import sys, grainstore; print('concurrent.futures.thread' in sys.modules, 'logging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n"
