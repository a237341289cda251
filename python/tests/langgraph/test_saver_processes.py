"""Several processes on one store, and what is left of one that was killed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from saver_kit import checkpoint, config, ids

import grainstore
from grainstore.langgraph import GrainSaver

AGENT = """
import operator, os, sys, time
from typing import Annotated
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict
from grainstore.langgraph import GrainSaver

class State(TypedDict):
    messages: Annotated[list, add_messages]
    done: Annotated[list, operator.add]

path, answers, hang = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
model = GenericFakeChatModel(messages=iter(AIMessage(answer) for answer in answers))

def think(state):
    print("think", flush=True)
    return {"messages": [model.invoke(state["messages"])], "done": ["think"]}

def act(state):
    print("act", flush=True)
    if hang == "act":
        time.sleep(600)
    return {"messages": [AIMessage("acted on " + state["messages"][-1].content)], "done": ["act"]}

builder = StateGraph(State).add_node("think", think).add_node("act", act)
graph = builder.add_edge(START, "think").add_edge("think", "act")
where = {"configurable": {"thread_id": "agent"}}
with GrainSaver(path) as saver:
    graph = graph.compile(checkpointer=saver)
    if hang == "resume":
        assert graph.get_state(where).next == ("act",)
        end = graph.invoke(None, where)
    else:
        end = graph.invoke({"messages": [HumanMessage(hang)]}, where, durability="sync")
    print([message.content for message in end["messages"]], end["done"], flush=True)
"""


def script(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out.splitlines()


def test_an_agent_is_killed_and_goes_on_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store"
    killed = script(AGENT, path, "a plan,never", "act")
    assert line(killed) == "think" and line(killed) == "act", killed.communicate()
    killed.kill()
    killed.communicate()
    # What was thought is not thought again.
    resumed = ended(script(AGENT, path, "never", "resume"))
    assert resumed == ["act", "['act', 'a plan', 'acted on a plan'] ['think', 'act']"]
    later = ended(script(AGENT, path, "more", "go on"))
    told = ["act", "a plan", "acted on a plan", "go on", "more", "acted on more"]
    assert later == ["think", "act", f"{told} {['think', 'act'] * 2}"]
    with grainstore.open(path) as store:
        assert store.verify(full=True)["ok"]


WRITER = """
import itertools, sys
sys.path.insert(0, sys.argv[3])
from saver_kit import checkpoint, config
from grainstore.langgraph import GrainSaver

with GrainSaver(sys.argv[1]) as saver:
    where = config(sys.argv[2])
    for step in itertools.count() if len(sys.argv) == 4 else range(int(sys.argv[4])):
        big = f"{step}" * (700_000 if step % 5 == 4 else 10)
        made = checkpoint(versions={"same": "1", "step": f"{step}", "big": f"{step}"}, same="s", step=step, big=big)
        where = saver.put(where, made, {"step": step}, {"same": "1", **made["channel_versions"]} if step == 0 else
                          {"step": f"{step}", "big": f"{step}"})
        print("put", made["id"], step, flush=True)
        saver.put_writes(where, [("step", step)], "task")
        print("writes", made["id"], step, flush=True)
