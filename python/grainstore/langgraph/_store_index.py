"""The index of vectors: which texts of a value are embedded, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import (
    IndexConfig,
    PutOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

# The most numbers that a vector of Grainstore has.
_MAX_DIMS = 4096
# The largest number of 32 bits.
_MAX_NUMBER = 3.4028234663852886e38

Vector = dict[str, Any]


class Index:
    """What is embedded of a value."""

    def __init__(self, config: IndexConfig) -> None:
        self.config = cast(IndexConfig, dict(config))
        self.embeddings = ensure_embeddings(config.get("embed"))
        self._dims = _dims(config)
        self._fields = [_path(field) for field in config.get("fields") or ["$"]]
        embed = config.get("embed")
        #: The name of the vectors in the store.
        self.model = str(config.get("model") or (embed if isinstance(embed, str) else "langgraph"))

    def texts(self, op: PutOp) -> list[str]:
        """The texts of a value that are embedded, each once."""
        if op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else [_path(field) for field in op.index]
        value = dict(op.value)
        found = [text for path in paths for text in get_text_at_path(value, cast(Any, path))]
        return list(dict.fromkeys(found))

    def vectors(self, texts: Iterable[str], embedded: Mapping[str, Sequence[float]]) -> list[Vector]:
        """The vectors of a value, one for each of its texts. One of zeros has no direction, and is left out."""
        vectors = [self.vector(embedded[text]) for text in texts]
        there = [vector for vector in vectors if vector is not None]
        return [{**vector, "chunk": chunk} for chunk, vector in enumerate(there)]

    def vector(self, numbers: Sequence[float]) -> Vector | None:
        """A vector as the store takes it; None for one of zeros.

        Raises ``ValueError`` where it is not as long as the configuration says, or has what is no number of 32 bits.
        """
        values = [float(number) for number in numbers]
        if not all(abs(value) <= _MAX_NUMBER for value in values):
            raise ValueError("embed made a vector with NaN, infinity or a number that 32 bits have no room for")
        if self._dims is not None and len(values) != self._dims:
            raise ValueError(f"the index has vectors of {self._dims} numbers, and embed made one of {len(values)}")
        return {"model": self.model, "values": values} if any(values) else None


def embedded(texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> dict[str, Sequence[float]]:
    """The vectors by their texts. Raises ``ValueError`` where there are not as many."""
    if len(texts) != len(vectors):
        raise ValueError(f"embed was given {len(texts)} texts, and made {len(vectors)} vectors")
    return dict(zip(texts, vectors, strict=True))


def _dims(config: IndexConfig) -> int | None:
    dims = config.get("dims")
    if dims is None:
        return None
    if isinstance(dims, bool) or not isinstance(dims, int) or not 0 < dims <= _MAX_DIMS:
        raise ValueError(f"dims is a number from 1 to {_MAX_DIMS}, not {dims!r}")
    return dims


def _path(field: str) -> list[str] | str:
    return field if field == "$" else tokenize_path(field)
