"""Names of LangGraph as names of Grainstore, and back: namespaces as paths, and keys as subjects.

A namespace ``("users", "alice")`` is the path ``langgraph:store:users:alice``. What has a meaning in a path, and what
Grainstore would change or refuse (it keeps text in the normal form C), is percent-encoded, so that different names
stay different and no label leaves its namespace. What is encoded is asked of the tables of Unicode 3.2, which every
version of Python has: so a name is the same under all of them.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from langgraph.store.base import InvalidNamespaceError

#: The namespace of Grainstore under which all items are.
ROOT = "langgraph:store"

# The tables that names are encoded by. The others of an interpreter are those of its own version.
_TABLES = unicodedata.ucd_3_2_0
# A path is divided by colons; a percent sign begins what is encoded.
_MARKS = frozenset("%:")
# An empty key: no text is encoded so.
_EMPTY = "%"


class Place(NamedTuple):
    """Where an item is."""

    namespace: tuple[str, ...]
    key: str

    @property
    def path(self) -> str:
        """The namespace of its grains."""
        return path_of(self.namespace)

    @property
    def subject(self) -> str:
        """The subject of its grains."""
        return encoded(self.key)

    def __str__(self) -> str:
        return f"{self.key!r} in {self.namespace!r}"


def place_of(namespace: Sequence[str], key: str) -> Place:
    """The place of an item. Raises ``TypeError`` for a key that is no text."""
    if not isinstance(key, str):
        raise TypeError(f"a key is a text, not {type(key).__name__}")
    return Place(labels_of(namespace), key)


def labels_of(namespace: Sequence[str]) -> tuple[str, ...]:
    """A namespace as a tuple. Raises ``InvalidNamespaceError`` for a text, whose signs are no labels."""
    if isinstance(namespace, str):
        raise InvalidNamespaceError(f"a namespace is a tuple of labels, such as ({namespace!r},), not a text")
    return tuple(namespace)


def path_of(namespace: Sequence[str]) -> str:
    """The namespace of Grainstore for one of LangGraph."""
    return ":".join([ROOT, *map(encoded, namespace)])


def namespace_of(path: str) -> tuple[str, ...]:
    """The namespace of LangGraph for a path."""
    return tuple(map(decoded, path.split(":")[ROOT.count(":") + 1 :]))


def tag_of(path: str) -> str:
    """A tag that the grains of exactly this namespace have: those of namespaces below it have another.

    It is one word that no question has by chance.
    """
    return "lgns" + hashlib.sha256(path.encode()).hexdigest()[:32]


def encoded(text: str) -> str:
    """A text in which nothing divides a path, and nothing is changed by Grainstore."""
    if not text:
        return _EMPTY
    keeps = is_stable(text, _TABLES)
    return "".join(sign if _stays(sign, keeps) else _percent(sign) for sign in text)


def decoded(text: str) -> str:
    """The text that was encoded."""
    return "" if text == _EMPTY else unquote_to_bytes(text).decode("utf-8", "surrogatepass")


def is_stable(text: str, tables: Any = unicodedata) -> bool:
    """True if Grainstore keeps a text as it is.

    That is so of the normal form C without a byte-order mark. Signs that these ``tables`` of Unicode do not know yet
    are not trusted: later ones may have another form for them.
    """
    if text.isascii():
        return True
    if not tables.is_normalized("NFC", text):
        return False
    return not any(sign == "\ufeff" or tables.category(sign) in ("Cn", "Cs") for sign in set(text))


def _stays(sign: str, keeps: bool) -> bool:
    if sign in _MARKS or _TABLES.category(sign) == "Cc":
        return False
    return keeps or sign.isascii()


def _percent(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))
