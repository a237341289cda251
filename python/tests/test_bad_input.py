"""What is wrong is told by its place, loses nothing and crashes nothing."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import pytest

import grainstore
from grainstore import Belief, Event


@pytest.mark.parametrize(
    ("value", "kind", "place"),
    [
        (math.nan, ValueError, "grain.confidence"),
        (math.inf, ValueError, "grain.confidence"),
        (object(), TypeError, "grain.confidence"),
        (1 << 70, ValueError, "grain.confidence"),
        ({1: 2}, TypeError, "grain.confidence"),
        ({"a": [{"b": {1, 2}}]}, TypeError, r"grain.confidence.a\[0\].b"),
        (datetime.datetime(2026, 1, 1), ValueError, "grain.confidence: a time needs a zone"),
        (datetime.date(2026, 1, 1), TypeError, "grain.confidence"),
        ("\ud800", ValueError, "grain.confidence: a lone surrogate"),
        ({"\udfff": 1}, ValueError, "grain.confidence"),
        (1j, TypeError, "grain.confidence"),
    ],
)
def test_a_wrong_value_is_named(store: grainstore.Store, value: object, kind: type[Exception], place: str) -> None:
    grain = Belief("a", "b", "c", confidence=value)  # type: ignore[arg-type]
    with pytest.raises(kind, match=place):
        store.put(grain)
    with pytest.raises(kind, match=place.replace("grain.", r"grains\[1\].")):
        store.put_many([Event("fine"), grain])
    assert store.stats()["grains"] == 0


def test_no_grain_is_told_so(store: grainstore.Store) -> None:
    for nothing in (None, 7, "text", ["list"], Event):
        with pytest.raises(TypeError, match="grain"):
            store.put(nothing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not both"):
        store.put(Event("x"), cose=b"x")
    with pytest.raises(grainstore.GrainstoreError):
        store.put(b"garbage")
    with pytest.raises(grainstore.GrainstoreError):
        store.get("no address")


def test_what_refers_to_itself_is_refused(store: grainstore.Store) -> None:
    loop: dict[str, object] = {}
    loop["loop"] = loop
    with pytest.raises(ValueError, match="nested"):
        store.put({"type": "state", "context": loop})


def test_what_is_too_large_is_refused_before_it_is_copied(store: grainstore.Store) -> None:
    huge = "x" * (1 << 31)
    with pytest.raises(grainstore.TooLargeError, match="content"):
        store.put(Event(huge))
    with pytest.raises(grainstore.TooLargeError):
        store.put(Event("x" * (2 << 20)))


def test_a_value_that_raises_is_passed_on(store: grainstore.Store) -> None:
    class Bad:
        def tolist(self) -> list[float]:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        store.put(Event("x"), vectors={"model": "m", "values": Bad()})


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = grainstore.open(tmp_path / "store")
    session = store.session(namespace="work")
    store.close()
    store.close()
    assert store.closed and session.closed
    for used in (store, session):
        with pytest.raises(grainstore.StoreIOError, match="closed"):
            used.put(Event("x"))
        with pytest.raises(grainstore.StoreIOError, match="closed"):
            used.verify()
    with pytest.raises(grainstore.StoreIOError, match="closed"), store:
        pass


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        grainstore.open(tmp_path, passphrases="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="embedder"):
        grainstore.open(tmp_path / "a", embedder=len)  # type: ignore[arg-type]
    with pytest.raises(grainstore.NotFoundError):
        grainstore.open(tmp_path / "none", create=False)
    with pytest.raises(grainstore.GrainstoreError):
        grainstore.open(tmp_path / "b", preset="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="thread"):
        grainstore.open(tmp_path / "c", threads=0)
    with pytest.raises(grainstore.KeyRequiredError):
        grainstore.open(tmp_path / "d", key=b"short")
