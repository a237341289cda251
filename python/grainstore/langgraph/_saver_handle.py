"""The store of a saver: one that was given, or one that it opens at its path, once it is needed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .. import _store
from .._errors import StoreIOError
from .._store import AsyncStore, Store

T = TypeVar("T")


class Handle:
    """The store of a saver and of its clones."""

    def __init__(self, store_or_path: Store | AsyncStore | str | os.PathLike[str]) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._path: str | None = None
        self._store: Store | None = None
        if isinstance(store_or_path, AsyncStore):
            self._store = store_or_path.sync
        elif isinstance(store_or_path, Store):
            self._store = store_or_path
        elif isinstance(store_or_path, (str, os.PathLike)):
            self._path = os.fspath(store_or_path)
        else:
            raise TypeError(f"a saver needs a Store, an AsyncStore or a path, not {type(store_or_path).__qualname__}")

    @property
    def name(self) -> str:
        """What the saver stores in, for people."""
        return repr(self._path) if self._path is not None else repr(self._store)

    def store(self) -> Store:
        """The store, which is opened if it is not open yet."""
        with self._lock:
            if self._closed:
                raise StoreIOError("the saver is closed", code="ERR_IO", hint="make another one")
            if self._store is None:
                assert self._path is not None
                self._store = _store.open(self._path)
            return self._store

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Runs blocking work on a thread of the store. A task that is cancelled does not wait for its end."""
        loop = asyncio.get_running_loop()
        store = self._store
        if store is None or self._closed:
            store = await loop.run_in_executor(None, self.store)
        # The threads that calls of an AsyncStore run on; they are no part of the public face.
        shared: Any = getattr(store, "_shared")  # noqa: B009
        shared.check()
        pool: ThreadPoolExecutor = shared.pool()
        return await loop.run_in_executor(pool, work, *arguments)

    def close(self) -> None:
        """Closes the store that was opened at a path. One that was given stays open."""
        with self._lock:
            if self._path is None:
                return
            store, self._store, self._closed = self._store, None, True
        if store is not None:
            store.close()
