"""The recipes of docs/cookbook run as they stand, and print what they say; so does the notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from test_docs import ROOT, run_code, run_page, without_network

COOKBOOK = ROOT / "docs" / "cookbook"
PAGES = sorted(COOKBOOK.glob("*.md"))

SVG = "{http://www.w3.org/2000/svg}"

#: What a recipe imports beside the package, which may not be installed.
NEEDS = {"langgraph-agent.md": "import langgraph.graph; from grainstore.langgraph import GrainSaver, GrainStore"}


def test_there_are_recipes() -> None:
    assert len(PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_recipe_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        exec(NEEDS.get(page.name, ""), {})
    except ImportError as error:
        pytest.skip(f"{page.name} needs what cannot be imported here: {error}")
    assert run_page(page, tmp_path, monkeypatch) > 0


def test_the_notebook_runs_and_draws_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((COOKBOOK / "history.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    monkeypatch.chdir(tmp_path)
    without_network(monkeypatch)
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn = 0
    for number, cell in enumerate(one for one in notebook["cells"] if one["cell_type"] == "code"):
        code = "".join(cell["source"])
        *body, last = code.rstrip().split("\n")
        shows = cell["outputs"] and cell["outputs"][-1]["output_type"] == "execute_result"
        printed = run_code("\n".join(body) if shows else code, f"cell {number}", 0, names)
        told = "".join(text for one in cell["outputs"] if one["output_type"] == "stream" for text in one["text"])
        assert printed == told, number
        if shows:
            shown = "".join(cell["outputs"][-1]["data"]["image/svg+xml"])
            drawing = eval(last, names)._repr_svg_()
            assert drawing == shown, number
            assert "tea & honey" in [text.text for text in ElementTree.fromstring(drawing).iter(f"{SVG}text")]
            drawn += 1
    assert drawn >= 1
