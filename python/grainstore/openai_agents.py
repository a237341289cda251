"""Sessions of the OpenAI Agents SDK on a store: ``pip install grainstore[openai-agents]``.

>>> session = GrainSession("conversation-7", "memory.grains")  # doctest: +SKIP
>>> await Runner.run(agent, "Hello", session=session)  # doctest: +SKIP

Each item of a conversation is an event of the store, found by its words beside all else that an agent remembers.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from ._adapters import (
    BATCH_BYTES,
    GONE,
    PART_BYTES,
    AnyStore,
    Erasing,
    Holder,
    encoded,
    erased_if_refused,
    finished,
    found,
    is_stable,
    keep_pieces,
    namespace_kept,
    taken_apart,
    text_of,
    whose,
)
from ._answers import Found
from ._errors import IntegrityError

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.memory.session_settings import coerce_session_settings
except ImportError as error:
    raise ImportError("grainstore.openai_agents needs the SDK: pip install grainstore[openai-agents]") from error

__all__ = ["GrainSession"]

T = TypeVar("T")

#: What tells items from other events of their namespace.
_TAG = "openai-agents:item"

#: Characters of an item that stand in its event to be read and found; all of it is kept beside them.
_MAX_WORDS = 64 * 1024
_MAX_ROLE = 256

#: Bytes that the event of an item takes beside the fields of its owner and what is in it, more or less.
_BESIDE = 256
#: Bytes of what is in it, at least: words, and data or the address of a part.
_MIN_ROOM = 384

_REASON = "taken out of the conversation"


class _Item(NamedTuple):
    """An item that is to be stored: what of it is there to be read, and all of it."""

    words: str
    text: str
    role: str | None


class GrainSession(Holder):
    """A conversation on a store, or the path of one: ``Session`` of the SDK.

    Items keep the order in which they were added, also by several processes; what one call adds stays together, all of
    it or nothing is stored. An item that is popped, and all items of a session that is cleared, are erased for good,
    which needs a session of the store that may erase (else :class:`grainstore.AccessError`). What a crash cuts short is
    finished when the session is made next. ``user_id`` says whose conversation it is, for ``erase_user``; without it,
    it is of the person of the store's session. ``fields`` are what else each grain holds, such as
    ``processing_basis``. What has begun is done, also if its task is cancelled.

    Signs of a ``session_id`` that a grain would change, and percent signs, are percent-encoded in the events.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store_or_path: AnyStore,
        *,
        namespace: str = "openai-agents",
        user_id: str | None = None,
        fields: Mapping[str, Any] | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(session_id, str):
            raise TypeError(f"the id of a session is a text, not {type(session_id).__qualname__}")
        if not session_id or not namespace:
            raise ValueError("a session needs an id and a namespace")
        self.session_id = session_id
        self.session_settings = None if session_settings is None else coerce_session_settings(session_settings)
        store = self._hold(store_or_path)
        # An encrypted store finds grains of a person by the person alone.
        place = {
            "namespace": namespace_kept(namespace),
            "session_id": encoded(session_id, marks="%"),
            **whose(store, user_id),
        }
        self._where: dict[str, Any] = {**place, "tags_all": [_TAG]}
        self._owner = {**(fields or {}), **place, "structural_tags": [_TAG]}
        self._erasing = Erasing(store, self._owner, _REASON)
        self._erasing.finish(self._where, self._is_here)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest ``limit`` items, oldest first; all of them without a limit, or with a negative one."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await _done(lambda: self._items(None if limit is None or limit < 0 else limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items behind all others, all of them or none.

        Raises ``TypeError`` for one that is no dict or that JSON has no form of, and ``ValueError`` for far too many.
        """
        added = [_checked(number, item) for number, item in enumerate(items)]
        if added:
            await _done(lambda: self._add(added))

    async def pop_item(self) -> TResponseInputItem | None:
        """Erases the last item and returns it; None if there is none. Of two that pop, each gets another one.

        Raises :class:`grainstore.IntegrityError` if a part of it was erased.
        """
        return await _done(self._pop)

    async def clear_session(self) -> None:
        """Erases all items for good; none if one of them is kept by a hold or a rule."""
        await _done(self._clear)

    # Within

    def _is_here(self, found: Found) -> bool:
        """False for what is of a namespace below."""
        return bool(found["namespace"] == self._owner["namespace"])

    def _events(self, **where: Any) -> dict[str, Any]:
        return {**self._where, "type": "event", **where}

    def _newest_first(self) -> Iterator[Found]:
        """The items in order, the last one first. Those that were added at once have one time."""
        at_once: list[Found] = []
        for event in found(self._store, self._events(), self._is_here, sort="newest"):
            if at_once and event["created_at"] != at_once[0]["created_at"]:
                yield from sorted(at_once, key=_place, reverse=True)
                at_once = []
            at_once.append(event)
        yield from sorted(at_once, key=_place, reverse=True)

    def _last(self) -> Found | None:
        """The last item."""
        newest = next(found(self._store, self._events(), self._is_here, few=True, sort="newest"), None)
        if newest is None:
            return None
        at = newest["created_at"]
        at_once = found(self._store, self._events(time_from=at, time_to=at), self._is_here)
        return max(at_once, key=_place, default=newest)

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        items: list[TResponseInputItem] = []
        if limit == 0:
            return items
        for event in self._newest_first():
            try:
                items.append(self._item(event))
            except GONE:
                continue
            if len(items) == limit:
                break
        return items[::-1]

    def _item(self, event: Found) -> TResponseInputItem:
        item: TResponseInputItem = json.loads(text_of(self._store, event["context"]))
        return item

    def _add(self, items: list[_Item]) -> None:
        room = self._room(len(items))
        apart = [taken_apart(item.text, readable=False, room=min(PART_BYTES, room // 3)) for item in items]
        owners = [{**self._owner, "run_id": uuid.uuid4().hex} for _ in items]
        # All else is small then, and stored in one commit.
        parts = keep_pieces(
            self._store, ((piece, owner) for owner, (_, pieces) in zip(owners, apart, strict=True) for piece in pieces)
        )
        at = self._next_time()
        together = uuid.uuid4().hex
        grains: list[dict[str, Any]] = []
        left = iter(parts)
        for number, (item, (kept, pieces)) in enumerate(zip(items, apart, strict=True)):
            grain = {**self._owner, "type": "event", "created_at": at, "run_id": together}
            grain["content"] = item.words.encode("utf-8")[: room // 3].decode("utf-8", "ignore")
            grain["context"] = {**kept, "number": number}
            if pieces:
                grain["context"]["parts"] = [next(left) for _ in pieces]
            grains.append(grain if item.role is None else {**grain, "role": item.role})
        with erased_if_refused(self._store, parts):
            self._store.put_many(grains)

    def _room(self, items: int) -> int:
        """Bytes that each of so many items has for what is in it, where all are to fit one commit."""
        beside = len(json.dumps(self._owner, ensure_ascii=False, default=str).encode("utf-8", "replace")) + _BESIDE
        room = BATCH_BYTES // items - beside
        if room < _MIN_ROOM:
            most = BATCH_BYTES // (beside + _MIN_ROOM)
            raise ValueError(f"{items} items are too many to be added at once: {most} at most")
        return room

    def _next_time(self) -> int:
        """A time after that of the last item."""
        last = self._last()
        now = time.time_ns() // 1_000_000
        return now if last is None else max(now, int(last["created_at"]) + 1)

    def _pop(self) -> TResponseInputItem | None:
        seen = None
        while (last := self._last()) is not None:
            try:
                item = self._item(last)
            except GONE as error:
                if last.address == seen:
                    raise IntegrityError(
                        f"a part of the last item of the session {self.session_id!r} was erased",
                        code="ERR_INTEGRITY",
                        hint=f"erase its event, {seen}",
                    ) from error
                seen = last.address
                continue
            if self._erasing.erase_with_parts(last.address, last["context"].get("parts", [])):
                return item
        return None

    def _clear(self) -> None:
        grains = finished(found(self._store, self._where, self._is_here, include_superseded=True))
        # An item whose parts are gone is none that can be read.
        grains.sort(key=lambda grain: bool(grain["type"] != "event"))
        self._erasing.erase_all([grain.address for grain in grains])


async def _done(work: Callable[[], T]) -> T:
    """Does work on a thread, and waits for its end, also where the task is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


