"""A store: :class:`Store`, which answers, and :class:`AsyncStore`, its twin for asyncio."""

from __future__ import annotations

import atexit
import base64
import concurrent.futures
import functools
import logging
import os
import threading
import weakref
from collections.abc import Mapping

from . import _native
from ._answers import Found
from ._calls import Calls, query_of
from ._embedder import Bounded, Embedder
from ._errors import AccessError, StoreIOError

# asyncio is imported where it is used: it takes as long as all the rest.
_log = logging.getLogger("grainstore")

#: Grains that a query reads at a time.
_PAGE = 200


class _Shared:
    """What all sessions of an open store share: its threads, and whether it is closed."""

    def __init__(self, path, client, threads, embedders):
        self.path = path
        self.client = client
        self.threads = threads
        self.process = os.getpid()
        self.closed = False
        # They are called as long as the store is open.
        self.embedders = embedders
        self._lock = threading.Lock()
        self._pool = None

    def pool(self):
        with self._lock:
            if self.closed:
                raise _gone()
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(
                    max_workers=self.threads, thread_name_prefix="grainstore"
                )
            return self._pool

    def check(self):
        """Refuses what a fork, or a closed store, cannot do."""
        if os.getpid() != self.process:
            message = f"this process is a fork of process {self.process}, which opened the store"
            raise StoreIOError(message, code="ERR_IO", hint="open the store after the fork")
        if self.closed:
            raise _gone()

    def close(self):
        """Closes the store, once what was asked of it is answered; does nothing the second time, and in a fork."""
        if os.getpid() != self.process:
            return
        with self._lock:
            if self.closed:
                return
            self.closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)
        for embedder in self.embedders:
            embedder.stop()
        self.client.close()
        _log.debug("closed %s", self.path)


def _gone():
    return StoreIOError("the store is closed", code="ERR_IO", hint="open it again")


#: The stores that are open, to be closed before the interpreter ends.
_open_stores: weakref.WeakSet[_Shared] = weakref.WeakSet()


@atexit.register
def _close_all():
    for shared in list(_open_stores):
        try:
            shared.close()
        except Exception:
            _log.exception("%s could not be closed", shared.path)


class _Face(Calls):
    """What both faces have."""

    __slots__ = ("__weakref__", "_client", "_scope", "_shared")

    def __init__(self, client, shared, scope):
        self._client = client
        self._shared = shared
        # Namespace, person and actor: what a session of this one may not go beyond.
        self._scope = scope

    def session(self, *, namespace=None, user_id=None, actor=None, purposes=()):
        """The same store for somebody else: a namespace and a person alone, with writes recorded under ``actor``.

        What is not given is as in this session. Raises :class:`AccessError` for what is wider than it.
        """
        self._shared.check()
        scope = _narrowed(self._scope, (namespace, user_id, actor))
        client = self._client.with_session(*scope, list(purposes))
        return type(self)(client, self._shared, scope)

    @property
    def path(self):
        """The directory of the store."""
        return self._shared.path

    @property
    def user_id(self):
        """The person of the session; None where it is one of all persons."""
        return self._scope[1]

    @property
    def closed(self):
        """True once it was closed."""
        return self._shared.closed

    @property
    def owner_pid(self):
        """The process that has the store open and answers for this one; None if it is this one."""
        return self._client.owner

    @property
    def created(self):
        """True if it was made when it was opened."""
        return self._client.created

    def __repr__(self):
        state = " closed" if self._shared.closed else ""
        return f"<{type(self).__name__}{state} {str(self._shared.path)!r}>"


class Store(_Face):
    """A store that is open: :func:`open` opens it. Safe to use from several threads.

    Several processes may have it open: the first owns it, the others relay to it (docs/sharing.md). A call waits for
    its answer with the GIL released; a write is on disk then. Ctrl-C cancels what takes long. :attr:`aio` is the same
    store for asyncio.
    """

    __slots__ = ()

    def _do(self, method, params, finish=None, *, long=False, progress=None):
        client, shared = self._client, self._shared
        shared.check()
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s on %s", method, shared.path)
        if (long or client.owner is not None) and _is_main_thread():
            answer = _interruptible(shared, client, method, params, progress)
        else:
            answer = client.call(method, params, None, _listener(progress))
        return answer if finish is None else finish(answer)

    def query(
        self,
        where=None,
        *,
        text=None,
        vector=None,
        expand=None,
        sort=None,
        limit=None,
        include_superseded=False,
    ):
        """What a query finds, page by page (docs/rpc.md, query): an iterator of :class:`Found`."""
        params = query_of(where, text, vector, expand, sort, include_superseded)
        return self._pages(params, limit)

    def _pages(self, params, limit):
        pages = _Pages(params, limit)
        while pages.has_more:
            yield from pages.taken(self._do("query", pages.call(), long=True))

    def stream(self, query, params=None, *, on_event, format=None):
        """Runs an ASSEMBLE, and calls ``on_event`` with each event while it is assembled; what that raises ends it."""
        return self._do("cal_stream", _streamed(query, params, format), long=True, progress=on_event)

    @property
    def aio(self):
        """The same store for asyncio."""
        return AsyncStore(self._client, self._shared, self._scope)

    def close(self):
        """Closes the store for all its sessions. Doing it again is nothing."""
        self._shared.close()

    def __enter__(self):
        self._shared.check()
        return self

    def __exit__(self, kind, error, trace):
        self.close()


