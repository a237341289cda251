"""Searches by meaning, with an embedder that counts letters."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import grainstore
from grainstore.langgraph import GrainStore

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vector(text: str) -> list[float]:
    """How often each letter is in a text, and how many signs it has."""
    return [*(float(text.lower().count(letter)) for letter in LETTERS), len(text) / 100]


class Counting(Embeddings):
    """An embedder that tells how it was asked."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self.queries: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.extend(texts)
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return vector(text)


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [vector(text) for text in texts]


def opened(path: Path, **config: Any) -> GrainStore:
    config.setdefault("embed", embed)
    index: Any = {"dims": 27, **config}
    return GrainStore(path / "store", index=index)


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


WORDS = ["tea", "coffee", "zebra", "quiz", "harbour", "jazz", "opal", "xylophone", "mango", "velvet"]


@pytest.mark.parametrize("seed", range(6))
def test_scores_and_order_are_those_of_in_memory(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fields = chance.choice([["text"], ["text", "in.more"], ["$"]])
    model = InMemoryStore(index=IndexConfig(dims=27, embed=embed, fields=fields))
    with opened(tmp_path, fields=fields) as store:
        for number in range(30):
            text = " ".join(chance.sample(WORDS, 3)) + f" {number}"
            value = {"text": text, "n": number, "in": {"more": f"{text} {chance.choice(WORDS)}"}}
            op = PutOp(("a", chance.choice("xy")), f"k{number}", value, index=False if number % 5 == 0 else None)
            model.batch([op])
            store.batch([op])
        for _ in range(15):
            query = " ".join(chance.sample(WORDS, 2))
            filter = chance.choice([None, {"n": {"$gte": 12}}, {"n": {"$lt": 3}}])
            limit, offset = chance.choice([1, 5, 10, 100]), chance.choice([0, 0, 2])
            search = SearchOp(("a",), filter, limit, offset, query)
            expected: Any = model.batch([search])[0]
            found: Any = store.batch([search])[0]
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert (one.score is None) == (other.score is None)
                if one.score is None:
                    assert (one.key, one.value) == (other.key, other.value)
                else:
                    assert math.isclose(one.score, other.score, abs_tol=1e-5)


def test_one_vector_for_each_path_and_the_best_counts(tmp_path: Path) -> None:
    value = {"a": {"b": "jazz"}, "list": [{"c": "zebra"}, {"c": "opal"}, {"d": 1}], "other": "quiz"}
    wanted = {"a.b": ["jazz"], "list[*].c": ["zebra", "opal"], "list[0].c": ["zebra"], "list[-1].d": ["1"]}
    for fields, texts in wanted.items():
        counting = Counting()
        with opened(tmp_path / fields, fields=[fields], embed=counting) as store:
            store.put(("n",), "k", value)
            assert counting.documents == texts
            for text in texts:
                score = store.search(("n",), query=text)[0].score
                assert score is not None and math.isclose(score, 1, abs_tol=1e-6)


def test_the_whole_value_is_embedded_where_no_field_is_named(tmp_path: Path) -> None:
    counting = Counting()
    with opened(tmp_path, embed=counting) as store:
        store.put(("n",), "k", {"b": 1, "a": "é"})
        assert counting.documents == ['{"a": "é", "b": 1}']


def test_a_put_says_what_is_embedded(tmp_path: Path) -> None:
    counting = Counting()
    with opened(tmp_path, fields=["text"], embed=counting) as store:
        store.put(("n",), "none", {"text": "tea", "more": "jazz"}, index=False)
        store.put(("n",), "more", {"text": "tea", "more": "jazz"}, index=["more"])
        store.put(("n",), "text", {"text": "tea", "more": "jazz"})
        assert counting.documents == ["jazz", "tea"]
        found = store.search(("n",), query="jazz")
        assert keys(found) == ["more", "text", "none"]
        assert [item.score is None for item in found] == [False, False, True]
        assert store.get(("n",), "none") is not None
        assert keys(store.search(("n",), filter={"more": "jazz"})) == ["none", "more", "text"]
        # The vectors of a value are those of its last put.
        store.put(("n",), "more", {"text": "tea", "more": "quiz"}, index=False)
        assert [item.key for item in store.search(("n",), query="jazz") if item.score is not None] == ["text"]
        assert counting.queries == ["jazz", "jazz"]


def test_items_without_vectors_follow_and_pages_do_not_repeat_them(tmp_path: Path) -> None:
    with opened(tmp_path, fields=["text"]) as store:
        for number in range(3):
            store.put(("n",), f"scored{number}", {"text": WORDS[number]})
            store.put(("n",), f"plain{number}", {"other": 1})
        pages = [keys(store.search(("n",), query="tea", limit=2, offset=offset)) for offset in range(0, 8, 2)]
        assert [key for page in pages for key in page] == keys(store.search(("n",), query="tea"))
        assert [key[:6] for page in pages for key in page] == ["scored"] * 3 + ["plain0", "plain1", "plain2"]
        assert pages[3] == []


def test_a_filter_looks_beyond_the_nearest(tmp_path: Path) -> None:
    """A search of vectors answers about a thousand: what matches may be farther away than all of these."""
    with opened(tmp_path, fields=["text"]) as store:
        near = [PutOp(("n",), f"near{at}", {"text": f"tea {'a' * (at % 7)}"}) for at in range(1100)]
        far = [PutOp(("n",), f"far{at}", {"text": "zzz" + "x" * at, "far": True}) for at in range(3)]
        store.batch([*far, *near])
        found = store.search(("n",), query="tea", filter={"far": True})
        assert {item.key for item in found} == {"far0", "far1", "far2"}
        scores = [item.score for item in found if item.score is not None]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert len(store.search(("n",), query="tea", limit=1100)) == 1100


def test_an_index_on_a_store_that_had_none(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store") as store:
        store.put(("n",), "old", {"text": "tea"})
    with opened(tmp_path, fields=["text"]) as store:
        assert [(item.key, item.score) for item in store.search(("n",), query="tea")] == [("old", None)]
        store.put(("n",), "new", {"text": "tea"})
        assert keys(store.search(("n",), query="tea")) == ["new", "old"]
    with opened(tmp_path, fields=["text"], model="another") as store:
        assert [item.score for item in store.search(("n",), query="tea")] == [None, None]


def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    with GrainStore(tmp_path / "store", index={"dims": 5, "embed": embed}) as store:
        with pytest.raises(ValueError, match="27"):
            store.put(("n",), "k", {"text": "tea"})
        with pytest.raises(ValueError, match="27"):
            store.search(("n",), query="tea")
        assert store.search(("n",)) == []
    for dims in (0, -1, 5000, "3", True):
        index: Any = {"dims": dims, "embed": embed}
        with pytest.raises(ValueError, match="dims"):
            GrainStore(tmp_path / "other", index=index)


def test_too_few_vectors_are_refused(tmp_path: Path) -> None:
    def too_many(texts: Sequence[str]) -> list[list[float]]:
        return [vector("a")] * (len(texts) + 1)

    with opened(tmp_path, embed=too_many) as store, pytest.raises(ValueError, match="given 1 texts, and made 2"):
        store.put(("n",), "k", {})


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300])
def test_vectors_of_what_is_no_number_are_refused_and_nothing_is_left(tmp_path: Path, odd: float) -> None:
    def broken(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, odd if "odd" in text else 2.0] for text in texts]

    with opened(tmp_path, embed=broken, dims=2, fields=["text"]) as store:
        with pytest.raises(ValueError, match="NaN"):
            store.batch([PutOp(("n",), "k", {"text": "odd", "long": "x" * 300_000}), PutOp(("m",), "j", {"text": "x"})])
        with pytest.raises(ValueError, match="NaN"):
            store.search(("n",), query="odd")
        assert list(store._opened().store.query({}, include_superseded=True)) == []


