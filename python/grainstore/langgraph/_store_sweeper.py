"""A thread that sweeps a store now and then."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future

_log = logging.getLogger("grainstore")


_sweepers: weakref.WeakSet[Sweeper] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    # Before the stores are closed: what is being swept then is left to the next process.
    for sweeper in list(_sweepers):
        sweeper.stop(0)


class Sweeper:
    """Calls ``sweep`` at intervals, on a thread of its own, until it is stopped."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        _sweepers.add(self)

    def start(self, seconds: float) -> Future[None]:
        """Starts the thread, unless it runs. The future ends with it; cancelling the future stops it."""
        future: Future[None] = Future()
        with self._lock:
            former = self._thread
            if former is None or not former.is_alive() or self._stop.is_set():
                self._stop = threading.Event()
                arguments = (seconds, self._stop, former)
                self._thread = threading.Thread(
                    target=self._run, args=arguments, name="grainstore-langgraph-sweep", daemon=True
                )
                self._thread.start()
            thread, stop = self._thread, self._stop
        future.add_done_callback(lambda of: stop.set() if of.cancelled() else None)
        threading.Thread(target=_follow, args=(thread, future), daemon=True).start()
        return future

    def stop(self, timeout: float | None) -> bool:
        """Stops the thread and waits for its end. True if it has ended."""
        with self._lock:
            thread = self._thread
            self._stop.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, seconds: float, stop: threading.Event, former: threading.Thread | None) -> None:
        if former is not None:
            # It was stopped, and may be in the middle of a sweep.
            former.join()
        while not stop.wait(seconds):
            try:
                swept = self._sweep()
            except Exception:
                if stop.is_set():
                    return
                # The next sweep may succeed: another process may have been in the way.
                _log.exception("a sweep of expired items failed")
            else:
                _log.debug("a sweep erased %d items", swept)


def _follow(thread: threading.Thread, future: Future[None]) -> None:
    thread.join()
    if future.set_running_or_notify_cancel():
        future.set_result(None)
