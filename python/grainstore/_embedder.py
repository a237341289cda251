"""A function that makes vectors of texts, with a deadline."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ._plain import whole

_log = logging.getLogger("grainstore")

#: What :class:`Embedder` takes: texts in, vectors out, one for each.
EmbedFunction = Callable[[list[str]], Sequence[Any]]


class Embedder:
    """A function that makes vectors of texts: it gets a list of texts, and returns as many vectors.

    ``model`` is its name, which tells its vectors from those of others; ``dimension`` the length of each; ``metric``
    ``"cosine"``, ``"dot"`` or ``"l2"``. It runs on a thread of its own, one call at a time; one that takes longer than
    ``timeout`` seconds is given up: the texts get their vectors later.
    """

    # A dataclass would do, but the module of these takes a third of the time that importing this package has.
    __slots__ = ("dimension", "function", "metric", "model", "timeout")

    def __init__(
        self, function: EmbedFunction, model: str, dimension: int, metric: str = "cosine", timeout: float = 30.0
    ) -> None:
        if not callable(function):
            raise TypeError("an embedder is a function from texts to vectors")
        whole("dimension", dimension, 1)
        self.function = function
        self.model = model
        self.dimension = dimension
        self.metric = metric
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"Embedder({self.function!r}, {self.model!r}, {self.dimension}, {self.metric!r}, {self.timeout})"


class _Call:
    """Texts on their way to an embedder, and what became of them."""

    __slots__ = ("done", "error", "result", "texts")

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.done = threading.Event()
        self.result: list[list[float]] = []
        self.error: BaseException | None = None

    def end(self, error: BaseException | None) -> None:
        self.error = error
        self.done.set()


class Bounded:
    """Runs an embedder on a thread that does not keep the interpreter from ending, and waits for it so long only."""

    def __init__(self, embedder: Embedder) -> None:
        # What it refers to may refer to the store: it is let go of when that closes.
        self._function: EmbedFunction | None = embedder.function
        self._named = (embedder.model, embedder.dimension, embedder.metric)
        self._timeout = embedder.timeout
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # The collection of a store that nobody closed may stop it amid a call.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._waiting: set[_Call] = set()
        self._late: _Call | None = None
        self._stopped = False

    def native(self) -> tuple[Any, str, int, str]:
        """The embedder as the native half takes it."""
        return (self, *self._named)

    def stop(self) -> None:
        """Lets nobody wait any longer: the store closes."""
        with self._lock:
            self._stopped = True
            self._function = None
            for call in self._waiting:
                call.end(_closed())
            self._calls.put(None)

    def __call__(self, texts: list[str]) -> list[list[float]]:
        call = _Call(texts)
        with self._lock:
            if self._stopped:
                raise _closed()
            if self._late is not None and not self._late.done.is_set():
                raise TimeoutError("the embedder is still at work on an earlier call")
            self._late = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="grainstore-embedder", daemon=True)
                self._thread.start()
            self._waiting.add(call)
            self._calls.put(call)
        answered = call.done.wait(self._timeout)
        with self._lock:
            self._waiting.discard(call)
            if not answered:
                self._late = call
                raise TimeoutError(f"the embedder did not answer within {self._timeout} s")
        if call.error is not None:
            raise RuntimeError(f"{type(call.error).__name__}: {call.error}")
        return call.result

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            error: BaseException | None = None
            function = self._function
            if function is None:
                call.end(_closed())
                return
            try:
                call.result = [_numbers(vector) for vector in function(call.texts)]
            except BaseException as raised:
                error = raised
                _log.warning("the embedder %s failed on %d texts: %r", self._named[0], len(call.texts), raised)
            call.end(error)


def _closed() -> TimeoutError:
    return TimeoutError("the store is closed")


def _numbers(vector: Any) -> list[float]:
    listed = getattr(vector, "tolist", None)
    return [float(number) for number in (vector if listed is None else listed())]