class AsyncStore(_Face):
    """A store for asyncio: :func:`aopen` opens it. What :class:`Store` answers is awaited here.

    Calls run on threads of the store, as many as ``threads`` of :func:`aopen`, and never on the loop. A task that is
    cancelled cancels its call; a write that had begun may be done all the same. :attr:`sync` is the same store without
    asyncio.
    """

    __slots__ = ()

    async def _do(self, method, params, finish=None, *, long=False, progress=None):
        import asyncio

        client, shared = self._client, self._shared
        shared.check()
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s on %s", method, shared.path)
        cancel = _native.Cancel()
        loop = asyncio.get_running_loop()
        listener = _listener(None if progress is None else functools.partial(loop.call_soon_threadsafe, progress))
        call = functools.partial(client.call, method, params, cancel, listener)
        try:
            answer = await loop.run_in_executor(shared.pool(), call)
        except asyncio.CancelledError:
            cancel.cancel()
            raise
        return answer if finish is None else finish(answer)

    def query(
        self,
        where=None,
        *,
        text=None,
        vector=None,
        expand=None,
        sort=None,
        limit=None,
        include_superseded=False,
    ):
        """What a query finds, page by page (docs/rpc.md, query): an iterator of :class:`Found`."""
        params = query_of(where, text, vector, expand, sort, include_superseded)
        return self._pages(params, limit)

    async def _pages(self, params, limit):
        pages = _Pages(params, limit)
        while pages.has_more:
            for found in pages.taken(await self._do("query", pages.call(), long=True)):
                yield found

    def stream(self, query, params=None, *, on_event, format=None):
        """Runs an ASSEMBLE, and calls ``on_event`` with each event while it is assembled; what that raises ends it."""
        return self._do("cal_stream", _streamed(query, params, format), long=True, progress=on_event)

    @property
    def sync(self):
        """The same store without asyncio."""
        return Store(self._client, self._shared, self._scope)

    async def close(self):
        """Closes the store for all its sessions. Doing it again is nothing."""
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self._shared.close)

    async def __aenter__(self):
        self._shared.check()
        return self

    async def __aexit__(self, kind, error, trace):
        await self.close()


class _Pages:
    """The pages of a query, one after the other."""

    def __init__(self, params, limit):
        self._params = params
        self._left = limit
        self._cursor = None
        self.has_more = limit is None or limit > 0

    def call(self):
        size = _PAGE if self._left is None else min(self._left, _PAGE)
        cursor = {} if self._cursor is None else {"cursor": self._cursor}
        return {**self._params, "limit": size, **cursor}

    def taken(self, page):
        results = page["results"]
        self._cursor = page["next_cursor"]
        if self._left is not None:
            self._left -= len(results)
        self.has_more = self._cursor is not None and (self._left is None or self._left > 0)
        return map(Found, results)


def _streamed(query, params, format):
    call = {"query": query, **({"as": format} if format else {})}
    return call if params is None else {**call, "params": params}


def _is_main_thread():
    return threading.current_thread() is threading.main_thread()


def _listener(progress):
    """What the native half calls with the notifications of docs/rpc.md: figures of progress, and events."""
    if progress is None:
        return None

    def tell(notification):
        params = notification["params"]
        if notification["method"] == "progress":
            progress(params["done"], params["of"])
        else:
            progress(params["event"])

    return tell


def _interruptible(shared, client, method, params, progress):
    """Calls a method on another thread, so that this one hears of Ctrl-C, which cancels it."""
    cancel = _native.Cancel()
    future = shared.pool().submit(client.call, method, params, cancel, _listener(progress))
    try:
        return future.result()
    except KeyboardInterrupt:
        cancel.cancel()
        future.cancel()
        concurrent.futures.wait([future])
        raise


