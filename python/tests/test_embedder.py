"""A function of Python that makes vectors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import grainstore
from grainstore import Embedder, Event

DRINKS = {"tea": [1.0, 0.0], "coffee": [0.9, 0.1], "cello": [0.0, 1.0]}


def embed(texts: list[str]) -> list[list[float]]:
    return [next((vector for word, vector in DRINKS.items() if word in text), [0.7, 0.7]) for text in texts]


def test_grains_get_vectors_of_it(tmp_path: Path) -> None:
    with grainstore.open(tmp_path / "store", embedder=Embedder(embed, "words", 2)) as store:
        store.put_many(Event(f"about {word}") for word in DRINKS)
        assert store.wait_for_vectors(30)
        found = store.query(vector={"model": "words", "values": [1.0, 0.05]})
        assert [next(found)["content"], next(found)["content"]] == ["about tea", "about coffee"]


def test_arrays_are_vectors(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    made = Embedder(lambda texts: numpy.array(embed(texts), dtype=numpy.float32), "words", 2)
    with grainstore.open(tmp_path / "store", embedder=made) as store:
        store.put(Event("about tea"))
        assert store.wait_for_vectors(30)


def test_one_that_fails_loses_nothing(tmp_path: Path) -> None:
    def raises(texts: list[str]) -> list[Any]:
        raise ZeroDivisionError(texts)

    answers: list[Any] = [[[1.0]], ["x"], None, 7, [[1.0, 2.0], [3.0, 4.0]], [[float("nan"), 0.0]]]
    for wrong in [raises, *((lambda texts, answer=answer: answer) for answer in answers)]:
        with grainstore.open(tmp_path / "store", embedder=Embedder(wrong, "words", 2)) as store:
            address = store.put(Event("about tea"))
            assert not store.wait_for_vectors(0.5)
            assert store.stats()["embedding"]["error"]
            assert store.get(address)["content"] == "about tea"
            assert [found["content"] for found in store.query(text="tea", limit=1)] == ["about tea"]
    with grainstore.open(tmp_path / "store", embedder=Embedder(embed, "words", 2)) as store:
        assert store.wait_for_vectors(60)


def test_one_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    never = threading.Event()

    def waits(texts: list[str]) -> list[list[float]]:
        never.wait()
        return embed(texts)

    hangs = Embedder(waits, "words", 2, timeout=0.2)
    with grainstore.open(tmp_path / "store", embedder=hangs) as store:
        store.put(Event("about tea"))
        assert not store.wait_for_vectors(0.5)
        assert [found["content"] for found in store.query(text="tea")] == ["about tea"]
    never.set()


def test_one_may_use_the_store(tmp_path: Path) -> None:
    opened: list[grainstore.Store] = []

    def asks(texts: list[str]) -> list[list[float]]:
        if opened:
            opened[0].stats()
        return embed(texts)

    with grainstore.open(tmp_path / "store", embedder=Embedder(asks, "words", 2)) as store:
        opened.append(store)
        store.put(Event("about tea"))
        assert store.wait_for_vectors(30)


def test_wrong_embedders_are_refused() -> None:
    with pytest.raises(TypeError):
        Embedder("no function", "m", 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dimension"):
        Embedder(embed, "m", 0)
