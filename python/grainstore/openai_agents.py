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
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ._adapters import AnyStore, Holder, keep, text_of
from ._answers import Found
from ._errors import ErasedError, NotFoundError

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
except ImportError as error:
    raise ImportError("grainstore.openai_agents needs the SDK: pip install grainstore[openai-agents]") from error

__all__ = ["GrainSession"]

T = TypeVar("T")

#: What tells items from other events of their namespace.
_TAG = "openai-agents:item"

#: Characters of an item that stand in its event to be read and found; all of it is kept beside them.
_MAX_WORDS = 64 * 1024

_POPPED = "taken out of the conversation"
_CLEARED = "the conversation was cleared"


class GrainSession(Holder):
    """A conversation on a store, or the path of one: ``Session`` of the SDK.

    Items keep the order in which they were added, also by several processes; what one call adds stays together, all of
    it or nothing is stored. An item that is popped, and all items of a session that is cleared, are erased for good,
    which needs a session of the store that may erase (else :class:`grainstore.AccessError`). ``user_id`` says whose
    conversation it is, for ``erase_user``; ``fields`` are what else each grain holds, such as ``processing_basis``.
    What has begun is done, also if its task is cancelled.
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
        session_settings: SessionSettings | None = None,
    ) -> None:
        if not session_id or not namespace:
            raise ValueError("a session needs an id and a namespace")
        self.session_id = session_id
        self.session_settings = session_settings
        self._hold(store_or_path)
        # An encrypted store finds grains of a person by the person alone.
        place = {"namespace": namespace, "session_id": session_id, **({} if user_id is None else {"user_id": user_id})}
        self._where: dict[str, Any] = {**place, "tags_all": [_TAG]}
        self._owner = {**(fields or {}), **place, "structural_tags": [_TAG]}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest ``limit`` items, oldest first; all of them without a limit, or with a negative one."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await _done(lambda: self._items(None if limit is None or limit < 0 else limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items behind all others. Raises ``TypeError`` for one that JSON has no form of."""
        added = [(_words(item), json.dumps(item), _role(item)) for item in items]
        if added:
            await _done(lambda: self._add(added))

    async def pop_item(self) -> TResponseInputItem | None:
        """Erases the last item and returns it; None if there is none. Of two that pop, each gets another one."""
        return await _done(self._pop)

    async def clear_session(self) -> None:
        """Erases all items for good."""
        await _done(self._clear)

    # Within

    def _all(self) -> dict[str, Any]:
        return {**self._where, "type": "event"}

    def _newest_first(self) -> Iterator[Found]:
        """The items in order, the last one first. Those that were added at once have one time."""
        at_once: list[Found] = []
        for found in self._store.query(self._all(), sort="newest"):
            if at_once and found["created_at"] != at_once[0]["created_at"]:
                yield from sorted(at_once, key=_place, reverse=True)
                at_once = []
            at_once.append(found)
        yield from sorted(at_once, key=_place, reverse=True)

    def _last(self) -> Found | None:
        """The last item."""
        newest = self._store.page(self._all(), sort="newest", limit=1).results
        if not newest:
            return None
        at = newest[0]["created_at"]
        return max(self._store.query({**self._all(), "time_from": at, "time_to": at}), key=_place, default=newest[0])

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        items: list[TResponseInputItem] = []
        if limit == 0:
            return items
        for found in self._newest_first():
            try:
                items.append(self._item(found))
            except (ErasedError, NotFoundError):
                continue
            if len(items) == limit:
                break
        return items[::-1]

    def _item(self, found: Found) -> TResponseInputItem:
        item: TResponseInputItem = json.loads(text_of(self._store, found["context"]))
        return item

    def _add(self, added: list[tuple[str, str, str | None]]) -> None:
        last = self._last()
        now = time.time_ns() // 1_000_000
        at = now if last is None else max(now, last["created_at"] + 1)
        together = uuid.uuid4().hex
        grains: list[dict[str, Any]] = []
        for number, (words, item, role) in enumerate(added):
            kept = keep(self._store, item, {**self._owner, "run_id": uuid.uuid4().hex}, readable=False)
            grain = {**self._owner, "type": "event", "content": words, "created_at": at, "run_id": together}
            grain["context"] = {**kept, "number": number}
            grains.append(grain if role is None else {**grain, "role": role})
        self._store.put_many(grains)

    def _pop(self) -> TResponseInputItem | None:
        while True:
            last = self._last()
            if last is None:
                return None
            try:
                item = self._item(last)
                self._store.erase(last.address, _POPPED)
            except (ErasedError, NotFoundError):
                continue
            self._erase(last["context"].get("parts", []), _POPPED)
            return item

    def _clear(self) -> None:
        found = self._store.query(self._where, include_superseded=True)
        self._erase([one.address for one in found], _CLEARED)

    def _erase(self, addresses: list[str], reason: str) -> None:
        for address in addresses:
            try:
                self._store.erase(address, reason)
            except (ErasedError, NotFoundError):
                continue


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


def _role(item: Any) -> str | None:
    role = item.get("role")
    return role if isinstance(role, str) and role else None


def _words(item: Any) -> str:
    """What of an item is there to be read: what was said, or what was called and answered."""
    blocks: list[Any] = []
    for name in ("content", "name", "arguments", "output", "summary"):
        part = item.get(name)
        blocks.extend(part if isinstance(part, list) else [part])
    said = [block.get("text", block.get("refusal")) if isinstance(block, dict) else block for block in blocks]
    words = "\n".join(text for text in said if isinstance(text, str) and text.strip())
    words = words[:_MAX_WORDS].replace("\ufeff", "").encode("utf-8", "replace").decode("utf-8")
    return words if words.strip() else str(item.get("type") or "item")
