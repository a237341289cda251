"""A store: :class:`Store`, which answers, and :class:`AsyncStore`, its twin for asyncio."""

from __future__ import annotations

import atexit
import base64
import collections
import functools
import logging
import os
import threading
import weakref
from collections.abc import Mapping

# Now, and not when a call needs a thread: its hooks for forks must not be registered amid one.
from concurrent.futures import wait
from concurrent.futures.thread import ThreadPoolExecutor

from . import _native
from ._answers import Found
from ._calls import Calls, query_of
from ._embedder import Bounded, Embedder
from ._errors import AccessError, StoreIOError
from ._plain import path_of, seconds, text_of, texts_of, whole

# asyncio is imported where it is used: it takes as long as all the rest.
_log = logging.getLogger("grainstore")

#: Grains that a query reads at a time.
_PAGE = 200

#: Seconds that a call which Ctrl-C cancels has to end: an embedder, which nothing interrupts, is not waited for.
_LAST_WORD = 1.0


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
                self._pool = ThreadPoolExecutor(max_workers=self.threads, thread_name_prefix="grainstore")
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
        _stop(self.embedders)
        self.client.close()
        _log.debug("closed %s", self.path)


def _stop(embedders):
    for embedder in embedders:
        embedder.stop()


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


class _Scope(collections.namedtuple("_Scope", ("namespace", "user_id", "actor", "purposes"))):
    """Who asks: what a session is limited to, and what it says it reads for."""

    __slots__ = ()

    @classmethod
    def of(cls, namespace, user_id, actor, purposes):
        named = {"namespace": namespace, "user_id": user_id, "actor": actor}
        named = {name: None if of is None else text_of(name, of) for name, of in named.items()}
        return cls(**named, purposes=tuple(texts_of("purposes", purposes)))

    def narrowed(self, own):
        """The scope of a session within this one: what is not given is as here."""
        within = _Scope(*(of if mine in (None, ()) else mine for of, mine in zip(self, own, strict=True)))
        for name, of, mine in zip(self._fields, self, within, strict=True):
            is_same = set(of) == set(mine) if name == "purposes" else of == mine
            is_below = name == "namespace" and of is not None and mine.startswith(f"{of}:")
            if of not in (None, ()) and not is_same and not is_below:
                message = f"the session is one of {name} {of!r}, and {mine!r} is outside of that"
                raise AccessError(message, code="ERR_ACCESS", hint="ask the session that this one was made from")
        return within


class _Face(Calls):
    """What both faces have."""

    __slots__ = ("__weakref__", "_client", "_scope", "_shared")

    def __init__(self, client, shared, scope):
        self._client = client
        self._shared = shared
        # What a session of this one may not go beyond.
        self._scope = scope

    def session(self, *, namespace=None, user_id=None, actor=None, purposes=()):
        """The same store for somebody else: a namespace and a person alone, with writes recorded under ``actor``.

        ``purposes`` are what it says it reads for. What is not given is as in this session. Raises
        :class:`AccessError` for what is wider than it, and for other purposes: a rule may refuse any of them, so that
        fewer are wider.
        """
        self._shared.check()
        scope = self._scope.narrowed(_Scope.of(namespace, user_id, actor, purposes))
        client = self._client.with_session(scope.namespace, scope.user_id, scope.actor, list(scope.purposes))
        return type(self)(client, self._shared, scope)

    @property
    def path(self):
        """The directory of the store."""
        return self._shared.path

    @property
    def closed(self):
        """True once it was closed."""
        return self._shared.closed

    @property
    def namespace(self):
        """The namespace of the session; None if it has none."""
        return self._scope.namespace

    @property
    def user_id(self):
        """The person of the session; None if it has none."""
        return self._scope.user_id

    @property
    def owner_pid(self):
        """The process that has the store open and answers for this one; None if it is this one."""
        owner = self._client.owner
        return None if owner == os.getpid() else owner

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
        if _is_main_thread() and (long or client.owner is not None):
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
        listens = None if progress is None else _OnLoop(progress, cancel)
        listener = _listener(None if listens is None else functools.partial(loop.call_soon_threadsafe, listens))
        call = functools.partial(client.call, method, params, cancel, listener)
        try:
            answer = await loop.run_in_executor(shared.pool(), call)
        except asyncio.CancelledError:
            cancel.cancel()
            raise
        finally:
            # In place of what came of the call that it ended.
            if listens is not None and listens.raised is not None:
                raise listens.raised
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


class _OnLoop:
    """Who listens to a call, called by the loop: what that raises ends the call."""

    def __init__(self, listener, cancel):
        self._listener = listener
        self._cancel = cancel
        self.raised = None

    def __call__(self, *told):
        if self.raised is None:
            try:
                self._listener(*told)
            except Exception as error:
                self.raised = error
                self._cancel.cancel()


class _Pages:
    """The pages of a query, one after the other."""

    def __init__(self, params, limit):
        self._params = params
        self._left = None if limit is None else whole("limit", limit)
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
        wait([future], _LAST_WORD)
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
    return _face(Store, *_settings(**locals()))


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
        if not isinstance(languages, Mapping):
            raise TypeError(f"languages: codes by namespaces are needed, not {type(languages).__qualname__}")
        settings["languages"] = [
            {"language": language, **({} if of is None else {"namespace": of})} for of, language in languages.items()
        ]
    if settings["passphrase"] is not None:
        text_of("passphrase", settings["passphrase"])
    scope = _Scope.of(namespace, user_id, actor, purposes)
    params = {name: value for name, value in settings.items() if value is not None}
    params.update(path=path_of("path", path), wait_ms=seconds("wait", wait))
    params["session"] = {name: value for name, value in scope._asdict().items() if value is not None}
    if key is not None:
        if not isinstance(key, (bytes, bytearray, memoryview)):
            raise TypeError(f"key: 32 bytes are needed, not {type(key).__qualname__}")
        params["key"] = base64.b64encode(key).decode("ascii")
    return params, scope, embedders, whole("threads", threads, 1)


def _face(kind, params, scope, embedders, threads):
    native = [None if embedder is None else embedder.native() for embedder in embedders]
    client = _native.Client.open(params, *native)
    shared = _Shared(params["path"], client, threads, [one for one in embedders if one is not None])
    _open_stores.add(shared)
    # One that nobody closes lets go of them too.
    weakref.finalize(shared, _stop, shared.embedders).atexit = False
    if client.unshared is not None:
        _log.warning("no other process can use %s meanwhile: %s", shared.path, client.unshared)
    return kind(client, shared, scope)


def _name_methods():
    """What is said of a wrong call names the class that people know."""
    for kind in (Calls, _Face):
        for name, method in vars(kind).items():
            if callable(method):
                method.__qualname__ = f"Store.{name}"


_name_methods()
