"""The list of threads in an encrypted store, which each have a key of their own and cannot be asked for together.

An entry names a thread. It is committed with what begins the thread, a new one each time: so who erases the entries of
a thread that has gone takes none from one that begins anew meanwhile. Other stores need no entries, and have none.
"""

from __future__ import annotations

import secrets
import weakref
from typing import Any

from .._store import Store
from ._saver_keys import owner, thread_of

# Whose the entries are, so that one key opens all of them.
_OWNER = "langgraph-threads"
_NAMESPACE = "langgraph-checkpoints:threads"

_encrypted: weakref.WeakKeyDictionary[Store, bool] = weakref.WeakKeyDictionary()


def are_listed(store: Store) -> bool:
    """True for an encrypted store."""
    if store not in _encrypted:
        _encrypted[store] = store.stats()["encrypted"]
    return _encrypted[store]


def entry_of(thread: str, common: dict[str, Any]) -> dict[str, Any]:
    """The grain of an entry. ``common`` are fields of grains of the thread."""
    reference = {"uri": "langgraph:thread", "modality": "binary", "metadata": {"number": secrets.randbits(62)}}
    place = {"user_id": _OWNER, "namespace": _NAMESPACE, "session_id": owner(thread)}
    return {**common, **place, "content_refs": [reference]}


def entries_of(store: Store, thread: str) -> list[str]:
    """The addresses of the entries of a thread."""
    return [one.address for one in store.query({**_where(), "session_id": owner(thread)})]


def threads(store: Store) -> list[str]:
    """The threads that have an entry. One that was deleted may have one for a moment."""
    return sorted({thread_of(one["session_id"]) for one in store.query(_where())})


def _where() -> dict[str, Any]:
    return {"user_id": _OWNER, "namespace": _NAMESPACE}