"""
HERE = Path(__file__).parent


@pytest.mark.parametrize("lines", [1, 7, 20, 33])
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, lines: int) -> None:
    process = script(WRITER, tmp_path / "store", "thread", HERE)
    told = [line(process).split() for _ in range(lines)]
    process.kill()
    assert process.stdout is not None
    # Whole lines that came before the kill count too.
    told += [one.split() for one in process.stdout.read().splitlines() if len(one.split()) == 3]
    process.communicate()
    with GrainSaver(tmp_path / "store") as saver:
        for what, id, step in told:
            found = saver.get_tuple(config(checkpoint_id=id))
            assert found is not None and found.checkpoint["channel_values"]["step"] == int(step)
            if what == "writes":
                assert found.pending_writes == [("task", "step", int(step))]
        # Also what was not acknowledged is whole, or not there.
        for found in saver.list(config()):
            step = found.checkpoint["channel_values"]["step"]
            big = f"{step}" * (700_000 if step % 5 == 4 else 10)
            assert found.checkpoint["channel_values"] == {"same": "s", "step": step, "big": big}
        before = saver.get_tuple(config())
        saver.prune(["thread"])
        assert saver.get_tuple(config()) == before
        saver.delete_thread("thread")
        assert list(saver.list(None)) == []


def test_processes_write_to_the_same_and_to_other_threads(tmp_path: Path) -> None:
    path, steps = tmp_path / "store", 12
    threads = ["own 1", "own 2", "both", "both"]
    processes = [script(WRITER, path, thread, HERE, steps) for thread in threads]
    told: dict[str, list[str]] = {thread: [] for thread in threads}
    for thread, process in zip(threads, processes, strict=True):
        told[thread] += [one.split()[1] for one in ended(process) if one.startswith("put")]
    with GrainSaver(path) as saver:
        for thread, written in told.items():
            assert ids(saver.list(config(thread))) == sorted(written, reverse=True)
            newest = saver.get_tuple(config(thread))
            assert newest is not None and newest.checkpoint["id"] == max(written)
            for found in saver.list(config(thread)):
                step = found.checkpoint["channel_values"]["step"]
                assert found.pending_writes == [("task", "step", step)]
                assert found.checkpoint["channel_values"]["same"] == "s"


def test_a_thread_that_another_process_deletes_stays_deleted(tmp_path: Path) -> None:
    path = tmp_path / "store"
    writer = script(WRITER, path, "thread", HERE)
    for _ in range(6):
        line(writer)
    with GrainSaver(path) as saver:
        saver.delete_thread("thread")
        out, err = writer.communicate(timeout=120)
        assert writer.returncode == 1 and "was deleted (begin the run anew" in err, (out, err)
        assert saver.get_tuple(config()) is None and list(saver.list(None)) == []


@pytest.mark.parametrize("done", [True, False])
def test_a_lost_answer_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """As where the owner does not answer in time: what was asked may be done, or not."""
    lost: list[str] = []

    def losing(name: str) -> Callable[..., Any]:
        ask = getattr(grainstore.Store, name)

        def asked(self: grainstore.Store, *arguments: Any, **options: Any) -> Any:
            if name not in lost:
                lost.append(name)
                if done:
                    ask(self, *arguments, **options)
                raise grainstore.InDoubtError("it was done, or was not", code="ERR_IN_DOUBT")
            return ask(self, *arguments, **options)

        return asked

    with GrainSaver(tmp_path / "store") as saver:
        for name in ("put_many", "erase", "erase_user"):
            monkeypatch.setattr(grainstore.Store, name, losing(name))
        stored = []
        for step in range(3):
            lost.clear()
            stored.append(
                saver.put(config(), checkpoint(big="b" * 1_500_000, step=step), {"step": step}, {"step": "1"})
            )
            lost.clear()
            saver.put_writes(stored[-1], [("step", step)], "task")
        assert ids(saver.list(config())) == ids(stored[::-1])
        found = saver.get_tuple(config())
        assert found is not None and found.checkpoint["channel_values"]["step"] == 2
        assert found.pending_writes == [("task", "step", 2)]
        saver.prune(["thread"])
        assert "erase" in lost and ids(saver.list(config())) == ids(stored[-1:])
        saver.delete_thread("thread")
        assert "erase_user" in lost and list(saver.list(None)) == []


def test_the_owner_of_the_store_is_killed_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "store"
    owner = script(WRITER, path, "owner", HERE)
    line(owner)
    with GrainSaver(path) as saver:
        where, kill = config(), threading.Timer(0.5, owner.kill)
        kill.start()
        made = []
        for step in range(60):
            made.append(checkpoint(versions={"same": "1", "step": f"{step}"}, same="s", step=step))
            where = saver.put(where, made[-1], {}, {"same": "1", "step": "0"} if step == 0 else {"step": f"{step}"})
            saver.put_writes(where, [("step", step)], "task")
        kill.join()
        owner.communicate()
        saver.delete_thread("owner")
        found = list(saver.list(None))
        assert ids(found) == [one["id"] for one in reversed(made)]
        assert all(one.checkpoint["channel_values"]["same"] == "s" for one in found)
        assert all(len(one.pending_writes or ()) == 1 for one in found)
