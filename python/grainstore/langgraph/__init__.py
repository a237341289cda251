"""Grainstore in LangGraph: :class:`GrainStore` is its long-term memory, :class:`GrainSaver` its checkpoints.

They need the packages of LangGraph: ``pip install "grainstore[langgraph]"``. docs/langgraph.md tells how items are
kept, docs/langgraph-saver.md how checkpoints are.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._saver import GrainSaver
    from ._store import GrainStore

#: What is exported, by the module that has it: each is imported when it is first asked for.
_MODULES = {"GrainSaver": "._saver", "GrainStore": "._store"}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module, __name__), name)


__all__ = ["GrainSaver", "GrainStore"]
