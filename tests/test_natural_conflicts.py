"""From a retrieval log of real charts to a recommendation, in three commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import ROOT, Rashomon
from tests.support.demo import BF16, FOUR_BIT
from tests.support.pdf_files import write_pdf
from tests.support.retrieval_logs import CHARTS, chart_log, chart_rows, demo_log, write_log

PAGE = ROOT / "docs" / "natural-conflicts.md"
POLICIES = ("always-image", "always-text", "uniform")


def recommended(rashomon: Rashomon, log: Path) -> tuple[dict[str, int], str]:
    """Build, run and recommend; return the conditions' counts and the recommendation."""
    built = rashomon.json("build", "retrieval", "--from", log)
    models = [word for name in POLICIES for word in ("--model", f"policy:{name}")]
    rashomon.run("--batch", "--benchmark", "retrieval", *models, "--display", "none")
    runs = (f"retrieval-policy-{name}" for name in POLICIES)
    return built["manifest"]["conditions"], rashomon.run("recommend", *runs).stdout


@pytest.mark.slow
@pytest.mark.skipif(not CHARTS.exists(), reason="the real charts are not here")
def test_200_questions_with_distractors_lead_to_a_recommendation(tmp_path: Path) -> None:
    rows = chart_rows()[:200]
    log = write_log(tmp_path / "log.jsonl", chart_log(rows, {row["image"]: str(CHARTS / row["image"]) for row in rows}))
    conditions, text = recommended(Rashomon(tmp_path), log)
    assert conditions["image-correct"] == 60
    assert conditions["undecided"] == 7
    assert conditions["aligned"] == 133
    assert "policy:always-image" in text


@pytest.mark.slow
@pytest.mark.skipif(not CHARTS.exists(), reason="the real charts are not here")
def test_a_pdf_of_40_pages_leads_to_a_recommendation(tmp_path: Path) -> None:
    by_chart = {row["image"]: row for row in reversed(chart_rows())}
    charts = list(by_chart)[:40]
    write_pdf(tmp_path / "charts.pdf", [CHARTS / chart for chart in charts])
    images = {chart: f"charts.pdf#page={number}" for number, chart in enumerate(charts, 1)}
    log = write_log(tmp_path / "log.jsonl", chart_log([by_chart[chart] for chart in charts], images))
    conditions, text = recommended(Rashomon(tmp_path), log)
    assert sum(conditions.values()) == 120
    assert len(list((tmp_path / "cache").glob("**/pdf-pages/*.png"))) == 40
    assert "policy:always-image" in text


@pytest.mark.slow
def test_the_demo_model_reads_a_pdf_of_40_pages(tmp_path: Path) -> None:
    log = demo_log(tmp_path / "documents", 40)
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    rashomon = Rashomon(tmp_path)
    output = rashomon.run("build", "retrieval", "--from", log, "--reader", BF16, "--json").stdout
    conditions = json.loads(output)["result"]["manifest"]["conditions"]
    stale, unknown = len(lines[::3]), len(lines[::30])
    assert len(list((tmp_path / "cache").glob("**/pdf-pages/*.png"))) == 40
    assert abs(conditions["image-correct"] - (stale - unknown)) <= 4, "what the reader found is what was written"
    assert abs(conditions["undecided"] - unknown) <= 1
    models = [word for name in (BF16, FOUR_BIT, "policy:always-image") for word in ("--model", str(name))]
    rashomon.run("--batch", "--benchmark", "retrieval", *models, "--display", "none")
    runs = ("retrieval-model-bf16", "retrieval-model-4bit", "retrieval-policy-always-image")
    text = rashomon.run("recommend", *runs, "--margin", "0.2").stdout
    assert "model-" in text.splitlines()[1]


def first_commands() -> list[str]:
    """Return the first two command lines of the page."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks[:2] for line in block.splitlines()]


def test_page_begins_with_a_check_that_works_in_any_clone(tmp_path: Path) -> None:
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    output = Rashomon(tmp_path).run(*shlex.split(first_commands()[0])[1:]).stdout
    assert "48 of 48 rows can be used" in output


@pytest.mark.slow
def test_the_demo_model_reads_the_log_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    build = first_commands()[1]
    assert "conflicts 23" in Rashomon(tmp_path).run(*shlex.split(build)[1:]).stdout
