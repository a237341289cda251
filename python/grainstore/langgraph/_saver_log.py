"""Finding the grains of checkpoints, newest first, by the lists that the store has of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._answers import Found
from .._store import Store
from ._saver_keys import NAMED, STEPS, Place, order, owner, task_run
from ._saver_records import Head, Write, Writes, newest_heads, parsed, pending
from ._saver_threads import are_listed, threads

# Grains of the first page of a query, which is enough for a checkpoint with few writes, and of later ones.
_FIRST_PAGE = 4
_PAGE = 200


@dataclass
class Step:
    """A checkpoint with its pending writes."""

    head: Head
    calls: list[Writes] = field(default_factory=list)

    def writes(self) -> list[tuple[Writes, Write]]:
        """The writes that count, in their order."""
        return pending(self.calls)


def found(store: Store, where: Mapping[str, Any]) -> Iterator[Found]:
    """The grains of a query, the latest first."""
    limit, cursor = _FIRST_PAGE, None
    while True:
        page = store.page(where, sort="newest", limit=limit, cursor=cursor)
        yield from page.results
        limit, cursor = min(4 * limit, _PAGE), page.next_cursor
        if cursor is None:
            return


def records(store: Store, where: Mapping[str, Any]) -> Iterator[Head | Writes]:
    """The checkpoints and writes of a query, the latest first."""
    for one in found(store, {**where, "namespace": STEPS}):
        record = parsed(one)
        if record is not None:
            yield record


def steps(store: Store, where: Mapping[str, Any]) -> Iterator[Step]:
    """The checkpoints of a query by their ids, the greatest first, where all are UUIDs or none is."""
    moment: list[Head | Writes] = []
    time = None
    for record in records(store, where):
        at = order(record.id)
        if at != time:
            yield from together(moment)
            moment, time = [], at
        moment.append(record)
    yield from together(moment)


def together(moment: list[Head | Writes]) -> list[Step]:
    """Checkpoints with their writes, the greatest id first. Writes without a checkpoint are left out."""
    heads = newest_heads(record for record in moment if isinstance(record, Head))
    found = {key: Step(head) for key, head in heads.items()}
    for record in moment:
        if isinstance(record, Writes) and (record.place, record.id) in found:
            found[record.place, record.id].calls.append(record)
    return sorted(found.values(), key=_place_of, reverse=True)


def _place_of(step: Step) -> tuple[str, Place]:
    return step.head.id, step.head.place


def newest(store: Store, place: Place) -> Step | None:
    """The newest checkpoint of a place: the one with the greatest id. One query, where ids are UUIDs."""
    where = of_place(place)
    last = next(steps(store, where), None)
    if last is None or order(last.head.id) < NAMED:
        return last
    timed = next(steps(store, {**where, "time_to": NAMED - 1}), None)
    return last if timed is None else max(last, timed, key=_place_of)


def step_of(store: Store, place: Place, checkpoint_id: str) -> Step | None:
    """A checkpoint by its id."""
    for step in together(list(records(store, _moment_of(place, checkpoint_id)))):
        if step.head.id == checkpoint_id:
            return step
    return None


def last_stored(store: Store, place: Place, checkpoint_id: str) -> int:
    """The last stamp of a checkpoint that is there, which may have been stored several times; 0 for none."""
    all_records = records(store, _moment_of(place, checkpoint_id))
    return max((one.at for one in all_records if isinstance(one, Head) and one.id == checkpoint_id), default=0)


def last_written(store: Store, place: Place, checkpoint_id: str, task: str) -> int:
    """The last stamp of the writes of a task that are there, 0 for none."""
    where = {**_moment_of(place, checkpoint_id), "run_id": task_run(place, checkpoint_id, task)}
    return max((one.at for one in records(store, where)), default=0)


def _moment_of(place: Place, checkpoint_id: str) -> dict[str, Any]:
    """The condition for the grains of a checkpoint, and of those whose ids begin alike."""
    at = order(checkpoint_id)
    return {**of_place(place), "time_from": at, "time_to": at}


def descending(store: Store, where: Mapping[str, Any], before: str | None) -> Iterator[Step]:
    """All checkpoints of a query by their ids, the greatest first: those with ids below ``before`` alone."""
    timed, named = {**where, "time_to": NAMED - 1}, {**where, "time_from": NAMED}
    if before is not None:
        at = order(before)
        (timed if at < NAMED else named)["time_to"] = at
    both = heapq.merge(steps(store, timed), steps(store, named), key=_place_of, reverse=True)
    return (step for step in both if before is None or step.head.id < before)


def of_all(store: Store, before: str | None) -> Iterator[Step]:
    """The checkpoints of all threads, as those of a query."""
    if not are_listed(store):
        return descending(store, {}, before)
    every = [descending(store, of_thread(thread), before) for thread in threads(store)]
    return heapq.merge(*every, key=_place_of, reverse=True)


def of_place(place: Place) -> dict[str, Any]:
    """The condition for the grains of a thread in one of its namespaces."""
    return {**of_thread(place.thread), "session_id": place.session}


def of_thread(thread: str) -> dict[str, Any]:
    """The condition for the grains of a thread, in all of its namespaces."""
    return {"user_id": owner(thread)}
