"""What the tests of LangGraph share. Without LangGraph there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langgraph.store.base", exc_type=ImportError)

from grainstore.langgraph import GrainStore


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[GrainStore]:
    """A store that is empty."""
    with GrainStore(tmp_path / "memory.grains") as memory:
        yield memory
