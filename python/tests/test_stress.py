"""Threads, tasks and cancellations at once, in a process of its own with the debug allocator of Python.

Two seconds, or as many as `GRAINSTORE_STRESS` says, and forks beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grainstore

SECONDS = float(os.environ.get("GRAINSTORE_STRESS", "2"))

WORK = """
    import asyncio, faulthandler, gc, os, random, sys, threading, time, traceback
    import grainstore
    from grainstore import Belief, Embedder, Event

    faulthandler.enable()
    until = time.monotonic() + float(sys.argv[2])
    acknowledged, failures = [], []

    def embed(texts):
        if random.random() < 0.1:
            raise ValueError("now and then")
        return [[random.random(), 1.0] for _ in texts]

    store = grainstore.open(sys.argv[1], embedder=Embedder(embed, "m", 2))

    def guarded(work):
        def run():
            try:
                while time.monotonic() < until:
                    work()
            except BaseException:
                failures.append(traceback.format_exc())
        return run

    def puts():
        acknowledged.append(store.put(Event(os.urandom(8).hex(), session_id="s")).address)

    def reads():
        for address in random.sample(acknowledged, min(len(acknowledged), 20)):
            store.get(address)
        store.get_many(acknowledged[-50:])
        for _ in zip(store.query(text="a", limit=5), range(3)):
            pass
        store.cal("RECALL events RECENT 3", format="sml")

    def wrong():
        for bad in (object(), float("nan"), "\\ud800", {1: 2}, 1 << 70):
            try:
                store.put(Belief("a", "b", "c", confidence=bad))
            except (TypeError, ValueError):
                continue
            failures.append(f"{bad!r} was taken")

    def sessions():
        store.session(user_id=os.urandom(2).hex()).latest("a", "b")
        gc.collect()

    def tasks():
        async def one():
            return await store.aio.put(Event(os.urandom(8).hex()))

        async def many():
            running = [asyncio.create_task(one()) for _ in range(30)]
            await asyncio.sleep(random.random() / 50)
            for task in running[::3]:
                task.cancel()
            for done in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(done, grainstore.Put):
                    acknowledged.append(done.address)
                elif not isinstance(done, asyncio.CancelledError):
                    failures.append(repr(done))
        asyncio.run(many())

    def forks():
        pid = os.fork()
        if pid == 0:
            try:
                store.put(Event("from a fork"))
            except grainstore.StoreIOError:
                os._exit(0)
            os._exit(7)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            failures.append("a fork wrote")
        time.sleep(0.01)

    works = [puts, puts, reads, wrong, sessions, tasks, forks]
    threads = [threading.Thread(target=guarded(work)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = sum(found is None for found in store.get_many(acknowledged))
    print(len(acknowledged), lost, store.verify(full=True)["ok"], failures)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_lost_and_nothing_crashes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONMALLOC": "debug", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(WORK), str(tmp_path / "store"), str(SECONDS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS + 240)
    assert done.returncode == 0, done.stderr
    count, lost, sound, failures = done.stdout.strip().split(" ", 3)
    assert (lost, sound, failures) == ("0", "True", "[]"), done.stdout
    assert int(count) > 10
    with grainstore.open(tmp_path / "store") as store:
        assert store.stats()["grains"] >= int(count)
