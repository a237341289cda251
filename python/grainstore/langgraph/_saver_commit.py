"""Committing the grains of a thread: all of them or none, and none to a thread that was deleted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .._errors import ErasedError
from .._store import Store
from ._saver_keys import name_of, owner
from ._saver_records import Head
from ._saver_values import Packing

#: What makes the grains of a record, whose values it gives to the packing.
Make: TypeAlias = Callable[[Packing], Sequence[Mapping[str, Any]]]
#: Grains that were stored: each a ``grain`` with its ``address``.
Committed: TypeAlias = list[dict[str, Any]]

# How often, and after how many seconds, grains are dated anew that are as old as the erasure of their thread.
_ATTEMPTS = 200
_PAUSE = 0.005


def commit(
    store: Store, basis: str | None, thread: str, make: Make, fence: Head | None = None, run_id: str | None = None
) -> Committed:
    """Stores what ``make`` makes, with its values. Returns each grain, with its ``address``.

    ``fence`` is the checkpoint that it goes on from. It is stored along, which changes nothing as long as it is there,
    and refuses all of it (:class:`ErasedError`) once it was erased. ``run_id`` is the run whose grains they are.
    """
    for attempt in range(_ATTEMPTS):
        common = _common(thread, basis, run_id)
        packing = Packing(common, lambda grain: _address(store, grain), lambda grains: _put(store, fence, grains))
        try:
            records = [{**common, **fields} for fields in make(packing)]
            addresses = _put(store, fence, [*packing.grains, *records])
        except ErasedError as error:
            if fence is not None and error.index == 0:
                raise _deleted(fence) from error
            if attempt + 1 == _ATTEMPTS:
                raise
            # The thread was erased in the millisecond that they are dated with.
            time.sleep(_PAUSE)
            continue
        own = addresses[len(packing.grains) :]
        return [{"address": address, "grain": grain} for address, grain in zip(own, records, strict=True)]
    raise AssertionError("unreachable")


def _common(thread: str, basis: str | None, run_id: str | None) -> dict[str, Any]:
    common = {"type": "state", "context": {}, "user_id": owner(thread), "created_at": time.time_ns() // 1_000_000}
    if basis is not None:
        common["processing_basis"] = basis
    if run_id is not None:
        common["run_id"] = name_of(run_id)
    return common


def _address(store: Store, grain: dict[str, Any]) -> str:
    address: str = store.call("encode", {"grain": grain})["address"]
    return address


def _put(store: Store, fence: Head | None, grains: list[dict[str, Any]]) -> list[str]:
    """Stores grains in one commit. Returns their addresses."""
    if not grains:
        return []
    if fence is None:
        return [put.address for put in store.put_many(grains)]
    return [put.address for put in store.put_many([fence.grain, *grains])][1:]


def _deleted(fence: Head) -> ErasedError:
    return ErasedError(
        f"checkpoint {fence.id!r} of thread {fence.place.thread!r}, which this goes on from, was deleted",
        code="ERR_ERASED",
        hint="begin the run anew, without this checkpoint_id",
    )
