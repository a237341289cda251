"""Graphs of LangGraph on the saver: agents, interrupts, time travel, subgraphs, delta channels."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from saver_kit import config
from typing_extensions import TypedDict

import grainstore
from grainstore.langgraph import GrainSaver


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[GrainSaver]:
    with GrainSaver(tmp_path / "store") as saver:
        yield saver


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Numbers(TypedDict):
    numbers: Annotated[list[int], operator.add]


def chat(saver: Any, answers: list[str]) -> Any:
    model = GenericFakeChatModel(messages=iter(AIMessage(answer) for answer in answers))

    def answer(state: Chat) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return StateGraph(Chat).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)


def texts(state: Any) -> list[str]:
    return [message.content for message in state["messages"]]


def test_a_conversation_is_remembered_by_another_saver(tmp_path: Path) -> None:
    where = config()
    with GrainSaver(tmp_path / "store") as saver:
        chat(saver, ["Hello Ann"]).invoke({"messages": [HumanMessage("I am Ann")]}, where)
    with GrainSaver(tmp_path / "store") as saver:
        end = chat(saver, ["Ann"]).invoke({"messages": [HumanMessage("Who am I?")]}, where)
        assert texts(end) == ["I am Ann", "Hello Ann", "Who am I?", "Ann"]
        other = chat(saver, ["?"]).invoke({"messages": [HumanMessage("Who am I?")]}, config("other"))
        assert texts(other) == ["Who am I?", "?"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_person_is_asked_and_answers(saver: GrainSaver, durability: Any) -> None:
    calls: list[str] = []

    def ask(state: Numbers) -> dict[str, Any]:
        calls.append("ask")
        return {"numbers": [interrupt({"question": "how many?"}), interrupt("and?")]}

    def other(state: Numbers) -> dict[str, Any]:
        calls.append("other")
        return {"numbers": [1]}

    builder = StateGraph(Numbers).add_node("ask", ask).add_node("other", other)
    graph = builder.add_edge(START, "ask").add_edge(START, "other").compile(checkpointer=saver)
    first = graph.invoke({"numbers": [0]}, config(), durability=durability)
    assert [one.value for one in first["__interrupt__"]] == [{"question": "how many?"}]
    (again,) = graph.get_state(config()).interrupts
    assert again.value == {"question": "how many?"}
    second = graph.invoke(Command(resume=5), config(), durability=durability)
    assert [one.value for one in second["__interrupt__"]] == ["and?"]
    assert graph.invoke(Command(resume=6), config(), durability=durability)["numbers"] == [0, 5, 6, 1]
    assert calls.count("other") == 1 and graph.get_state(config()).next == ()


def test_time_travel(saver: GrainSaver) -> None:
    def next_number(state: Numbers) -> dict[str, Any]:
        return {"numbers": [state["numbers"][-1] + 1]}

    builder = StateGraph(Numbers).add_node("a", next_number).add_node("b", next_number).add_node("c", next_number)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", END)
    graph = builder.compile(checkpointer=saver)
    assert graph.invoke({"numbers": [1]}, config())["numbers"] == [1, 2, 3, 4]
    past = [state for state in graph.get_state_history(config()) if state.next == ("b",)]
    assert [state.values["numbers"] for state in past] == [[1, 2]]
    fork = graph.update_state(past[0].config, {"numbers": [100]})
    assert graph.invoke(None, fork)["numbers"] == [1, 2, 100, 101, 102]
    assert graph.get_state(config()).values["numbers"] == [1, 2, 100, 101, 102]
    # The first branch is as it was, and can be gone on from again.
    assert graph.invoke(None, past[0].config)["numbers"] == [1, 2, 3, 4]
    history = [state.values.get("numbers") for state in graph.get_state_history(config())]
    assert [1, 2, 3, 4] in history and [1, 2, 100, 101, 102] in history
    assert graph.get_state(past[0].config).values["numbers"] == [1, 2]


def test_a_subgraph_has_checkpoints_of_its_own(saver: GrainSaver) -> None:
    def inner(state: Numbers) -> dict[str, Any]:
        return {"numbers": [interrupt("inner?")]}

    child = StateGraph(Numbers).add_node("inner", inner).add_edge(START, "inner").compile()
    graph = StateGraph(Numbers).add_node("child", child).add_edge(START, "child").compile(checkpointer=saver)
    graph.invoke({"numbers": [1]}, config())
    state = graph.get_state(config(), subgraphs=True)
    (task,) = state.tasks
    assert task.state.config["configurable"]["checkpoint_ns"].startswith("child:")
    places = {one.config["configurable"]["checkpoint_ns"] for one in saver.list(config(ns=None))}
    assert len(places) == 2 and "" in places
    assert graph.invoke(Command(resume=2), config())["numbers"] == [1, 1, 2]
    saver.prune(["thread"])
    assert graph.get_state(config()).values["numbers"] == [1, 1, 2]
    saver.delete_thread("thread")
    assert list(saver.list(config(ns=None))) == []


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_subgraph_does_not_bring_back_the_thread_of_its_run(saver: GrainSaver, durability: Any) -> None:
    deletes = [False]

    def inner(state: Numbers) -> dict[str, Any]:
        return {"numbers": [2]}

    child = StateGraph(Numbers).add_node("inner", inner).add_edge(START, "inner").compile()

    def outer(state: Numbers) -> dict[str, Any]:
        if deletes[0]:
            saver.delete_thread("thread")
        return {"numbers": child.invoke({"numbers": [1]})["numbers"]}

    graph = StateGraph(Numbers).add_node("outer", outer).add_edge(START, "outer").compile(checkpointer=saver)
    graph.invoke({"numbers": []}, config(), durability=durability)
    deletes[0] = True
    with pytest.raises(grainstore.ErasedError, match="was deleted"):
        graph.invoke({"numbers": []}, config(), durability=durability)
    assert list(saver.list(config(ns=None))) == []
    deletes[0] = False
    assert graph.invoke({"numbers": [0]}, config(), durability=durability)["numbers"] == [0, 1, 2]


def test_a_task_that_failed_is_done_again_and_the_others_are_not(saver: GrainSaver) -> None:
    done: list[int] = []
    fails = [True]

    def work(state: Any) -> dict[str, Any]:
        if state["n"] == 3 and fails[0]:
            raise RuntimeError("out of order")
        done.append(state["n"])
        return {"numbers": [state["n"]]}

    def fan(state: Numbers) -> list[Send]:
        return [Send("work", {"n": n}) for n in range(6)]

    builder = StateGraph(Numbers).add_node("work", work).add_conditional_edges(START, fan, ["work"])
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="out of order"):
        graph.invoke({"numbers": []}, {**config(), "max_concurrency": 1})
    fails[0] = False
    before = list(done)
    assert graph.invoke(None, config())["numbers"] == list(range(6))
    assert 3 in done and all(done.count(n) == 1 for n in before)


def delta_graph(saver: Any, frequency: int) -> Any:
    def add(state: list[int], writes: list[Any]) -> list[int]:
        return [*state, *(one for write in writes for one in write)]

    channel = DeltaChannel(add, list, snapshot_frequency=frequency)
    State: Any = TypedDict("State", {"log": Annotated[list[int], channel]})

    def step(state: Any) -> dict[str, Any]:
        return {"log": [len(state["log"])]}

    builder = StateGraph(State).add_node("step", step).add_node("more", step)
    return builder.add_edge(START, "step").add_edge("step", "more").compile(checkpointer=saver)


@pytest.mark.parametrize("frequency", [1, 3, 1000])
def test_delta_channels_are_made_of_their_writes_also_after_pruning(saver: GrainSaver, frequency: int) -> None:
    ours, reference = delta_graph(saver, frequency), delta_graph(InMemorySaver(), frequency)
    for turn in range(4):
        where = config()
        assert ours.invoke({"log": [-turn]}, where) == reference.invoke({"log": [-turn]}, where)
        mine, theirs = (list(graph.get_state_history(where)) for graph in (ours, reference))
        assert [state.values for state in mine] == [state.values for state in theirs]
    before = len(list(saver.list(config())))
    saver.prune(["thread"])
    kept = len(list(saver.list(config())))
    assert kept == before if frequency == 1000 else kept < before
    assert ours.get_state(config()).values == reference.get_state(config()).values
    assert ours.invoke({"log": [7]}, config()) == reference.invoke({"log": [7]}, config())


def test_many_conversations_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with grainstore.aopen(tmp_path / "store") as store:
            graph = adder(GrainSaver(store))
            ends = await asyncio.gather(
                *(graph.ainvoke({"numbers": [n]}, config(f"thread {n}")) for n in range(12)),
            )
            assert [end["numbers"] for end in ends] == [[n, n + 1, n + 2] for n in range(12)]
            again = await asyncio.gather(
                *(graph.ainvoke({"numbers": [0]}, config(f"thread {n}")) for n in range(12)),
            )
            assert [end["numbers"] for end in again] == [[n, n + 1, n + 2, 0, 1, 2] for n in range(12)]

    asyncio.run(main())


def adder(saver: Any) -> Any:
    async def one(state: Numbers) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"numbers": [state["numbers"][-1] + 1]}

    builder = StateGraph(Numbers).add_node("a", one).add_node("b", one)
    return builder.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=saver)


def test_threads_of_python_on_one_thread_of_langgraph(saver: GrainSaver) -> None:
    """Runs of the same conversation at once: each goes on from what it found, and all checkpoints are whole."""

    def one(state: Numbers) -> dict[str, Any]:
        return {"numbers": [1]}

    graph = StateGraph(Numbers).add_node("a", one).add_edge(START, "a").compile(checkpointer=saver)
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                graph.invoke({"numbers": [0]}, config())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    states = list(graph.get_state_history(config()))
    assert len(states) == 4 * 3 * 3 and graph.get_state(config()).config == states[0].config
    end = graph.invoke({"numbers": [0]}, config())
    assert end["numbers"][-2:] == [0, 1]
