"""What tests share: a store of their own, and erasures that end midway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grainstore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[grainstore.Store]:
    with grainstore.open(tmp_path / "memory.grains") as store:
        yield store


def cut_short(monkeypatch: pytest.MonkeyPatch, store: grainstore.Store, *, after: int) -> None:
    """Lets so many grains be erased, and ends the next erasure as a crash does."""
    erase, done = type(store).erase, [0]

    def ending(self: Any, *arguments: Any, **how: Any) -> Any:
        if not how.get("dry_run"):
            done[0] += 1
            if done[0] > after:
                raise KeyboardInterrupt
        return erase(self, *arguments, **how)

    monkeypatch.setattr(grainstore.Store, "erase", ending)
