"""What tests share: a store of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import grainstore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[grainstore.Store]:
    with grainstore.open(tmp_path / "memory.grains") as store:
        yield store
