"""What a saver remembers of checkpoints that it stored or read: how to go on from them, and that they were there."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from ._saver_keys import Place
from ._saver_records import Head

# How many checkpoints are remembered as they are: those that the next ones go on from.
_HEADS = 128
# Of how many more it is known that they were there, in 16 bytes each.
_KNOWN = 16_384


class Memory:
    """The checkpoints that were stored, read or gone on from last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: OrderedDict[bytes, Head] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def head(self, place: Place, checkpoint_id: str) -> Head | None:
        """A checkpoint, if it is remembered as it was. It may have been deleted since."""
        key = _key(place, checkpoint_id)
        with self._lock:
            if key in self._heads:
                self._heads.move_to_end(key)
            return self._heads.get(key)

    def has_known(self, place: Place, checkpoint_id: str) -> bool:
        """True if it is known that this checkpoint was there."""
        key = _key(place, checkpoint_id)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return key in self._known

    def add(self, head: Head) -> None:
        """Remembers a checkpoint, and forgets the one that was of no use for longest."""
        key = _key(head.place, head.id)
        with self._lock:
            self._heads[key], self._known[key] = head, None
            self._heads.move_to_end(key)
            self._known.move_to_end(key)
            if len(self._heads) > _HEADS:
                self._heads.popitem(last=False)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)


def _key(place: Place, checkpoint_id: str) -> bytes:
    return hashlib.blake2b(f"{place.session}/{checkpoint_id}".encode(), digest_size=16).digest()
