"""Names of LangGraph as names of Grainstore, and back: namespaces as paths, and keys as subjects.

A namespace ``("users", "alice")`` is the path ``langgraph:store:users:alice``. What has a meaning in a path, and what
Grainstore would change or refuse (it keeps text in the normal form C), is percent-encoded, so that different names
stay different and no label leaves its namespace. What is encoded is asked of the tables of Unicode 3.2, which every
version of Python has: so a name is the same under all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from langgraph.store.base import InvalidNamespaceError

from .._adapters import decoded, encoded

#: The namespace of Grainstore under which all items are.
ROOT = "langgraph:store"


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
