"""The conformance suite of LangGraph for checkpointers, whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import grainstore
from grainstore.langgraph import GrainSaver

conformance = pytest.importorskip("langgraph.checkpoint.conformance")


def savers(path: Path) -> dict[str, Callable[[], AsyncIterator[GrainSaver]]]:
    async def by_path() -> AsyncIterator[GrainSaver]:
        async with GrainSaver(path) as saver:
            yield saver

    async def by_store() -> AsyncIterator[GrainSaver]:
        with grainstore.open(path) as store:
            yield GrainSaver(store)

    async def by_async_store() -> AsyncIterator[GrainSaver]:
        async with grainstore.aopen(path) as store:
            yield GrainSaver(store)

    return {"path": by_path, "store": by_store, "async store": by_async_store}


@pytest.mark.parametrize("kind", ["path", "store", "async store"])
def test_every_capability_conforms(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    registered = conformance.checkpointer_test(name="GrainSaver")(savers(tmp_path / "store")[kind])
    report = asyncio.run(conformance.validate(registered))
    passed = sum(result.tests_passed for result in report.results.values())
    failures = [failure for result in report.results.values() for failure in result.failures]
    with capsys.disabled():
        print(f"\nconformance, by {kind}: {passed} of {passed + len(failures)}")
    assert not failures
    assert all(result.detected and result.passed for result in report.results.values())
    assert len(report.results) == 8 and passed == 81
