"""The examples of the page run, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_docs import ROOT

PAGE = ROOT / "docs" / "langgraph-saver.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "page"}
    for example in examples:
        # The annotations of the examples are values, which LangGraph reads.
        exec(compile(example, str(PAGE), "exec", dont_inherit=True), names)
    assert len(examples) == 3
    assert (tmp_path / "agent.grains").is_dir()