def test_an_embedder_that_fails_leaves_things_as_they_were(tmp_path: Path) -> None:
    def broken(texts: Sequence[str]) -> list[list[float]]:
        raise RuntimeError("no model")

    with opened(tmp_path, embed=broken) as store:
        with pytest.raises(RuntimeError, match="no model"):
            store.put(("n",), "k", {"text": "tea"})
        store.put(("n",), "k", {"text": "tea"}, index=False)
        with pytest.raises(RuntimeError, match="no model"):
            store.search(("n",), query="tea")
        assert keys(store.search(("n",))) == ["k"]


def test_vectors_of_zeros_have_no_score(tmp_path: Path) -> None:
    with opened(
        tmp_path, fields=["text"], embed=lambda texts: [[0.0] * 27 if t == "0" else vector(t) for t in texts]
    ) as store:
        store.put(("n",), "zero", {"text": "0"})
        store.put(("n",), "tea", {"text": "tea"})
        assert [item.score is None for item in store.search(("n",), query="tea")] == [False, True]
        assert [item.score for item in store.search(("n",), query="0")] == [None, None]


def test_an_asynchronous_embedder(tmp_path: Path) -> None:
    loops: list[Any] = []

    async def aembed(texts: Sequence[str]) -> list[list[float]]:
        loops.append(asyncio.get_running_loop())
        return [vector(text) for text in texts]

    async def main() -> None:
        async with opened(tmp_path, embed=aembed, fields=["text"]) as store:
            await store.aput(("n",), "k", {"text": "tea"})
            await store.aput(("n",), "j", {"text": "quiz"})
            found = await store.asearch(("n",), query="tea")
            assert keys(found) == ["k", "j"]
            assert set(loops) == {asyncio.get_running_loop()}

    asyncio.run(main())


def test_a_model_by_name_needs_langchain(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    try:
        import langchain.embeddings  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(ValueError, match="langchain"):
            opened(tmp_path, embed="openai:text-embedding-3-small")
    else:
        pytest.skip("langchain is installed")


def test_long_values_have_vectors_too(tmp_path: Path) -> None:
    with opened(tmp_path, fields=["title"]) as store:
        store.put(("n",), "k", {"title": "jazz", "text": "x" * 400_000})
        store.put(("n",), "j", {"title": "tea"})
        assert keys(store.search(("n",), query="jazz")) == ["k", "j"]
        store.delete(("n",), "k")
        assert keys(store.search(("n",), query="jazz")) == ["j"]


def test_a_put_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    """A grain has at most 1,024 vectors."""
    with opened(tmp_path, fields=["list[*]"]) as store:
        many = {"list": [f"text {at}" for at in range(1025)], "long": "x" * 300_000}
        with pytest.raises(grainstore.LimitError):
            store.put(("n",), "k", many)
        assert list(store._opened().store.query({}, include_superseded=True)) == []
        with pytest.raises(grainstore.LimitError):
            store.batch([PutOp(("n",), "k", many), PutOp(("m",), "fine", {"list": ["tea"]})])
        assert store.list_namespaces() == [("m",)]
        assert keys(store.search((), query="tea")) == ["fine"]
