"""Numbers computed on the pages, recomputed by the code behind them."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from mlx_backends.models import memory_estimate
from mlx_backends.models.metal import GIB
from tests.docs.pages import ROOT

MACS = (16, 24, 32, 64)


def rows(page: str, columns: int) -> list[list[str]]:
    """Return the cells of the page's table rows with ``columns`` cells."""
    lines = [line for line in (ROOT / page).read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns]


@pytest.mark.parametrize(("column", "gigabytes"), list(enumerate(MACS, 3)))
def test_documented_memory_table_matches_the_estimate(
    column: int, gigabytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(memory_estimate, "metal_working_set", lambda: None)
    monkeypatch.setattr(memory_estimate, "_total", lambda: gigabytes * GIB)
    table = [row for row in rows("docs/memory.md", 7) if row[0].startswith("`")]
    assert len(table) > 20
    for model, weights, needs, *fits in table:
        fit = memory_estimate.memory_fit(round(float(weights.removesuffix(" GB")) * 1e9))
        assert abs(fit.need / GIB - float(needs.removesuffix(" GiB"))) < 0.1, model
        assert fits[column - 3] == ("yes" if fit.ok else "no"), (model, gigabytes)


@pytest.mark.skipif(find_spec("mlx_backends.models.catalog") is None, reason="there is no list of the papers' models")
def test_all_models_of_the_paper_are_listed_with_sizes() -> None:
    listed = import_module("mlx_backends.models.catalog").catalog_models()
    sizes = {model[0].strip("`"): model[1] for model in rows("docs/memory.md", 7) if model[0].startswith("`")}
    assert sizes == {model.id: f"{model.weights_bytes / 1e9:.1f} GB" for model in listed if model.benchmarks}


def test_documented_hours_are_instances_times_seconds() -> None:
    table = [row for row in rows("docs/first-run.md", 4) if re.fullmatch(r"[\d.]+", row[0])]
    assert len(table) == 5
    for seconds, pilot, paper, everything in table:
        assert pilot == f"{160 * float(seconds) / 60:.1f} min"
        assert paper == f"{3768 * float(seconds) / 3600:.1f} h"
        assert everything == f"{7536 * float(seconds) / 3600:.1f} h"
