"""Sessions of the OpenAI Agents SDK: beside its own SQLite session, in its Runner, from many at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import grainstore

pytest.importorskip("agents")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from agents.items import TResponseStreamEvent
from agents.memory import Session, SessionSettings
from kit import cut_short
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from grainstore.openai_agents import GrainSession

#: How many sequences of calls both answer; GRAINSTORE_SEQUENCES has it done for longer.
SEQUENCES = int(os.environ.get("GRAINSTORE_SEQUENCES", "15"))

ITEMS: list[Any] = [
    {"role": "user", "content": "hello"},
    {"role": "user", "content": ""},
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": "e\u0301 \ufeff \U0001f600 \x00 \ud800 日本"},
    {"role": "user", "content": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:"}]},
    {"type": "function_call", "call_id": "1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "1", "output": "rain"},
    {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "rain"}]},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "because"}], "content": None},
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "status": "completed"},
    {"role": "\ud800", "content": "odd"},
    {"role": "\ufeff", "type": "\ufeff"},
    {"type": "\ud800", "content": ""},
    {"role": "r" * 2_000, "type": " "},
    {"type": "item_reference", "id": "x", "deep": [[[[{"a": [1, 2.5, None, True, 10**30]}]]]]},
    {},
]


def run(work: Any) -> Any:
    return asyncio.run(work)


@pytest.fixture
def session(store: grainstore.Store) -> GrainSession:
    return GrainSession("s", store)


def test_it_is_a_session_of_the_sdk(session: GrainSession) -> None:
    assert isinstance(session, Session)
    assert session.session_id == "s" and session.session_settings is None


async def _both(seed: int, mine: GrainSession, theirs: SQLiteSession) -> None:
    chance = random.Random(seed)
    for step in range(60):
        kind = chance.choices(["add", "get", "pop", "clear"], [6, 5, 4, 0.3])[0]
        if kind == "add":
            items = [chance.choice(ITEMS) for _ in range(chance.choice([0, 1, 1, 2, 5]))]
            await mine.add_items(items)
            await theirs.add_items(items)
        elif kind == "get":
            limit = chance.choice([None, None, 0, 1, 2, 5, 100, -1])
            assert await mine.get_items(limit) == await theirs.get_items(limit), (step, limit)
        elif kind == "pop":
            assert await mine.pop_item() == await theirs.pop_item(), step
        else:
            await mine.clear_session()
            await theirs.clear_session()
    assert await mine.get_items() == await theirs.get_items()


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_it_answers_as_the_session_of_the_sdk_does(seed: int, store: grainstore.Store) -> None:
    theirs = SQLiteSession("s")
    other = GrainSession("other", store)
    run(other.add_items(ITEMS))
    run(_both(seed, GrainSession("s", store), theirs))
    assert run(other.get_items()) == ITEMS
    theirs.close()


def test_settings_limit_what_is_read(store: grainstore.Store) -> None:
    session = GrainSession("s", store, session_settings=SessionSettings(limit=2))
    run(session.add_items(ITEMS))
    assert run(session.get_items()) == ITEMS[-2:]
    assert run(session.get_items(3)) == ITEMS[-3:]
    assert run(GrainSession("s", store, session_settings={"limit": 1}).get_items()) == ITEMS[-1:]
    with pytest.raises(TypeError):
        GrainSession("s", store, session_settings={"limits": 1})


def test_more_items_than_a_page(session: GrainSession) -> None:
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(1_000)]
    run(session.add_items(items[:700]))
    run(session.add_items(items[700:]))
    assert run(session.get_items()) == items
    assert run(session.get_items(450)) == items[-450:]
    assert [run(session.pop_item()) for _ in range(3)] == items[:-4:-1]


def test_an_item_larger_than_a_grain(session: GrainSession, store: grainstore.Store) -> None:
    item: Any = {
        "role": "user",
        "content": [{"type": "input_image", "image_url": random.Random(1).randbytes(10**6).hex()}],
    }
    run(session.add_items([item, ITEMS[0]]))
    assert run(session.get_items()) == [item, ITEMS[0]]
    assert run(session.pop_item()) == ITEMS[0]
    assert run(session.pop_item()) == item
    assert list(store.query({"namespace": "openai-agents"}, include_superseded=True)) == []


def test_items_are_events_that_are_found_by_their_words(session: GrainSession, store: grainstore.Store) -> None:
    run(session.add_items([ITEMS[0], ITEMS[5], ITEMS[8]]))
    assert next(store.query(text="weather"))["content"] == 'weather\n{"city": "Oslo"}'
    assert next(store.query(text="because"))["content"] == "because"
    hello = next(store.query(text="hello"))
    assert (hello["role"], hello["session_id"]) == ("user", "s")


def test_what_is_popped_and_cleared_is_erased_for_good(session: GrainSession, store: grainstore.Store) -> None:
    run(session.add_items(ITEMS))
    addresses = [found.address for found in store.query({"session_id": "s"})]
    run(session.pop_item())
    run(session.clear_session())
    assert run(session.pop_item()) is None
    for address in addresses:
        with pytest.raises(grainstore.ErasedError):
            store.get(address)
    run(session.add_items(ITEMS[:1]))
    assert run(session.get_items()) == ITEMS[:1]


def test_a_conversation_goes_with_its_person(store: grainstore.Store) -> None:
    alice, bob = GrainSession("a", store, user_id="alice"), GrainSession("b", store, user_id="bob")
    run(alice.add_items(ITEMS[:2]))
    run(bob.add_items(ITEMS[:3]))
    store.erase_user("alice", "she asked for it")
    assert run(alice.get_items()) == []
    assert run(bob.get_items()) == ITEMS[:3]


@pytest.mark.parametrize("kept", [{"passphrase": "secret"}, {"preset": "gdpr"}])
def test_conversations_of_two_persons_are_apart_in_any_store(kept: dict[str, str], tmp_path: Path) -> None:
    fields = {"processing_basis": "contract"}
    with grainstore.open(tmp_path / "store", **kept) as store:  # type: ignore[arg-type]
        alice, bob = (GrainSession("s", store, user_id=name, fields=fields) for name in ("alice", "bob"))
        run(alice.add_items(ITEMS[:3]))
        run(bob.add_items(ITEMS[3:5]))
        assert run(alice.pop_item()) == ITEMS[2]
        run(bob.clear_session())
        assert (run(alice.get_items()), run(bob.get_items())) == (ITEMS[:2], [])


def test_events_of_others_are_left_alone(session: GrainSession, store: grainstore.Store) -> None:
    mine = store.put(grainstore.Event("mine", namespace="openai-agents", session_id="s"))
    run(session.add_items(ITEMS[:2]))
    assert run(session.get_items()) == ITEMS[:2]
    run(session.clear_session())
    assert store.exists(mine)


def test_namespaces_below_are_of_others(store: grainstore.Store) -> None:
    outer, inner = GrainSession("s", store, namespace="chat"), GrainSession("s", store, namespace="chat:v2")
    run(outer.add_items(ITEMS[:2]))
    run(inner.add_items(ITEMS[2:4]))
    assert (run(outer.get_items()), run(inner.get_items())) == (ITEMS[:2], ITEMS[2:4])
    assert run(outer.pop_item()) == ITEMS[1]
    run(outer.clear_session())
    assert (run(outer.pop_item()), run(inner.get_items())) == (None, ITEMS[2:4])


def test_a_conversation_is_of_the_person_of_the_session_of_the_store(store: grainstore.Store) -> None:
    alice, bob = (GrainSession("s", store.session(user_id=name)) for name in ("alice", "bob"))
    run(alice.add_items(ITEMS[:2]))
    assert run(bob.get_items()) == []
    assert run(GrainSession("s", store.aio, user_id="alice").get_items()) == ITEMS[:2]
    assert store.erase_user("alice", "she asked for it")["counts"]["erased"] == 2
    assert run(alice.get_items()) == []


def test_ids_of_sessions_are_told_apart_sign_by_sign(store: grainstore.Store) -> None:
    ids = ["\u00e9", "e\u0301", "\u212b", "\u00c5", "%C3%A9", "e%CC%81", "\ufeffx", "x", "\ud800", "a:b", "a\0b", " "]
    for id in ids:
        run(GrainSession(id, store).add_items([{"role": "user", "content": ascii(id)}]))
    for id in ids:
        [item] = run(GrainSession(id, store).get_items())
        assert item["content"] == ascii(id)
    assert len(list(store.query({"session_id": "a:b"}))) == 1


def test_where_one_item_is_held_all_stay(session: GrainSession, store: grainstore.Store) -> None:
    run(session.add_items(ITEMS))
    held = next(store.query({"session_id": "s"}, text="brief"))
    store.hold(held, "case 7")
    with pytest.raises(grainstore.InvalidationDeniedError):
        run(session.clear_session())
    assert run(session.get_items()) == ITEMS
    store.lift_hold(held, "settled")
    run(session.clear_session())
    assert list(store.query({"namespace": "openai-agents"}, include_superseded=True)) == []


def test_what_was_cleared_in_part_is_finished(
    session: GrainSession, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(session.add_items(ITEMS))
    cut_short(monkeypatch, store, after=4)
    with pytest.raises(KeyboardInterrupt):
        session._clear()
    monkeypatch.undo()
    run(session.add_items(ITEMS[:2]))
    GrainSession("s", store.session(namespace="openai-agents"))
    assert len(list(store.query({"session_id": "s", "type": "event"}))) == len(ITEMS) - 4 + 2
    assert run(GrainSession("s", store).get_items()) == ITEMS[:2]
    assert len(list(store.query({"namespace": "openai-agents"}, include_superseded=True))) == 2


def large(seed: int) -> Any:
    return {"role": "user", "content": random.Random(seed).randbytes(800_000).hex()}


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_pop_that_was_cut_short_leaves_no_parts(
    after: int, session: GrainSession, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(session.add_items([ITEMS[0], large(1)]))
    assert len(list(store.query({"relation": "part"}))) == 2
    cut_short(monkeypatch, store, after=after)
    with pytest.raises(KeyboardInterrupt):
        session._pop()
    monkeypatch.undo()
    again = GrainSession("s", store)
    if after == 0:
        assert run(again.pop_item()) == large(1)
        again = GrainSession("s", store)
    assert run(again.get_items()) == ITEMS[:1]
    assert [found["type"] for found in store.query({"session_id": "s"})] == ["event"]


def test_items_that_are_refused_leave_no_parts(
    session: GrainSession, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many = grainstore.Store.put_many

    def refusing(self: Any, grains: Any) -> Any:
        if any(grain["type"] == "event" for grain in grains):
            raise grainstore.PolicyError("no")
        return put_many(self, grains)

    monkeypatch.setattr(grainstore.Store, "put_many", refusing)
    with pytest.raises(grainstore.PolicyError):
        run(session.add_items([large(1), ITEMS[0]]))
    assert list(store.query({"namespace": "openai-agents"})) == []


def test_items_that_are_added_while_the_session_is_cleared_are_whole(
    session: GrainSession, store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(session.add_items([large(1)]))
    next_time = session._next_time

    def clearing() -> int:
        session._clear()
        return next_time()

    monkeypatch.setattr(session, "_next_time", clearing)
    run(session.add_items([large(2)]))
    assert run(session.get_items()) == [large(2)]
    session._clear()
    assert list(store.query({"namespace": "openai-agents"}, include_superseded=True)) == []


def test_more_than_a_commit_holds_is_added_at_once(session: GrainSession, store: grainstore.Store) -> None:
    chance = random.Random(6)
    items: list[Any] = [{"role": "user", "content": chance.randbytes(700_000).hex()} for _ in range(24)]
    items += [{"role": "user", "content": f"{number} " + chance.randbytes(60_000).hex()} for number in range(200)]
    run(session.add_items(items))
    assert run(session.get_items()) == items
    assert len({found["created_at"] for found in store.query({"session_id": "s", "type": "event"})}) == 1
    with pytest.raises(ValueError, match="100000 items are too many to be added at once"):
        run(session.add_items([ITEMS[0]] * 100_000))


def test_an_item_of_which_a_part_was_erased_says_so(session: GrainSession, store: grainstore.Store) -> None:
    run(session.add_items([ITEMS[0], large(1)]))
    store.erase(next(store.query({"relation": "part"})), "by mistake")
    with pytest.raises(grainstore.IntegrityError, match="a part of the last item of the session 's' was erased"):
        run(asyncio.wait_for(session.pop_item(), 30))
    assert run(session.get_items()) == ITEMS[:1]
    run(session.clear_session())
    assert list(store.query({"namespace": "openai-agents"}, include_superseded=True)) == []


def test_order_is_kept_where_the_clock_is_set_back(session: GrainSession, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    for number, at in enumerate([now, now - 3_600 * 10**9, now + 10**9, now - 1]):
        monkeypatch.setattr("time.time_ns", lambda at=at: at)
        run(session.add_items([{"role": "user", "content": str(number)}]))
    assert [item["content"] for item in run(session.get_items())] == ["0", "1", "2", "3"]


def test_many_that_pop_get_different_items(store: grainstore.Store) -> None:
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(40)]

    async def main() -> list[Any]:
        sessions = [GrainSession("s", store) for _ in range(8)]
        await sessions[0].add_items(items)
        return await asyncio.gather(*(sessions[number % 8].pop_item() for number in range(45)))

    popped = run(main())
    assert popped.count(None) == 5
    assert sorted(int(item["content"]) for item in popped if item) == list(range(40))


def test_what_is_added_at_once_stays_together(store: grainstore.Store) -> None:
    async def main() -> list[Any]:
        sessions = [GrainSession("s", store.aio) for _ in range(6)]

        async def work(number: int) -> None:
            for at in range(5):
                await sessions[number].add_items(
                    [{"role": "user", "content": f"{number} {at} {part}"} for part in range(3)]
                )

        await asyncio.gather(*map(work, range(6)))
        return await sessions[0].get_items()

    said = [item["content"].split() for item in run(main())]
    batches = [said[at : at + 3] for at in range(0, len(said), 3)]
    assert len(batches) == 30
    assert all([part for _, _, part in batch] == ["0", "1", "2"] for batch in batches)
    assert all(len({(number, at) for number, at, _ in batch}) == 1 for batch in batches)
    for number in range(6):
        assert [batch[0][1] for batch in batches if batch[0][0] == str(number)] == ["0", "1", "2", "3", "4"]


PROCESS = """
    import asyncio, sys
    from grainstore.openai_agents import GrainSession
    async def main():
        session = GrainSession("s", sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        for at in range(20):
            await session.add_items([{"role": "user", "content": f"{sys.argv[2]} {at} {part}"} for part in range(2)])
            print(at, flush=True)
            if at % 4 == 3:
                print("popped", (await session.pop_item())["content"], flush=True)
        await asyncio.sleep(float(sys.argv[3]))
        session.close()
    asyncio.run(main())
"""


def _process(path: Path, name: str, lasting: float) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", textwrap.dedent(PROCESS), str(path), name, str(lasting)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_order_is_kept_across_processes(tmp_path: Path) -> None:
    processes = [_process(tmp_path / "store", name, 0.5) for name in "xyz"]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    told = [process.communicate("go\n", timeout=120)[0] for process in processes]
    popped = [line.removeprefix("popped ") for one in told for line in one.splitlines() if line.startswith("popped")]
    assert len(popped) == len(set(popped)) == 15
    session = GrainSession("s", tmp_path / "store")
    said = [item["content"] for item in run(session.get_items())]
    session.close()
    everything = {f"{name} {at} {part}" for name in "xyz" for at in range(20) for part in range(2)}
    assert sorted([*said, *popped]) == sorted(everything)
    for name in "xyz":
        own = [tuple(map(int, one.split()[1:])) for one in said if one.startswith(name)]
        assert own == sorted(own)


def test_a_process_that_is_killed_loses_nothing_that_was_told(tmp_path: Path) -> None:
    process = _process(tmp_path / "store", "x", 600)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    lines = [process.stdout.readline() for _ in range(12)]
    process.kill()
    lines += process.communicate()[0].splitlines(keepends=True)
    session = GrainSession("s", tmp_path / "store")
    said = [item["content"] for item in run(session.get_items())]
    session.close()
    told = [int(line) for line in lines if line.strip().isdigit()]
    for at in told[:-1]:
        assert f"x {at} 0" in said


def test_a_task_that_is_cancelled_has_added_all_or_nothing(session: GrainSession) -> None:
    async def main() -> list[Any]:
        task = asyncio.ensure_future(session.add_items(ITEMS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert run(main()) == ITEMS


def test_what_cannot_be_kept_is_refused_and_nothing_is_stored(session: GrainSession, store: grainstore.Store) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        run(session.add_items([ITEMS[0], {"content": object()}]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="item 1 is a ResponseOutputMessage, not a dict"):
        run(session.add_items([ITEMS[0], said("hello")]))  # type: ignore[list-item]
    assert run(session.get_items()) == []
    with pytest.raises(ValueError, match="needs an id"):
        GrainSession("", store)
    with pytest.raises(TypeError, match="a store or the path of one, not int"):
        GrainSession("s", 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is a text, not int"):
        GrainSession(7, store)  # type: ignore[arg-type]


def test_a_session_of_a_store_that_may_not_erase(store: grainstore.Store) -> None:
    session = GrainSession("s", store.session(namespace="team"), namespace="team:chat")
    run(session.add_items(ITEMS[:2]))
    with pytest.raises(grainstore.AccessError):
        run(session.pop_item())
    assert run(session.get_items()) == ITEMS[:2]


class Scripted(Model):
    """A model that says what it was told to say, and notes what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.asked: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.asked.append(json.loads(json.dumps(input)))
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError("this model does not stream")


def said(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[content])


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_a_runner_remembers_across_stores(tmp_path: Path) -> None:
    call = ResponseFunctionToolCall(type="function_call", call_id="c1", name="weather", arguments='{"city": "Oslo"}')
    model = Scripted(said("hello alice"), call, said("take an umbrella"), said("you are alice"))
    agent = Agent(name="helper", model=model, tools=[weather])
    quiet = RunConfig(tracing_disabled=True)

    async def turn(question: str) -> str:
        async with GrainSession("talk", tmp_path / "store") as session:
            result = await Runner.run(agent, question, session=session, run_config=quiet)
        return str(result.final_output)

    assert run(turn("i am alice")) == "hello alice"
    assert run(turn("and the weather in Oslo?")) == "take an umbrella"
    assert run(turn("who am i?")) == "you are alice"
    last = model.asked[-1]
    assert [item.get("role", item.get("type")) for item in last] == [
        *["user", "assistant"],
        *["user", "function_call", "function_call_output", "assistant"],
        "user",
    ]
    assert last[4]["output"] == "rain in Oslo"


def test_without_the_sdk_the_extra_is_named() -> None:
    code = "import sys; sys.modules['agents'] = None; import grainstore.openai_agents"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: grainstore.openai_agents needs the SDK: pip install grainstore[openai-agents]" in done.stderr


def test_a_large_item_that_was_taken_out_in_part_is_finished(
    store: grainstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = GrainSession("c", store)
    large = random.Random(7).randbytes(9_000_000).hex()
    asyncio.run(session.add_items([{"role": "user", "content": large}]))
    cut_short(monkeypatch, store, after=1)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(session.pop_item())
    monkeypatch.undo()
    # The parts are more than an answer holds.
    assert asyncio.run(GrainSession("c", store).get_items()) == []
    assert list(store.query({"namespace": "openai-agents"}, include_superseded=True)) == []
