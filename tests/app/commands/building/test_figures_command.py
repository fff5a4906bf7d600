"""`rashomon figures`: the pictures of a build that its paper draws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assets.demo.recipe import evaluate_demo_model
from tests.support.command import Rashomon
from tests.support.data.contra4 import PLAIN, write_source
from tests.support.data.contra4 import row as contra4_row
from tests.support.data.crosscheck_bench import row, write_rows


@pytest.mark.slow
def test_figures_of_a_build_by_its_name_and_by_its_folder(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folder = rashomon.workspace / "benchmarks/clash"
    evaluate_demo_model.build("clash", folder)
    said = rashomon.run("figures", "clash", "--format", "png,svg", "--out", tmp_path / "a").stdout
    assert all(f"{name}.{form}" in said for name in ("categories", "questions", "words") for form in ("png", "svg"))
    assert {file.name for file in (tmp_path / "a").iterdir()} == {
        f"{name}.{form}" for name in ("categories", "questions", "words") for form in ("png", "svg")
    }
    rashomon.run("figures", folder, "--format", "svg", "--out", tmp_path / "b")
    assert all(file.read_bytes() == (tmp_path / "a" / file.name).read_bytes() for file in (tmp_path / "b").iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("error::UserWarning")
def test_figures_of_crosscheck_bench_and_contra4(tmp_path: Path) -> None:
    """CrossCheck-Bench's Figure 4, where a level has no samples, and Contra4's Figure 7, without Figure 6's categories."""
    rashomon = Rashomon(tmp_path)
    rows = write_rows(tmp_path / "x", [row("LD", 1), row("BI*", 2)])
    rashomon.run("build", "crosscheck-bench", "--source", f"rows={rows}")
    rashomon.run("build", "contra4", "--source", write_source(tmp_path / "y", [contra4_row("one", PLAIN[:2])]))
    for name, expected in (("crosscheck-bench", {"tasks", "capabilities"}), ("contra4", {"modalities"})):
        rashomon.run("figures", name, "--format", "svg", "--out", tmp_path / name)
        assert {file.stem for file in (tmp_path / name).iterdir()} == expected


def test_wrong_figures_are_refused_in_one_line(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    for name in ("clash", "cmc-bench"):
        evaluate_demo_model.build(name, rashomon.workspace / "benchmarks" / name)
    for words in (
        ("cmc-bench",),
        ("pope",),
        ("no-such",),
        ("clash", "--format", "jpg"),
        ("clash", "--format", ""),
        ("clash", "--width", "wide"),
    ):
        errors = rashomon.run("figures", *words, code=2).stderr
        assert len(errors.splitlines()) == 1, errors
    assert not (Path(rashomon.home) / "figures").exists()
    damaged = rashomon.workspace / "benchmarks/clash/instances.jsonl"
    damaged.write_text(json.dumps({"id": "x"}) + "\n", "utf-8")
    assert "Traceback" not in rashomon.run("figures", "clash", code=2).stderr
