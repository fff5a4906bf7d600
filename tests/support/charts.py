"""Sources for tests: charts and diagrams drawn here, in the original layouts of ChartQA and MMMU."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

SHARED = "RASHOMON_TESTS_SHARED"
"""The environment variable with a folder for what all processes of a session of tests use."""

_FIGURE_INCHES, _DPI = (4.0, 3.0), 80
_REGIONS = ("North", "South", "East", "West", "Centre")
_GOODS = ("Apples", "Bicycles", "Candles", "Drums", "Engines", "Flutes", "Gloves", "Hammers")
_STAGES = (
    ("Intake", "Compression", "Combustion", "Exhaust"),
    ("Evaporation", "Condensation", "Precipitation", "Collection"),
    ("Egg", "Larva", "Pupa", "Adult"),
    ("Plan", "Build", "Test", "Release"),
    ("Seed", "Seedling", "Sapling", "Tree"),
    ("Mining", "Smelting", "Casting", "Polishing"),
)
_SUBJECTS = ("Physics", "History")


def draw_sources(folder: Path) -> None:
    """Charts into ``folder/chartqa`` and its diagrams into ``folder/mmmu``.

    Eight bar charts (factual), eight line charts over years (temporal), six cycles (entity) and six pictures to
    count in (granularity), one question each. Nothing in them is random, so they are drawn once a session.
    """
    shutil.copytree(_drawn(), folder, dirs_exist_ok=True)


@cache
def _drawn() -> Path:
    """Draw the sources in the folder that all processes of a session of tests share, or else in one of this process."""
    shared = os.environ.get(SHARED)
    if shared is None:
        shared = tempfile.mkdtemp(prefix="charts-")
        atexit.register(shutil.rmtree, shared, ignore_errors=True)
    folder = Path(shared) / "charts"
    with open(Path(shared) / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            scratch = folder.with_name("unfinished")
            _draw(scratch)
            scratch.rename(folder)
    return folder


def _draw(folder: Path) -> None:
    from matplotlib.figure import Figure

    chartqa, mmmu = folder / "chartqa", folder / "mmmu"
    (chartqa / "png").mkdir(parents=True, exist_ok=True)
    (mmmu / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for number, good in enumerate(_GOODS):
        figure = Figure(_FIGURE_INCHES, _DPI, layout="tight")
        rows.append(_bar_chart(figure, number, good, chartqa))
        figure = Figure(_FIGURE_INCHES, _DPI, layout="tight")
        rows.append(_line_chart(figure, number, good, chartqa))
    (chartqa / "demo_human.json").write_text(json.dumps(rows, indent=1), "utf-8")
    diagrams = []
    for number, stages in enumerate(_STAGES):
        diagrams.append(_cycle(Figure(_FIGURE_INCHES, _DPI), number, stages, mmmu))
        diagrams.append(_dots(Figure(_FIGURE_INCHES, _DPI), number, mmmu))
    (mmmu / "demo.json").write_text(json.dumps(diagrams, indent=1), "utf-8")


def _save(figure: Any, path: Path) -> None:
    # Without the metadata, which holds matplotlib's version, equal pictures are equal files.
    figure.savefig(path, metadata={"Software": None})


def _bar_chart(figure: Any, number: int, good: str, folder: Path) -> dict[str, str]:
    values = [(number * 17 + i * 23) % 71 + 12 for i in range(len(_REGIONS))]
    axes = figure.add_subplot()
    bars = axes.bar(_REGIONS, values, color="#56b4e9")
    axes.bar_label(bars)
    axes.margins(y=0.15)
    axes.set_title(f"{good} sold by region")
    name = f"bar_{number}.png"
    _save(figure, folder / "png" / name)
    index = number % len(_REGIONS)
    question = f"How many {good.lower()} were sold in the region {_REGIONS[index]}?"
    return {"imgname": name, "query": question, "label": str(values[index])}


def _line_chart(figure: Any, number: int, good: str, folder: Path) -> dict[str, str]:
    years = list(range(1990 + number * 3, 2000 + number * 3))
    peak = 1 + (number * 7 + 3) % (len(years) - 2)
    values = [40 - 3 * abs(i - peak) for i in range(len(years))]
    axes = figure.add_subplot()
    axes.plot(years, values, marker="o", color="#e8702a")
    axes.set_title(f"Production of {good.lower()}, by year")
    axes.set_xticks(years, [str(year) for year in years], rotation=45)
    name = f"line_{number}.png"
    _save(figure, folder / "png" / name)
    return {
        "imgname": name,
        "query": f"In which year was the production of {good.lower()} highest?",
        "label": str(years[peak]),
    }


def _cycle(figure: Any, number: int, stages: Sequence[str], folder: Path) -> dict[str, Any]:
    axes = figure.add_subplot()
    axes.axis("off")
    corners = ((0.2, 0.8), (0.8, 0.8), (0.8, 0.2), (0.2, 0.2))
    for i, (stage, place) in enumerate(zip(stages, corners, strict=True)):
        axes.text(*place, stage, ha="center", va="center", bbox={"boxstyle": "round", "facecolor": "#f0e442"})
        x, y = place
        to_x, to_y = corners[(i + 1) % 4]
        begin, end = (x + (to_x - x) * 0.35, y + (to_y - y) * 0.35), (x + (to_x - x) * 0.65, y + (to_y - y) * 0.65)
        axes.annotate("", end, begin, arrowprops={"arrowstyle": "->"})
    index = number % 4
    image = f"images/cycle_{number}.png"
    _save(figure, folder / image)
    return _mmmu_row(
        f"cycle_{number}",
        number,
        f"<image 1> Which stage comes right after {stages[index]}?",
        [stages[(index + offset) % 4] for offset in (2, 1, 3)],
        "B",
        image,
    )


def _dots(figure: Any, number: int, folder: Path) -> dict[str, Any]:
    count = number + 4
    axes = figure.add_subplot()
    axes.axis("off")
    axes.scatter([i % 4 for i in range(count)], [i // 4 for i in range(count)], s=400, color="#af5fff")
    axes.set_xlim(-1, 4)
    axes.set_ylim(-1, 3)
    image = f"images/dots_{number}.png"
    _save(figure, folder / image)
    options = [str(count + offset) for offset in (3, -1, 0, 5)]
    return _mmmu_row(f"dots_{number}", number, "<image 1> How many dots are there?", options, "C", image)


def _mmmu_row(name: str, number: int, question: str, options: Sequence[str], answer: str, image: str) -> dict[str, Any]:
    return {
        "id": f"demo_{name}",
        "subject": _SUBJECTS[number % len(_SUBJECTS)],
        "question": question,
        "options": list(options),
        "answer": answer,
        "image_1": image,
    }
