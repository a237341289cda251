"""What a GrainStore does with each operation, beside what the programs of test_store_model compare."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

import grainstore
from grainstore.langgraph import GrainStore, _store, _store_values

ALICE = ("users", "alice")


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


def test_reads_of_a_batch_come_before_its_puts_and_the_last_put_counts(memory: GrainStore) -> None:
    memory.put(ALICE, "a", {"n": 1})
    results = memory.batch(
        [
            PutOp(ALICE, "a", {"n": 2}),
            GetOp(ALICE, "a"),
            PutOp(ALICE, "b", {"n": 1}),
            PutOp(ALICE, "a", {"n": 3}),
            SearchOp(ALICE),
            PutOp(ALICE, "b", None),
        ]
    )
    assert [results[at] for at in (0, 2, 3, 5)] == [None] * 4
    got: Any = results[1]
    assert got.value == {"n": 1}
    assert keys(results[4]) == ["a"]
    last = memory.get(ALICE, "a")
    assert last is not None and last.value == {"n": 3}
    assert memory.get(ALICE, "b") is None


def test_times_of_an_item(memory: GrainStore) -> None:
    memory.put(ALICE, "a", {"n": 1})
    first = memory.get(ALICE, "a")
    memory.put(ALICE, "a", {"n": 1})
    second = memory.get(ALICE, "a")
    memory.delete(ALICE, "a")
    memory.put(ALICE, "a", {"n": 1})
    third = memory.get(ALICE, "a")
    assert first is not None and second is not None and third is not None
    assert first.created_at == first.updated_at
    assert first.created_at.utcoffset() is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert third.created_at == third.updated_at > second.updated_at


def test_a_put_keeps_the_history_and_a_delete_erases_all_of_it(memory: GrainStore, tmp_path: Path) -> None:
    for number in range(3):
        memory.put(ALICE, "diary", {"text": f"secret{number}", "long": "x" * 300_000 if number == 1 else ""})
    memory.put(ALICE, "other", {"text": "kept"})
    with grainstore.open(tmp_path / "memory.grains") as store:
        versions = store.history(subject="diary", relation="langgraphitem", namespace="langgraph:store:users:alice")
        assert len(versions) == 3
        memory.delete(ALICE, "diary")
        left = list(store.query({"namespace": "langgraph"}, include_superseded=True))
        assert {found["subject"] for found in left} == {"other", "namespace"}
        for version in versions:
            with pytest.raises(grainstore.ErasedError):
                store.get(version)
        assert list(store.query(text="secret0", include_superseded=True)) == []
        memory.delete(ALICE, "other")
        assert list(store.query({"namespace": "langgraph"}, include_superseded=True)) == []
        assert store.verify(full=True)["ok"]


def test_other_memory_of_the_store_is_apart(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store") as store:
        others = [
            store.put(grainstore.Belief("alice", "prefers", "tea", confidence=0.9)),
            store.put(grainstore.Belief("prefs", "langgraphitem", "tea", confidence=0.9, namespace="langgraph")),
            store.put(grainstore.Event("tea", namespace="langgraph:other")),
            store.put(grainstore.Event("tea", namespace="langgraph:store2")),
        ]
        memory = GrainStore(store)
        memory.put(("a",), "prefs", {"drink": "tea"})
        assert keys(memory.search(())) == ["prefs"]
        assert [item.score is not None for item in memory.search((), query="tea")] == [True]
        assert memory.list_namespaces() == [("a",)]
        memory.delete(("a",), "prefs")
        assert memory.sweep_ttl() == 0
        assert all(store.exists(other) for other in others)
        memory.close()
        assert not store.closed
        assert store.get(others[0])["object"] == "tea"


def test_labels_cannot_leave_their_namespace(memory: GrainStore) -> None:
    odd = [("a", "b"), ("a:b",), ("a%3Ab",), ("A", "b"), ("a", "*"), ("a", "%"), ("a%",), ("a/b",)]
    for at, namespace in enumerate(odd):
        memory.put(namespace, "k", {"at": at})
    for at, namespace in enumerate(odd):
        item = memory.get(namespace, "k")
        assert item is not None and item.value == {"at": at}
        assert item.namespace == namespace
        assert [found.value["at"] for found in memory.search(namespace)] == [at]
    assert sorted(odd) == memory.list_namespaces()


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", ""), ("a\x00",), (1,), "abc"])
def test_bad_namespaces_are_refused_and_nothing_of_the_batch_is_done(memory: GrainStore, namespace: Any) -> None:
    bad: list[Op] = [
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {}),
        PutOp(namespace, "k", None),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("prefix", namespace),)),
    ]
    for op in bad:
        if namespace == "abc" and isinstance(op, ListNamespacesOp):
            continue
        with pytest.raises(InvalidNamespaceError):
            memory.batch([PutOp(("fine",), "k", {}), op])
    for root in ((), ("langgraph",), ("langgraph", "a")):
        with pytest.raises(InvalidNamespaceError):
            memory.put(root, "k", {})
    assert memory.search(()) == []


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ({"a": float("nan")}, ValueError, "'k' in .'a',.*JSON"),
        ({"a": [float("inf")]}, ValueError, "JSON"),
        ({"a": "\ud800"}, ValueError, "surrogate"),
        ({"\udfff": 1}, ValueError, "surrogate"),
        ({"a": {1: 2}}, TypeError, "names are texts, not int"),
        ({"a": {"b": [{None: 1}]}}, TypeError, "names are texts"),
        ({"a": object()}, TypeError, "JSON"),
        ({"a": b"bytes"}, TypeError, "JSON"),
        ({"a": {1, 2}}, TypeError, "JSON"),
        ([1, 2], TypeError, "is a dict, not list"),
        ("text", TypeError, "is a dict, not str"),
    ],
)
def test_values_that_are_no_json_are_refused(
    memory: GrainStore, value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        memory.batch([PutOp(("a",), "fine", {}), PutOp(("a",), "k", value)])
    assert memory.search(()) == []
    assert memory.list_namespaces() == []


def test_values_that_contain_themselves_or_are_too_deep_are_refused(memory: GrainStore) -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    for value in (loop, deep):
        with pytest.raises(ValueError):
            memory.put(("a",), "k", value)


def nested(levels: int) -> dict[str, Any]:
    value: Any = {} if levels % 2 else []
    for _ in range(levels - 2):
        value = [value] if isinstance(value, dict) else {"d": value}
    return {"top": value, "l": [[]]}


def test_a_value_may_be_nested_deeper_than_a_grain(memory: GrainStore) -> None:
    memory.put(("a",), "k", nested(200))
    item = memory.get(("a",), "k")
    assert item is not None and item.value == nested(200)
    assert keys(memory.search(("a",), filter={"l": [[]]})) == ["k"]


@pytest.mark.parametrize("levels", [201, 1400, 1490])
def test_a_value_that_could_not_be_read_is_refused(memory: GrainStore, levels: int) -> None:
    memory.put(("a",), "fine", {})
    with pytest.raises(ValueError, match=r"nested .* deep"):
        memory.put(("a",), "k", nested(levels))
    assert keys(memory.search(("a",))) == ["fine"]


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"n": ', '{"n": ' + "9" * 5000 + "}"])
def test_an_item_that_cannot_be_read_is_passed_over(
    memory: GrainStore, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """It was put by another version of Python, or by hand."""
    memory.put(("a",), "fine", {"n": 1})
    with monkeypatch.context() as patch:
        parts = (_store_values.Part(text[:100_000], ""), _store_values.Part(text[100_000:], ""))
        patch.setattr(_store, "text_of", lambda value, of: _store_values.Text(parts))
        memory.put(("a",), "k", {"n": 2})
    assert memory.get(("a",), "k") is None
    assert keys(memory.search(("a",))) == ["fine"]
    assert keys(memory.search((), query="k fine")) == ["fine"]
    memory.put(("a",), "k", {"n": 3})
    assert keys(memory.search(("a",))) == ["fine", "k"]


@pytest.mark.parametrize("query", ["\ud800", "tea \udfff", "\x00", "\ufeff", "\u0378 \U000e0001", "+", "-\ud83d\ude00"])
def test_a_question_may_have_any_sign(memory: GrainStore, query: str) -> None:
    memory.put(("a",), "k", {"text": "coffee"})
    memory.put(("a",), "j", {"text": "tea"})
    found = keys(memory.search(("a",), query=query))
    assert found == (["j", "k"] if "tea" in query else ["k", "j"])


def test_wrong_arguments_are_refused(memory: GrainStore, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a key is a text"):
        memory.batch([GetOp(("a",), 5)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown operation"):
        memory.batch(["get"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a path, not int"):
        GrainStore(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="neighbour"):
        memory.batch([ListNamespacesOp((MatchCondition("neighbour", ("a",)),))])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "filter",
    [
        {"n": {"$in": [1]}},
        {"n": {"$gt": 1, "m": 2}},
        {"in": {"n": {"$regex": "x"}}},
        {"l": [{"$or": []}]},
        {"n": {"$gt": "x"}},
    ],
)
def test_unknown_operators_are_refused(memory: GrainStore, filter: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"operator|number"):
        memory.search(("a",), filter=filter)


def test_an_order_passes_over_what_is_no_number(memory: GrainStore) -> None:
    odd: list[Any] = [{"n": 3}, {"n": None}, {}, {"n": "x"}, {"n": [1]}, {"n": "4"}]
    for key, value in zip("abcdef", odd, strict=True):
        memory.put(("a",), key, value)
    assert keys(memory.search(("a",), filter={"n": {"$gt": 2}})) == ["a", "f"]
    assert keys(memory.search(("a",), filter={"n": {"$lte": 3, "$ne": 2}})) == ["a"]


def test_a_filter_looks_at_all_items(memory: GrainStore) -> None:
    memory.batch([PutOp(("many",), f"k{at}", {"at": at, "even": at % 2 == 0}) for at in range(1200)])
    assert keys(memory.search(("many",), filter={"at": 0})) == ["k0"]
    assert keys(memory.search(("many",), filter={"at": 1199})) == ["k1199"]
    assert len(memory.search(("many",), filter={"even": True}, limit=2000)) == 600
    assert len(memory.search(("many",), limit=2000)) == 1200
    assert keys(memory.search(("many",), limit=2, offset=1150)) == ["k1150", "k1151"]


def test_a_long_value(memory: GrainStore) -> None:
    long = {"text": "tea and ümläute 東京 " * 150_000, "tail": "lastword"}
    memory.put(("a",), "long", {"text": "short"})
    memory.put(("a",), "long", long)
    memory.put(("a",), "short", {"text": "short"})
    item = memory.get(("a",), "long")
    assert item is not None and item.value == long
    found = memory.search(("a",), query="lastword", limit=1)
    assert keys(found) == ["long"] and found[0].value == long and found[0].score is not None
    assert keys(memory.search(("a",), filter={"tail": "lastword"})) == ["long"]
    memory.put(("a",), "long", {"text": "short again"})
    assert memory.search(("a",), query="lastword", limit=1)[0].score is None
    memory.delete(("a",), "long")
    assert memory.get(("a",), "long") is None
    assert keys(memory.search(("a",))) == ["short"]


@pytest.mark.parametrize(("between", "lines"), [("\n", 100_000), ("\t", 1000), ('"', 1000), ("\\", 1000)])
def test_a_long_text_of_lines_is_found_by_words_of_each_of_its_parts(
    memory: GrainStore, monkeypatch: pytest.MonkeyPatch, between: str, lines: int
) -> None:
    if lines == 1000:
        monkeypatch.setattr(_store_values, "PART_CHARACTERS", 1000)
    value = {"text": between.join(f"secret{at}" for at in range(lines))}
    memory.put(("a",), "other", {"text": "nothing of that"})
    memory.put(("a",), "log", value)
    item = memory.get(("a",), "log")
    assert item is not None and item.value == value
    for word in ("secret1", f"secret{lines // 2}", f"secret{lines - 1}"):
        assert [found.score is not None for found in memory.search(("a",), query=word)] == [True, False]


@pytest.mark.parametrize("sign", ["\U0001f600", "\u0301", "e\u0301\n", "\x00", "\ufeff", "\u0378"])
def test_a_text_of_odd_signs_alone_fits(memory: GrainStore, sign: str) -> None:
    value = {"text": "\n".join(f"{sign * 3}{at:05}" for at in range(20_000))}
    memory.put(("a",), "k", value)
    item = memory.get(("a",), "k")
    assert item is not None and item.value == value


def test_words_without_end_take_no_time(memory: GrainStore) -> None:
    """Looking for words takes time by the length of a text, not by its square."""
    for text in ("A" * 3_000_000 + " e\u0301\n", "\\" * 500_000, "\u0301" * 300_000):
        memory.put(("a",), "k", {"text": text})
        item = memory.get(("a",), "k")
        assert item is not None and item.value == {"text": text}


@pytest.mark.parametrize("error", [ValueError("no"), grainstore.TooLargeError("no"), KeyError("no")])
def test_a_put_whose_parts_are_refused_leaves_nothing(
    memory: GrainStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    put_many, calls = grainstore.Store.put_many, [0]

    def refusing(self: grainstore.Store, *args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise error
        return put_many(self, *args, **kwargs)

    monkeypatch.setattr(grainstore.Store, "put_many", refusing)
    monkeypatch.setattr(_store_values, "PART_CHARACTERS", 1000)
    with pytest.raises(type(error)):
        memory.put(("a",), "k", {"text": "x" * 40_000})
    assert list(memory._opened().store.query({}, include_superseded=True)) == []
    assert memory.list_namespaces() == []


def test_a_search_without_an_index_goes_by_words(memory: GrainStore) -> None:
    memory.put(("a",), "1", {"text": "She drinks tea\nevery morning"})
    memory.put(("a",), "2", {"text": "The bus leaves at nine"})
    memory.put(("a", "b"), "3", {"text": "Tea, tea and tea", "kind": "x"})
    memory.put(("z",), "4", {"text": "tea"})
    found = memory.search(("a",), query="tea")
    assert {item.key for item in found[:2]} == {"1", "3"}
    assert [item.score is not None for item in found] == [True, True, False]
    assert keys(memory.search(("a",), query="every", limit=1)) == ["1"]
    assert keys(memory.search(("a",), query="tea", filter={"kind": "x"})) == ["3"]
    assert len(memory.search(("a",), query="tea", limit=1)) == 1
    assert [item.key for item in memory.search(("a",), query="tea", offset=2)] == ["2"]
    assert len(memory.search(("a",), query='((( "')) == 3
    assert memory.search(("a",), query="tea " * 5000)[0].score is not None


@pytest.mark.parametrize("word", ["étude", "next", "tab", "Ångström", "naïve"])
def test_words_beside_escapes_and_in_other_forms_are_found(memory: GrainStore, word: str) -> None:
    memory.put(("a",), "other", {"text": "nothing of that"})
    memory.put(("a",), "k", {"text": "e\u0301tude one\nnext\ttab A\u030angstro\u0308m nai\u0308ve \u0378"})
    found = memory.search(("a",), query=word)
    assert found[0].key == "k" and found[0].score is not None
    assert found[0].value["text"].startswith("e\u0301tude")
    assert found[1].score is None


def test_namespaces_are_listed_while_they_have_items(memory: GrainStore) -> None:
    assert memory.get(("asked", "for"), "k") is None
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("b", "c")]:
        memory.put(namespace, "k", {})
    assert memory.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("b", "c")]
    assert memory.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert memory.list_namespaces(prefix=("*", "b"), suffix=("c",)) == [("a", "b", "c")]
    assert memory.list_namespaces(suffix=("*", "c")) == [("a", "b", "c"), ("b", "c")]
    assert memory.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("b", "c")]
    assert memory.list_namespaces(max_depth=1, limit=1, offset=1) == [("b",)]
    memory.delete(("a", "b", "c"), "k")
    memory.delete(("a", "b", "d"), "k")
    assert memory.list_namespaces(max_depth=2) == [("a", "x"), ("b", "c")]
    memory.put(("a", "b", "c"), "k", {})
    assert memory.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("b", "c")]


def test_calls_from_many_threads(memory: GrainStore) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(15):
                memory.put(("shared",), "one", {"by": number, "at": at, "same": [number] * 3})
                memory.put(("own", str(number)), f"k{at}", {"at": at})
                item = memory.get(("shared",), "one")
                assert item is not None and item.value["same"] == [item.value["by"]] * 3
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(memory.search(("own",), limit=1000)) == 90
    assert len(memory.search(("shared",))) == 1


def test_long_values_of_several_writers_are_never_mixed(memory: GrainStore) -> None:
    stop = threading.Event()
    seen: list[Any] = []

    def write(number: int) -> None:
        while not stop.is_set():
            memory.put(("a",), "long", {"by": number, "text": str(number) * 300_000})

    def change() -> None:
        while not stop.is_set():
            memory.delete(("a",), "long")

    def read() -> None:
        while not stop.is_set():
            seen.append(memory.get(("a",), "long"))

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    threads += [threading.Thread(target=change), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    stop.set()
    for thread in threads:
        thread.join()
    for item in filter(None, seen):
        assert item.value["text"] == str(item.value["by"]) * 300_000
    memory.delete(("a",), "long")
    store = memory._opened().store
    assert list(store.query({"namespace": "langgraph"}, include_superseded=True)) == []


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    memory = GrainStore(tmp_path / "store")
    memory.put(("a",), "k", {})
    memory.close()
    memory.close()
    with pytest.raises(grainstore.StoreIOError, match="closed"):
        memory.get(("a",), "k")
    with pytest.raises(grainstore.StoreIOError, match="closed"), memory:
        pass
    with grainstore.open(tmp_path / "store") as store:
        given = GrainStore(store)
        assert given.get(("a",), "k") is not None
    with pytest.raises(grainstore.StoreIOError):
        given.get(("a",), "k")


def test_a_session_that_may_not_erase_is_told(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store") as store:
        memory = GrainStore(store.session(namespace="langgraph"))
        memory.put(("a",), "k", {"n": 0, "long": "x" * 300_000}, ttl=0.0001)
        memory.put(("a",), "k", {"n": 0, "long": "y" * 300_000})
        memory.put(("a",), "k", {"n": 1})
        with pytest.raises(grainstore.AccessError):
            memory.delete(("a",), "k")
        item = memory.get(("a",), "k")
        assert item is not None and item.value == {"n": 1}


def test_an_encrypted_store(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store", passphrase="pass") as store:
        memory = GrainStore(store)
        memory.put(("a",), "k", {"text": "tea"})
        memory.put(("a",), "k", {"text": "coffee"})
        assert keys(memory.search(("a",), query="coffee", filter={"text": "coffee"})) == ["k"]
        assert memory.list_namespaces() == [("a",)]
        memory.delete(("a",), "k")
        assert memory.search(()) == []


def test_a_store_that_is_only_read(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store") as memory:
        memory.put(("a",), "k", {"text": "tea"}, ttl=0.0001)
    with grainstore.open(tmp_path / "store", read_only=True) as store:
        memory = GrainStore(store)
        assert memory.get(("a",), "k") is not None
        assert keys(memory.search((), query="tea")) == ["k"]
        with pytest.raises(grainstore.ReadOnlyError):
            memory.put(("a",), "k", {})
        with pytest.raises(grainstore.ReadOnlyError):
            memory.delete(("a",), "k")


@pytest.mark.parametrize("preset", ["open", "gdpr", "ccpa", "lgpd"])
def test_stores_with_rules(tmp_path: Path, preset: Any) -> None:
    with grainstore.open(tmp_path / "store", preset=preset) as store:
        memory = GrainStore(store)
        memory.put(("a",), "k", {"text": "x" * 300_000})
        memory.put(("a",), "k", {"text": "tea"}, ttl=5)
        assert keys(memory.search(("a",), query="tea")) == ["k"]
        memory.delete(("a",), "k")
        assert list(store.query({}, include_superseded=True)) == []


def test_rules_that_keep_grains_keep_items(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store", preset="hipaa") as store:
        memory = GrainStore(store)
        memory.put(("a",), "k", {"text": "x" * 300_000})
        memory.put(("a",), "k", {"text": "tea"}, ttl=0.0001)
        with pytest.raises(grainstore.PolicyError):
            memory.delete(("a",), "k")
        assert memory.get(("a",), "k") is not None
        memory.put(("a",), "k", {"text": "tea"}, ttl=0)
        assert memory.sweep_ttl() == 0
        assert memory.get(("a",), "k", refresh_ttl=False) is not None


@pytest.mark.parametrize("version", [0, 1])
def test_a_version_under_hold_keeps_all_of_the_item(tmp_path: Path, version: int) -> None:
    with grainstore.open(tmp_path / "store") as store:
        memory = GrainStore(store)
        memory.put(("a",), "k", {"text": "old"})
        memory.put(("a",), "k", {"text": "x" * 300_000}, ttl=0)
        versions = store.history(subject="k", relation="langgraphitem", namespace="langgraph:store:a")
        store.hold(versions[version], "case 7")
        with pytest.raises(grainstore.InvalidationDeniedError):
            memory.delete(("a",), "k")
        assert memory.sweep_ttl() == 0
        item = memory.get(("a",), "k", refresh_ttl=False)
        assert item is not None and item.value == {"text": "x" * 300_000}
        assert len(store.history(versions[1])) == 2
        store.lift_hold(versions[version], "settled")
        assert memory.sweep_ttl() == 1
        assert list(store.query({}, include_superseded=True)) == []
