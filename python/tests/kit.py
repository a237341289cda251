"""Erasures that end midway, as a crash ends them."""

from __future__ import annotations

from typing import Any

import pytest

import grainstore


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
