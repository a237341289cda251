"""Searches over the items of a store."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from langgraph.store.base import Item, ListNamespacesOp, SearchItem, SearchOp

from ._store_filter import in_namespace, matches
from ._store_grains import Version, time_of
from ._store_items import Items
from ._store_names import Place, namespace_of

# Words of a question that are searched for: a search counts no more than the first 64 that differ.
_WORDS = 512
_NO_WORD = re.compile('["*~\ud800-\udfff]')

Read = tuple[Version, dict[str, Any]]
Ranked = tuple["float | None", Version, dict[str, Any]]
T = TypeVar("T")


def item(version: Version, value: dict[str, Any]) -> Item:
    """An item as LangGraph has it."""
    return Item(
        value=value,
        key=version.place.key,
        namespace=version.place.namespace,
        created_at=time_of(version.created),
        updated_at=time_of(version.updated),
    )


def search(items: Items, op: SearchOp, vector: Mapping[str, Any] | None, has_index: bool) -> list[Ranked]:
    """What a search finds, with scores.

    ``vector`` is the question as the index has it. What has a score comes first, the best at the top; where that is
    not enough, items without one follow, in the order of a search without a question.
    """
    namespace = tuple(op.namespace_prefix)
    filter = op.filter or {}
    if not op.query:
        found = _reads(items, items.scan(namespace), filter)
        return _cut(((None, *read) for read in found), op.offset, op.limit)
    if has_index:
        scored = _by_vector(items, namespace, filter, vector)
    else:
        scored = _by_words(items, namespace, filter, op.query)
    return _cut(scored, op.offset, op.limit)


def list_namespaces(items: Items, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """The namespaces that have items, sorted, and cut to a depth."""
    conditions = op.match_conditions or ()
    paths: dict[tuple[str, ...], list[str]] = {}
    for path in items.spaces(_fixed_prefix(op)):
        namespace = namespace_of(path)
        if all(in_namespace(namespace, condition) for condition in conditions):
            name = namespace if op.max_depth is None else namespace[: op.max_depth]
            paths.setdefault(name, []).append(path)
    there = (name for name in sorted(paths) if any(map(items.has_items, paths[name])))
    return _cut(there, op.offset, op.limit)


def _fixed_prefix(op: ListNamespacesOp) -> tuple[str, ...]:
    """The labels that all namespaces of a list begin with."""
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix":
            return tuple(itertools.takewhile(lambda label: label != "*", condition.path))
    return ()


def _reads(items: Items, versions: Iterable[Version], filter: Mapping[str, Any]) -> Iterator[Read]:
    """The versions that match a filter, with their values."""
    for version in versions:
        read = items.read(version)
        if read is not None and matches(read[1], filter):
            yield read


def _by_words(items: Items, namespace: tuple[str, ...], filter: Mapping[str, Any], query: str) -> Iterator[Ranked]:
    """Items by the words they have, and then all others."""
    seen: set[Place] = set()
    words = plain_words(query)
    if words:
        for score, version in items.with_words(namespace, words):
            if version.place not in seen:
                seen.add(version.place)
                for read in _reads(items, [version], filter):
                    yield score, *read
    others = (version for version in items.scan(namespace) if version.place not in seen)
    for read in _reads(items, others, filter):
        yield None, *read


def _by_vector(
    items: Items,
    namespace: tuple[str, ...],
    filter: Mapping[str, Any],
    vector: Mapping[str, Any] | None,
) -> Iterator[Ranked]:
    """Items by their nearest vector, and then those without any.

    A search of vectors answers the nearest of all, and no more than a thousand of them. Only where these are not
    enough the others are looked at one by one.
    """
    seen: set[Place] = set()
    if vector is not None:
        for score, version in items.near(namespace, vector):
            if version.place not in seen:
                seen.add(version.place)
                for read in _reads(items, [version], filter):
                    yield score, *read
    scored: list[tuple[float, Read]] = []
    unscored: list[Read] = []
    others = (version for version in items.scan(namespace) if version.place not in seen)
    for read in _reads(items, others, filter):
        near = items.nearness(read[0], vector) if vector is not None and read[0].vectors else None
        if near is None:
            unscored.append(read)
        else:
            scored.append((near, read))
    scored.sort(key=lambda one: one[0], reverse=True)
    for near, read in scored:
        yield near, *read
    for read in unscored:
        yield None, *read


def plain_words(query: str) -> str:
    """The words of a question in natural language: signs that mean something in a search are none here.

    Half of a surrogate pair is no sign.
    """
    words = _NO_WORD.sub(" ", query).split()
    plain = (word.lstrip("+-") for word in words[:_WORDS])
    return " ".join(word for word in plain if word)


def search_item(ranked: Ranked) -> SearchItem:
    """What was found, as LangGraph has it."""
    score, version, value = ranked
    return SearchItem(
        namespace=version.place.namespace,
        key=version.place.key,
        value=value,
        created_at=time_of(version.created),
        updated_at=time_of(version.updated),
        score=score,
    )


def _cut(found: Iterator[T], offset: int, limit: int) -> list[T]:
    """A part of what is found, as a slice of a list is: what comes after it is not looked for."""
    if offset < 0 or limit < 0:
        return list(found)[offset : offset + limit]
    return list(itertools.islice(found, offset, offset + limit))


__all__ = ["Ranked", "item", "list_namespaces", "search", "search_item"]
