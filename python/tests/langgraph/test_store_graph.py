"""Graphs and agents of LangGraph with a GrainStore as their memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import InjectedStore, create_react_agent
from langgraph.store.base import BaseStore

from grainstore.langgraph import GrainStore


class State(TypedDict):
    who: str
    said: str
    known: list[str]


def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
    store.put(("users", state["who"]), state["said"], {"said": state["said"]})
    return {}


def recall(state: State, *, store: BaseStore) -> dict[str, Any]:
    return {"known": [item.value["said"] for item in store.search(("users", state["who"]))]}


async def aremember(state: State, *, store: BaseStore) -> dict[str, Any]:
    await store.aput(("users", state["who"]), state["said"], {"said": state["said"]})
    return {}


async def arecall(state: State, *, store: BaseStore) -> dict[str, Any]:
    return {"known": [item.value["said"] for item in await store.asearch(("users", state["who"]))]}


def graph_of(store: GrainStore, first: Any, second: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("remember", first)
    graph.add_node("recall", second)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", "recall")
    graph.add_edge("recall", END)
    return graph.compile(store=store)


def said(who: str, what: str) -> State:
    return {"who": who, "said": what, "known": []}


def test_a_graph_remembers_from_one_run_to_the_next(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store") as store:
        assert graph_of(store, remember, recall).invoke(said("alice", "tea"))["known"] == ["tea"]
    with GrainStore(tmp_path / "store") as store:
        graph = graph_of(store, remember, recall)
        assert graph.invoke(said("alice", "cake"))["known"] == ["tea", "cake"]
        assert graph.invoke(said("bob", "rum"))["known"] == ["rum"]


def test_a_graph_under_asyncio(tmp_path: Path) -> None:
    async def main() -> None:
        async with GrainStore(tmp_path / "store") as store:
            graph = graph_of(store, aremember, arecall)
            runs = await asyncio.gather(*(graph.ainvoke(said(f"user{at}", "tea")) for at in range(10)))
            assert [run["known"] for run in runs] == [["tea"]] * 10
            # Synchronous nodes run on threads of LangGraph.
            assert (await graph_of(store, remember, recall).ainvoke(said("user1", "cake")))["known"] == ["tea", "cake"]

    asyncio.run(main())


class Scripted(FakeMessagesListChatModel):
    """A model that says what it was told to say."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@tool
def save(fact: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Saves a fact about the user."""
    store.put(("facts",), fact, {"fact": fact})
    return "saved"


@tool
def look_up(question: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Looks up facts about the user."""
    found = store.search(("facts",), query=question, limit=1)
    return ", ".join(item.value["fact"] for item in found)


def call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def test_an_agent_saves_and_looks_up(tmp_path: Path) -> None:
    script: list[Any] = [
        call("save", fact="alice drinks tea"),
        AIMessage(content="noted"),
        call("save", fact="the bus leaves at nine"),
        AIMessage(content="noted"),
        call("look_up", question="what does alice drink"),
        AIMessage(content="tea"),
    ]
    with GrainStore(tmp_path / "store") as store:
        agent = create_react_agent(Scripted(responses=script), [save, look_up], store=store)
        for line in ("I drink tea", "the bus leaves at nine", "what do I drink?"):
            answer = agent.invoke({"messages": [("user", line)]})
        assert answer["messages"][-2].content == "alice drinks tea"
        assert {item.key for item in store.search(("facts",))} == {"alice drinks tea", "the bus leaves at nine"}
