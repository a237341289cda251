"""Generated programs of operations, run on InMemoryStore and on GrainStore: both answer the same.

InMemoryStore remembers namespaces that are empty, even such as were only asked for, and lists them; GrainStore lists
those that have items. So the model forgets empty namespaces after each batch.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from grainstore.langgraph import GrainStore

LABELS = [
    "a",
    "b",
    "A",
    "*",
    "%",
    "%41",
    "a:b",
    "x/y",
    " ",
    "\n",
    "_",
    "é",
    "e\u0301",
    "\ufeff",
    "東京",
    "\ud800",
    "😀",
]
KEYS = ["", "k", "K", "%", "a:b", "é", "e\u0301", " k ", "\ufeff", "\udc80", "\x7f", "namespace", "k" * 300]
TEXTS = [
    "",
    "tea",
    "e\u0301tude",
    "\ufeff",
    "\x00",
    "line\nline",
    '"quoted"',
    "\u212b",
    "C:\\new",
    "\u0378",
    "≯",
    ">\u0338",
]


class Model(InMemoryStore):
    """InMemoryStore, without namespaces that are empty."""

    def __init__(self) -> None:
        super().__init__()
        self.born: dict[tuple[str, ...], int] = {}
        self.count = itertools.count()

    def _apply_put_ops(self, put_ops: Any) -> None:
        for (namespace, _), op in put_ops.items():
            if op.value is not None:
                self.born.setdefault(namespace, next(self.count))
        super()._apply_put_ops(put_ops)
        self.forget_empty()
        for namespace in set(self.born) - set(self._data):
            del self.born[namespace]
        for namespace in sorted(self._data, key=self.born.__getitem__):
            self._data[namespace] = self._data.pop(namespace)

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        self.forget_empty()
        return super()._handle_list_namespaces(op)

    def forget_empty(self) -> None:
        for namespace, items in list(self._data.items()):
            if not items:
                del self._data[namespace]


class Program:
    """Operations, as chance has them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = self.random.sample(LABELS, 4)
        self.keys = self.random.sample(KEYS, 4)

    def namespace(self, least: int = 1) -> tuple[str, ...]:
        return tuple(self.random.choices(self.labels, k=self.random.randint(least, 3)))

    def value(self, depth: int = 0) -> dict[str, Any]:
        value: dict[str, Any] = {"n": self.random.choice([0, 1, 2.5, -3, 10**30, True, "7"])}
        value["text"] = self.random.choice(TEXTS)
        value["list"] = [self.random.choice([1, "a", None, {"x": 1}]) for _ in range(self.random.randint(0, 2))]
        if self.random.random() < 0.5:
            value[self.random.choice(TEXTS)] = self.random.choice([None, 1.5, -0.0, False, []])
        if depth == 0:
            value["in"] = self.value(1)
        return value

    def filter(self) -> dict[str, Any] | None:
        number = self.random.choice([0, 1, 2.5, "1", True, -3])
        orders = dict.fromkeys(self.random.sample(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"], 2), number)
        choices: list[dict[str, Any] | None] = [
            None,
            {},
            {"n": orders},
            {"n": number, "text": self.random.choice(TEXTS)},
            {"in": {"n": orders}},
            {"in": {"text": {"$ne": "tea"}}, "n": {"$gte": 0}},
            {"list": self.random.choice([[], [1], ["a", None], [{"x": {"$gt": 0}}], [{"x": 1}, 1]])},
            {"absent": None},
            {"absent": {"$ne": 1}},
            {"text": {"$eq": self.random.choice(TEXTS)}},
        ]
        return self.random.choice(choices)

    def path(self) -> tuple[str, ...]:
        return tuple(self.random.choice([*self.labels, "*"]) for _ in range(self.random.randint(0, 3)))

    def op(self) -> Op:
        kind = self.random.random()
        if kind < 0.35:
            return PutOp(self.namespace(), self.random.choice(self.keys), self.value())
        if kind < 0.5:
            return PutOp(self.namespace(), self.random.choice(self.keys), None)
        if kind < 0.65:
            return GetOp(self.namespace(), self.random.choice(self.keys))
        limit, offset = self.random.choice([0, 1, 2, 5, 100, -1]), self.random.choice([0, 0, 0, 1, 3, -2])
        if kind < 0.85:
            return SearchOp(self.namespace(0), self.filter(), limit=limit, offset=offset)
        names = self.random.sample(["prefix", "suffix"], self.random.randint(0, 2))
        conditions = tuple(MatchCondition(name, self.path()) for name in names)  # type: ignore[arg-type]
        depth = self.random.choice([None, None, 1, 2, 0])
        return ListNamespacesOp(conditions or None, depth, limit, offset)

    def batches(self, count: int) -> Iterator[list[Op]]:
        for _ in range(count):
            yield [self.op() for _ in range(self.random.choice([1, 1, 2, 5, 9]))]


def plain(result: Any) -> Any:
    """A result without its times, which no two stores share."""
    if isinstance(result, Item):
        return (type(result).__name__, result.namespace, result.key, result.value, getattr(result, "score", None))
    return [plain(one) for one in result] if isinstance(result, list) else result


@pytest.mark.parametrize("seed", range(24))
def test_programs_answer_as_in_memory(tmp_path: Path, seed: int) -> None:
    model = Model()
    with GrainStore(tmp_path / "store") as store:
        for number, ops in enumerate(Program(seed).batches(25)):
            expected = [plain(result) for result in model.batch(ops)]
            assert [plain(result) for result in store.batch(ops)] == expected, (number, ops)
        everything = SearchOp((), limit=1000)
        assert plain(store.batch([everything])[0]) == plain(model.batch([everything])[0])


@pytest.mark.parametrize("seed", range(100, 104))
def test_programs_answer_as_in_memory_with_asyncio(tmp_path: Path, seed: int) -> None:
    async def main() -> None:
        model = Model()
        async with GrainStore(tmp_path / "store") as store:
            for number, ops in enumerate(Program(seed).batches(20)):
                expected = [plain(result) for result in model.batch(ops)]
                assert [plain(result) for result in await store.abatch(ops)] == expected, (number, ops)

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(200, 204))
def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path, seed: int) -> None:
    model = Model()
    for ops in Program(seed).batches(8):
        with GrainStore(tmp_path / "store") as store:
            assert [plain(result) for result in store.batch(ops)] == [plain(result) for result in model.batch(ops)]