def open(
    path,
    *,
    create=True,
    read_only=False,
    exclusive=False,
    namespace=None,
    user_id=None,
    actor=None,
    purposes=(),
    key=None,
    passphrase=None,
    preset=None,
    compress=None,
    operator=None,
    reviewers=None,
    languages=None,
    embedder=None,
    former_embedder=None,
    memory_bytes=None,
    audit_reads=None,
    count_access=None,
    did_documents=None,
    did_resolver=None,
    wait=2.0,
    threads=8,
):
    """Opens the store in a directory, and makes it where there is none (``create``).

    ``namespace``, ``user_id``, ``actor`` and ``purposes`` limit who asks; without them it is the operator. ``key`` (32
    bytes) or ``passphrase`` open an encrypted store. ``exclusive`` keeps other processes out; ``wait`` is how many
    seconds to wait for one that does. ``embedder`` is an :class:`Embedder`, or a dict as docs/rpc.md has it;
    ``languages`` maps namespaces (None for all) to codes. The other arguments are those of the method ``open`` there.

    Raises :class:`NotFoundError`, :class:`BusyError`, :class:`KeyRequiredError`, :class:`ConflictError` for settings
    that differ from those of the process that has it open.
    """
    params, embedders, threads = _settings(**locals())
    return _face(Store, params, embedders, threads)


def aopen(
    path,
    *,
    create=True,
    read_only=False,
    exclusive=False,
    namespace=None,
    user_id=None,
    actor=None,
    purposes=(),
    key=None,
    passphrase=None,
    preset=None,
    compress=None,
    operator=None,
    reviewers=None,
    languages=None,
    embedder=None,
    former_embedder=None,
    memory_bytes=None,
    audit_reads=None,
    count_access=None,
    did_documents=None,
    did_resolver=None,
    wait=2.0,
    threads=8,
):
    """As :func:`open`, for asyncio: ``async with aopen(path) as store``, or ``store = await aopen(path)``.

    ``threads`` is how many calls run at once.
    """
    return _Opening(functools.partial(_face, AsyncStore, *_settings(**locals())))


class _Opening:
    """A store that is being opened: it is awaited, or entered."""

    def __init__(self, opened):
        self._opened = opened
        self._store = None

    def __await__(self):
        return self._open().__await__()

    async def _open(self):
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, self._opened)

    async def __aenter__(self):
        self._store = await self._open()
        return self._store

    async def __aexit__(self, kind, error, trace):
        if self._store is not None:
            await self._store.close()


def _settings(*, path, key, wait, threads, purposes, namespace, user_id, actor, **settings):
    """The parameters of the method open (docs/rpc.md), the embedders, and how many threads there are."""
    embedders = []
    for name in ("embedder", "former_embedder"):
        embedder = settings[name]
        if isinstance(embedder, Embedder):
            settings[name] = None
            embedders.append(Bounded(embedder))
        elif embedder is None or isinstance(embedder, Mapping):
            embedders.append(None)
        else:
            raise TypeError(f"{name} is a grainstore.Embedder, or a dict as docs/rpc.md has it")
    if languages := settings["languages"]:
        settings["languages"] = [
            {"language": language, **({} if of is None else {"namespace": of})} for of, language in languages.items()
        ]
    session = {"namespace": namespace, "user_id": user_id, "actor": actor}
    session = {name: value for name, value in session.items() if value is not None}
    params = {name: value for name, value in settings.items() if value is not None}
    params.update(path=os.fspath(path), wait_ms=int(wait * 1000))
    params["session"] = {**session, "purposes": list(purposes)}
    if key is not None:
        params["key"] = base64.b64encode(key).decode("ascii")
    if threads < 1:
        raise ValueError("a store needs a thread to answer on")
    return params, embedders, threads


def _face(kind, params, embedders, threads):
    native = [None if embedder is None else embedder.native() for embedder in embedders]
    client = _native.Client.open(params, *native)
    shared = _Shared(params["path"], client, threads, [one for one in embedders if one is not None])
    _open_stores.add(shared)
    if client.unshared is not None:
        _log.warning("no other process can use %s meanwhile: %s", shared.path, client.unshared)
    session = params["session"]
    return kind(client, shared, tuple(session.get(name) for name in ("namespace", "user_id", "actor")))


def _narrowed(scope, given):
    """The namespace, the person and the actor of a session within another."""
    within = [of if own is None else own for of, own in zip(scope, given, strict=True)]
    for name, of, own in zip(("namespace", "user_id", "actor"), scope, within, strict=True):
        is_below = name == "namespace" and of is not None and own.startswith(f"{of}:")
        if of is not None and own != of and not is_below:
            message = f"the session is one of {name} {of!r}, and {own!r} is outside of that"
            raise AccessError(message, code="ERR_ACCESS", hint="ask the session that this one was made from")
    return tuple(within)
