"""Retrieval logs of real charts: the chart itself, or a PDF of charts, with passages of other charts as distractors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from assets.demo.recipe.chart_rows import QUESTIONS, says
from assets.demo.recipe.charts import VALUES, draw, training_bars
from benchmarks.values import compare
from tests.support.command import ROOT
from tests.support.pdf_files import write_pdf

CHARTS = ROOT.parent / "shared" / "data" / "cmc_bench" / "chartqa"
MISLEADING = ROOT.parent / "shared" / "data" / "cmc_bench" / "misleading_chartqa"


def write_log(file: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write a log of these lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def chart_rows() -> list[dict[str, str]]:
    """Return ChartQA's test questions whose charts are here."""
    file = CHARTS / "qa_test_with_images.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def chart_log(rows: list[dict[str, str]], images: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a log of these questions, in which every third passage about the chart is out of date.

    Two passages are of other charts. ``images`` maps a chart's file to the name that the log gives it. What the sources say alone
    is known, because the passages are written here; it stands in the log as its pipeline would have stored it.
    """
    lines = []
    for number, row in enumerate(rows):
        others = [rows[(number + step) % len(rows)] for step in (7, 19)]
        old = next(
            other["answer"]
            for step in range(1, len(rows))
            if (other := rows[(number + step) % len(rows)])
            and compare(other["answer"], row["answer"], row["question"]).verdict == "different"
        )
        value = old if number % 3 == 0 else row["answer"]
        passages = [f'On the question "{other["question"]}", a report gives {other["answer"]}.' for other in others]
        passages.insert(number % 3, f'On the question "{row["question"]}", a report gives {value}.')
        lines.append(
            {
                "question": row["question"],
                "passages": passages,
                "images": [images[row["image"]]],
                "image_answer": row["answer"],
                "text_answer": value,
                **({"answer": row["answer"]} if number % 10 else {}),
            }
        )
    return lines


def demo_log(folder: Path, pages: int, per_page: int = 2, seed: int = 1) -> Path:
    """Write a PDF of charts that the demo model can read, a page each, and a log of questions about them.

    The passage of every third question is out of date; no right answer is known for one question in ten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random, scale = Random(seed), 8
    lines: list[dict[str, Any]] = []
    files: list[Path] = []
    for page in range(1, pages + 1):
        bars = training_bars(random)
        chart = draw(bars, random).image
        files.append(folder / f"page-{page}.png")
        chart.resize((scale * chart.width, scale * chart.height), Image.Resampling.NEAREST).save(files[-1])
        for name, value in random.sample(bars, per_page):
            number = len(lines)
            drawn = {drawn_value for _, drawn_value in bars}
            stated = random.choice([other for other in VALUES if other not in drawn]) if number % 3 == 0 else value
            lines.append(
                {
                    "question": QUESTIONS[0].format(name),
                    "passages": [says(stated)],
                    "images": [f"report.pdf#page={page}"],
                    **({"answer": str(value)} if number % 10 else {}),
                }
            )
    write_pdf(folder / "report.pdf", files)
    return write_log(folder / "log.jsonl", lines)
