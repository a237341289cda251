"""Grainstore for LangGraph: :class:`GrainSaver`, a checkpointer (docs/langgraph-saver.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._saver import GrainSaver

__all__ = ["GrainSaver"]


def __getattr__(name: str) -> Any:
    if name == "GrainSaver":
        from ._saver import GrainSaver

        return GrainSaver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