def _place(found: Found) -> tuple[str, int]:
    return found["run_id"], found["context"]["number"]


def _checked(number: int, item: Any) -> _Item:
    """An item as it is stored. Raises ``TypeError`` with its number for what is none."""
    if not isinstance(item, dict):
        raise TypeError(f"item {number} is a {type(item).__qualname__}, not a dict")
    try:
        text = json.dumps(item)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"item {number}: {error}") from error
    role = item.get("role")
    return _Item(_words(item), text, _plain(role)[:_MAX_ROLE] if isinstance(role, str) and role else None)


def _plain(text: str) -> str:
    """A text to be read; percent-encoded where a grain does not keep it as it is."""
    return text if is_stable(text) else encoded(text)


def _words(item: dict[str, Any]) -> str:
    """What of an item is there to be read: what was said, or what was called and answered."""
    words = "\n".join(text for text in _said(item) if isinstance(text, str) and text.strip())
    words = words[:_MAX_WORDS].replace("\ufeff", "").encode("utf-8", "replace").decode("utf-8")
    if words.strip():
        return words
    kind = item.get("type")
    return _plain(kind)[:_MAX_WORDS] if isinstance(kind, str) and kind.strip() else "item"


def _said(item: dict[str, Any]) -> Iterable[Any]:
    for name in ("content", "name", "arguments", "output", "summary"):
        part = item.get(name)
        for block in part if isinstance(part, list) else [part]:
            yield block.get("text", block.get("refusal")) if isinstance(block, dict) else block
