"""The long-term memory of LangGraph, kept by Grainstore."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from typing_extensions import Self

from .. import AsyncStore, Store
from .. import open as open_store
from .._errors import StoreIOError
from ._store_filter import check_conditions, check_filter
from ._store_grains import Version
from ._store_index import Index, Vector, embedded
from ._store_items import Items
from ._store_names import Place, labels_of, place_of
from ._store_search import item, list_namespaces, search, search_item
from ._store_sweeper import Sweeper
from ._store_values import Text, text_of

# Threads on which asynchronous calls run, and as many on which the puts of a batch do.
_THREADS = 8
# The longest time that an item may be kept, in minutes: about 1,900 years.
_MAX_TTL = 1e9
_MICROSECONDS = 60_000_000


@dataclass
class _Write:
    """The last put, or delete, of an item in a batch."""

    op: PutOp
    text: Text | None
    ttl: int | None
    embeds: list[str]


@dataclass
class _Plan:
    """A batch that was checked: its operations in order, and its writes by item."""

    ops: list[Op]
    writes: dict[Place, _Write] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_Put = tuple[Place, _Write, list[Vector]]


class GrainStore(BaseStore):
    """A ``BaseStore`` of LangGraph, kept in a store of Grainstore.

    ``store_or_path`` is a :class:`~grainstore.Store`, an :class:`~grainstore.AsyncStore`, or the path of one, which is
    opened when it is first used and closed by :meth:`close`; ``with`` and ``async with`` do both. A store that was
    given stays open. ``index`` makes searches go by meaning; without it they go by words. ``ttl`` says how long items
    are kept.

    Calls may come from any thread and any loop; asynchronous ones run on threads of their own. A call returns once what
    it wrote is on disk. Other processes may use the same store. docs/langgraph.md tells how items are kept, and where
    this differs from ``InMemoryStore``.

    Raises ``InvalidNamespaceError``; ``TypeError`` and ``ValueError`` for values that JSON has no form of; and
    :class:`~grainstore.GrainstoreError`: a :class:`~grainstore.StoreIOError` once it is closed, and in a fork of the
    process that opened the store.
    """

    supports_ttl = True

    def __init__(
        self,
        store_or_path: Store | AsyncStore | str | os.PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        given = store_or_path
        if not isinstance(given, (Store, AsyncStore, str, os.PathLike)):
            raise TypeError(f"a GrainStore is made of a Store, an AsyncStore or a path, not {type(given).__name__}")
        self._path = given if isinstance(given, (str, os.PathLike)) else None
        self._index = Index(index) if index else None
        self.index_config = self._index.config if self._index else None
        self.embeddings = self._index.embeddings if self._index else None
        self.ttl_config = ttl
        if ttl is not None:
            _ttl(ttl.get("default_ttl"))
        self._closed = False
        self._items = None if self._path is not None else self._items_of(_sync(given))
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        """Makes what a fork has to make anew: it has no threads but one, and others may hold locks for ever."""
        # What is held for a moment only, on a loop too.
        self._lock = threading.Lock()
        # What is held while the store is opened, which may take seconds: never on a loop.
        self._opening = threading.Lock()
        self._callers: ThreadPoolExecutor | None = None
        self._writers: ThreadPoolExecutor | None = None
        self._sweeper = Sweeper(self.sweep_ttl)

    # What LangGraph calls

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations: reads see the state before the batch, and the last put of a key counts.

        Each put is done or not by itself; a batch is not all or nothing.
        """
        self._there()
        plan = self._plan(list(ops))
        questions = [self._embeddings().embed_query(text) for text in plan.questions]
        vectors = self._embeddings().embed_documents(plan.texts) if plan.texts else []
        return self._run(plan, questions, vectors)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As :meth:`batch`, for asyncio. A task that is cancelled does not wait; what it put may be done all the same.

        Embeddings are asked on the loop, by their asynchronous methods; all else happens on threads.
        """
        loop = asyncio.get_running_loop()
        plan = await loop.run_in_executor(self._pool(), self._plan, list(ops))
        asked = (self._embeddings().aembed_query(text) for text in plan.questions)
        questions = list(await asyncio.gather(*asked))
        vectors = await self._embeddings().aembed_documents(plan.texts) if plan.texts else []
        # Asked for again, since it may have been closed while texts were embedded.
        return await loop.run_in_executor(self._pool(), self._run, plan, questions, vectors)

    # Expiry

    def sweep_ttl(self) -> int:
        """Erases the items whose time is over, and what a process that was killed had not finished for an hour.

        Returns how many items it erased.
        """
        return self._opened().sweep()

    async def asweep_ttl(self) -> int:
        """As :meth:`sweep_ttl`, for asyncio."""
        return await asyncio.get_running_loop().run_in_executor(self._pool(), self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweeps on a thread, every so many minutes: as ``ttl`` says if not given, else 5.

        Returns a future: cancelling it stops the sweeper. Without ``ttl`` nothing is started, and it is done.
        """
        with self._lock:
            self._checked()
            if self.ttl_config is None:
                done: Future[None] = Future()
                done.set_result(None)
                return done
            minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or 5
            return self._sweeper.start(float(minutes) * 60)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stops the sweeper, and waits at most ``timeout`` seconds until it has ended. True if it has."""
        return self._sweeper.stop(timeout)

    # Opening and closing

    def close(self) -> None:
        """Stops the sweeper, and closes the store if it was opened by its path. Doing it again is nothing."""
        # At first, so that what is being swept is not told that the store is closed.
        self._sweeper.stop(0)
        with self._lock:
            self._closed = True
        self._sweeper.stop(None)
        with self._opening, self._lock:
            items, self._items = self._items, None
            pools = [pool for pool in (self._callers, self._writers) if pool is not None]
            self._callers = self._writers = None
        for pool in pools:
            pool.shutdown(wait=True)
        if items is not None and self._path is not None:
            items.store.close()

    async def aclose(self) -> None:
        """As :meth:`close`, for asyncio."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().run_in_executor(self._pool(), self._opened)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _opened(self) -> Items:
        items = self._there()
        if items is not None:
            return items
        with self._opening:
            items = self._there()
            if items is not None:
                return items
            assert self._path is not None
            items = self._items_of(open_store(self._path))
            with self._lock:
                if not self._closed:
                    self._items = items
                    return items
            items.store.close()
            raise _gone()

    def _there(self) -> Items | None:
        """The items, if the store is open by now."""
        with self._lock:
            return self._checked()

    def _checked(self) -> Items | None:
        if self._closed:
            raise _gone()
        if self._items is not None:
            self._items.check()
        return self._items

    def _items_of(self, store: Store) -> Items:
        omit = bool(self.ttl_config and self.ttl_config.get("omit_expired"))
        return Items(store, omit_expired=omit)

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            self._checked()
            if self._callers is None:
                self._callers = ThreadPoolExecutor(_THREADS, "grainstore-langgraph")
            return self._callers

    def _writing_pool(self) -> ThreadPoolExecutor:
        """Threads for puts: others than those that wait for them."""
        with self._lock:
            self._checked()
            if self._writers is None:
                self._writers = ThreadPoolExecutor(_THREADS, "grainstore-langgraph-put")
            return self._writers

    # A batch

    def _embeddings(self) -> Any:
        assert self._index is not None
        return self._index.embeddings

    def _plan(self, ops: list[Op]) -> _Plan:
        """Checks a batch before anything of it is done."""
        plan = _Plan(ops)
        for op in ops:
            if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
                raise ValueError(f"unknown operation: {type(op).__name__}")
            validate_op_namespace(op)
            if isinstance(op, SearchOp):
                labels_of(op.namespace_prefix)
                check_filter(op.filter or {})
                if op.query and self._index:
                    plan.questions.append(op.query)
            elif isinstance(op, ListNamespacesOp):
                check_conditions(op.match_conditions or ())
            elif isinstance(op, PutOp):
                place = place_of(op.namespace, op.key)
                plan.writes[place] = self._write(place, op)
        plan.questions = list(dict.fromkeys(plan.questions))
        plan.texts = list(dict.fromkeys(text for write in plan.writes.values() for text in write.embeds))
        return plan

    def _write(self, place: Place, op: PutOp) -> _Write:
        text = None if op.value is None else text_of(op.value, str(place))
        return _Write(op, text, _ttl(op.ttl), self._index.texts(op) if self._index else [])

    def _run(
        self, plan: _Plan, questions: Sequence[Sequence[float]], vectors: Sequence[Sequence[float]]
    ) -> list[Result]:
        items = self._opened()
        asked = self._asked(plan, questions)
        of = embedded(plan.texts, vectors)
        puts = [
            (place, write, self._index.vectors(write.embeds, of) if self._index else [])
            for place, write in plan.writes.items()
            if write.text is not None
        ]
        results: list[Result] = []
        used: dict[str, Version] = {}
        for op in plan.ops:
            results.append(self._read(items, op, asked, used))
        items.renew(used.values())
        self._write_all(items, puts, [place for place, write in plan.writes.items() if write.text is None])
        return results

    def _asked(self, plan: _Plan, questions: Sequence[Sequence[float]]) -> dict[str, Vector | None]:
        if self._index is None:
            return {}
        return {text: self._index.vector(of) for text, of in embedded(plan.questions, questions).items()}

    def _read(self, items: Items, op: Op, asked: Mapping[str, Vector | None], used: dict[str, Version]) -> Result:
        """The result of an operation; ``used`` is told which versions were used."""
        if isinstance(op, GetOp):
            read = items.get(place_of(op.namespace, op.key))
            if read is not None and op.refresh_ttl:
                used[read[0].address] = read[0]
            return None if read is None else item(*read)
        if isinstance(op, SearchOp):
            found = search(items, op, asked.get(op.query or ""), self._index is not None)
            if op.refresh_ttl:
                used.update((version.address, version) for _, version, _ in found)
            return [search_item(ranked) for ranked in found]
        if isinstance(op, ListNamespacesOp):
            return list_namespaces(items, op)
        return None

    def _write_all(self, items: Items, puts: Sequence[_Put], deletes: list[Place]) -> None:
        entered = dict.fromkeys(place.namespace for place, _, _ in puts)
        timed = [(items.tick(), *put) for put in puts]

        def put(at: int, place: Place, write: _Write, vectors: list[Vector]) -> None:
            assert write.text is not None
            items.put(place, write.text, vectors, ttl=write.ttl, at=at)

        for namespace in entered:
            items.enter(namespace)
        try:
            self._each([functools.partial(put, *one) for one in timed])
            self._each([functools.partial(items.delete, place) for place in deletes])
        except BaseException:
            deletes = [*deletes, *(place for place, _, _ in puts)]
            raise
        finally:
            for namespace in entered:
                items.enter(namespace)
            for namespace in dict.fromkeys(place.namespace for place in deletes):
                items.leave(namespace)

    def _each(self, calls: Sequence[Callable[[], object]]) -> None:
        """Calls one after the other on several threads, so that they share commits, and waits for all of them."""
        if len(calls) == 1:
            calls[0]()
        elif calls:
            futures = [self._writing_pool().submit(call) for call in calls]
            wait(futures)
            for future in futures:
                future.result()


_stores: weakref.WeakSet[GrainStore] = weakref.WeakSet()


def _begin_all() -> None:
    for store in list(_stores):
        store._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)


def _gone() -> StoreIOError:
    return StoreIOError("this GrainStore is closed", code="ERR_IO", hint="make another one")


def _sync(store: Any) -> Store:
    return store.sync if isinstance(store, AsyncStore) else store


def _ttl(minutes: float | None) -> int | None:
    """A time to live in microseconds. Raises ``ValueError`` for what is no time."""
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not math.isfinite(minutes):
        raise ValueError(f"ttl is a number of minutes, not {minutes!r}")
    if abs(minutes) > _MAX_TTL:
        raise ValueError(f"ttl is at most {_MAX_TTL:.0f} minutes, not {minutes!r}")
    return round(minutes * _MICROSECONDS)
