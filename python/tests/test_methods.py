"""Every method of a store is to be had, and does what it says."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

import grainstore
from grainstore import Belief, Event

KEY = bytes(range(32))
#: Methods of a connection, which opening, sessions and closing stand for here; and streams of bytes.
OTHERWISE = {"open", "close", "session", "hello", "read_frames", "write_frames", "check_view", "restore_view"}


def test_each_method_of_the_store_has_one_here(store: grainstore.Store) -> None:
    folder = Path(grainstore.__file__).parent
    source = "".join((folder / name).read_text() for name in ("_calls.py", "_store.py"))
    called = set(re.findall(r'_(?:do|long)\(\s*"([a-z_]+)"', source))
    methods = set(store.call("hello")["methods"]) - OTHERWISE
    missing = {name for name in methods - called if not name.startswith("saga_")}
    assert not missing


def test_links_are_followed(store: grainstore.Store) -> None:
    tea = store.put(Belief("alice", "likes", "tea", confidence=0.9))
    store.put(Belief("tea", "comes from", "assam", confidence=0.9))
    child = store.put(Event("she ordered it", derived_from=[tea.address], session_id="s"))
    link = {"hash": tea.address, "relation_type": "elaborates"}
    store.put(Event("more on it", related_to=[link]))
    assert store.neighbours("tea", direction="in")["edges"][0]["subject"] == "alice"
    assert len(store.paths("alice", "assam")["paths"][0]) == 2
    assert [one["address"] for one in store.ancestry(child)["grains"]] == [tea.address]
    assert [one["address"] for one in store.children(tea)["grains"]] == [child.address]
    assert store.related(tea)["links"][0]["kind"] == "elaborates"
    assert [one["address"] for one in store.thread(session_id="s")["messages"]] == [child.address]


def test_marks_and_policies(store: grainstore.Store) -> None:
    tea = store.put(Belief("alice", "likes", "tea", confidence=0.9))
    store.hold(tea, "case 7")
    with pytest.raises(grainstore.InvalidationDeniedError):
        store.contradict(tea, "measured")
    store.lift_hold(tea, "settled")
    store.set_verification(tea, "contested", "she says otherwise")
    store.contradict(tea, "measured")
    assert store.get(tea).state.contradicted and not store.get(tea).state.is_current
    assert store.explain_policy(tea)["policy"]["mode"] == "open"
    operations = [entry["operation"] for entry in store.audit(limit=100)["entries"]]
    assert {"hold", "lift_hold", "contradict"} <= set(operations)
    checkpoint = store.checkpoint()
    assert store.verify(checkpoint=checkpoint)["ok"]


def test_signatures(store: grainstore.Store) -> None:
    signed = store.sign(Event("signed"), KEY)
    put = store.put(cose=base64.b64decode(signed["cose"]))
    stored = store.get(put)
    assert stored.envelope is not None
    assert stored.signature is not None and stored.signature["verdict"] == "valid"
    assert store.verify_signature(stored.envelope)["did"] == signed["did"]
    made = store.encode(Event("left", created_at=1_768_471_200_000))
    assert store.decode(base64.b64decode(made["blob"]))["address"] == made["address"]
    view = store.disclose(Belief("alice", "likes", "tea", confidence=0.9), ["subject"])
    assert "subject" not in view["grain"]


def test_cal_is_prepared_switched_and_converted(store: grainstore.Store) -> None:
    add = 'ADD belief SET subject = "bob" SET relation = "likes" SET object = "tea" REASON "he said so"'
    prepared = store.prepare(add, evolve=True)
    assert store.stats()["grains"] == 0
    store.execute(prepared["token"])
    with pytest.raises(grainstore.TokenError):
        store.execute(prepared["token"])
    assert store.cal_convert("RECALL beliefs")["json"]["statement"] == "recall"
    store.cal_switch("off", "a test")
    with pytest.raises(grainstore.DisabledError):
        store.cal("RECALL beliefs")
    assert store.cal_switch("on", "a test")["changed"]
    events: list[dict[str, object]] = []
    store.stream("ASSEMBLE FROM (RECALL beliefs) BUDGET 100 tokens STREAM { all }", on_event=events.append)
    assert events

    def stop(event: object) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        store.stream("ASSEMBLE FROM (RECALL beliefs) BUDGET 100 tokens STREAM { all }", on_event=stop)


def test_neighbouring_formats(store: grainstore.Store, tmp_path: Path) -> None:
    store.put(Belief("alice", "likes", "tea", confidence=0.9))
    agent = "0a1b2c3d-0000-4000-8000-00000000000a"
    assert store.export_alf(tmp_path / "a.alf", agent_id=agent, agent_name="Ada", native=True)["records"] == 1
    assert store.alf_validate(tmp_path / "a.alf")["valid"]
    assert store.alf_delta(tmp_path / "a.alf-delta", 1)["delta"] is None
    assert store.alf_purge("user_request", agent, whole_agent=True, dry_run=True)["records_removed"] == 1
    store.ages_export(tmp_path / "pack.json")
    assert store.ages_verify(tmp_path / "pack.json")["verdict"] == "VALID"
    assert store.ages_segments()["segments"]
    memory = tmp_path / "memory.jsonl"
    memory.write_text('{"type": "entity", "name": "bob", "entityType": "person", "observations": ["likes tea"]}\n')
    assert store.migrate("server-memory", memory, dry_run=True)["records"] >= 1
    assert any(one["name"] == "server-memory" for one in store.migrate_formats())
    with grainstore.open(tmp_path / "other") as other:
        assert other.import_alf(tmp_path / "a.alf")["records"]["created"] == 1
    with pytest.raises(grainstore.GrainstoreError):
        store.saga("export", wallet={"chain": "eip155:1", "key": "AAAA"})
