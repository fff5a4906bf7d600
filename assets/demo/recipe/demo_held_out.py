"""The held-out sets: pictures that the training never draws, in the layouts that ``rashomon build`` takes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random
from typing import Any, Literal

from assets.demo.recipe.chart_rows import QUESTIONS
from assets.demo.recipe.charts import NAMES, Bars, draw, held_out_pairs, training_bars, valued
from assets.demo.recipe.logos import BRANDS, KINDS, Brand, draw_logo, knowledge, others
from assets.demo.recipe.logos import QUESTIONS as LOGO_QUESTIONS
from assets.demo.recipe.scenes import RELATIONS, Scene, draw_scene, held_out_things, sample, training_scene
from benchmarks.mmkc_bench.mmkc_options import format_query

SEED = "held out"
SEEN_EACH, UNSEEN_EACH = 8, 4
"""Charts per name: those whose requested pair of name and value the training could show, and those it never showed."""
SCENES_EACH = 18
"""Scenes for each kind of change and each of seen and unseen pairs; of seen pairs twice as many."""
LOGOS_EACH = 3
"""Items per brand."""


# --- charts, for CMC-Bench -----------------------------------------------------------------------


def write_charts(folder: Path) -> int:
    """Write charts with a question each, for ``rashomon build cmc-bench --source rows=FOLDER``. Return their number.

    The ``group`` of a row holds the name that is asked for and whether the training could show the pair of name and value:
    CMC-Bench takes wrong images and contradicting values from the same group, so that a wrong image has a bar of the asked
    name and all of an example's pairs are of one sort.
    """
    random = Random(SEED)
    (folder / "charts").mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        for pair, bars in _asked(random, name):
            image = f"charts/{len(rows):03d}.png"
            draw(bars, random).image.save(folder / image, optimize=True)
            rows.append(
                {
                    "image": image,
                    "question": QUESTIONS[0].format(name),
                    "answer": str(dict(bars)[name]),
                    "group": f"{name}, {pair} pair",
                    "bars": dict(bars),
                }
            )
    return _write_rows(folder, rows)


def _asked(random: Random, name: str) -> list[tuple[str, Bars]]:
    """Return charts that show ``name``, each with another value."""
    unseen = random.sample(sorted(value for other, value in held_out_pairs() if other == name), UNSEEN_EACH)
    charts: list[tuple[str, Bars]] = []
    used: set[int] = set()
    while len(charts) < SEEN_EACH:
        bars = training_bars(random)
        value = dict(bars).get(name)
        if value is not None and value not in used:
            used.add(value)
            charts.append(("seen", bars))
    for value in unseen:
        others = random.sample([other for other in NAMES if other != name], random.randint(2, 4))
        names = random.sample([name, *others], len(others) + 1)
        charts.append(("unseen", valued(random, names, [(name, value)])))
    return charts


# --- scenes, for CLASH ---------------------------------------------------------------------------


def write_scenes(folder: Path) -> int:
    """Write scenes with two captions and a question each, for ``rashomon build clash --source rows=FOLDER``. Return their number.

    The picture's name tells whether the thing that is asked about is a pair of colour and shape that the training shows.
    """
    random = Random(SEED)
    (folder / "scenes").mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    changes: tuple[Literal["object", "attribute"], ...] = ("object", "attribute")
    for number in range(3 * SCENES_EACH):
        pair = ("seen", "seen", "unseen")[number % 3]
        for change in changes:
            scene = training_scene(random) if pair == "seen" else _unseen(random)
            clash_sample = sample(random, scene, 0, change)
            image = f"scenes/{pair}-{len(rows):03d}.png"
            draw_scene(scene, random).image.save(folder / image, optimize=True)
            rows.append(
                {
                    "image": image,
                    "original_caption": clash_sample.original_caption,
                    "conflicting_caption": clash_sample.conflicting_caption,
                    "question": clash_sample.question,
                    "change_type": clash_sample.change,
                    "image_only": clash_sample.image_only,
                    "text_only": clash_sample.text_only,
                    "distractor": clash_sample.distractor,
                    "changed_original": clash_sample.changed[0],
                    "changed_conflicting": clash_sample.changed[1],
                }
            )
    return _write_rows(folder, rows)


def _unseen(random: Random) -> Scene:
    """Return a scene whose first thing is a pair that no training scene shows."""
    first = random.choice(sorted(held_out_things()))
    while True:
        second = random.choice(training_scene(random).things)
        if second[0] != first[0] and second[1] != first[1]:
            return Scene((first, second), random.choice(RELATIONS))


# --- logos, for MMKC-Bench -----------------------------------------------------------------------


def write_logos(folder: Path) -> int:
    """Write ``logo_knowledge.json`` in the published layout, with its pictures. Return the number of items."""
    random = Random(SEED)
    (folder / "image").mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for number in range(LOGOS_EACH):
        for brand in BRANDS:
            name = f"{brand.name}_{number + 1}"
            paths = []
            for part in ("question", "first", "second"):
                paths.append(f"image/{name}_{part}.png")
                draw_logo(brand, random).image.save(folder / paths[-1], optimize=True)
            rows.append(_logo_row(random, brand, len(rows) + 1, name, paths))
    _write(folder / "logo_knowledge.json", json.dumps(rows, indent=1) + "\n")
    return len(rows)


def _logo_row(random: Random, brand: Brand, number: int, name: str, paths: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"ID": number, "instance": name, "image_path": paths, "knowledge": knowledge(brand)}
    row["mis_knowledge"] = {}
    for kind in KINDS:
        first, second, unrelated = others(random, brand, kind, 3)
        row["mis_knowledge"][f"{kind}_error"] = {
            "mis_knowledge1": knowledge(brand, {kind: first}),
            "mis_answer_1": first,
            "mis_knowledge2": knowledge(brand, {kind: second}),
            "mis_answer_2": second,
        }
        options = random.sample([brand.facts[kind], first, second, unrelated], 4)
        letters = {option: letter for letter, option in zip("ABCD", options, strict=True)}
        row |= {
            f"open_query_{kind}": LOGO_QUESTIONS[kind],
            f"open_groundtruth_{kind}": brand.facts[kind],
            f"mcq_query_{kind}": format_query(LOGO_QUESTIONS[kind], options),
            f"mcq_groundtruth_{kind}": letters[brand.facts[kind]],
            f"mcq_disanswer_{kind}_1": letters[first],
            f"mcq_disanswer_{kind}_2": letters[second],
        }
    return row


# --- files ---------------------------------------------------------------------------------------


def _write_rows(folder: Path, rows: list[dict[str, Any]]) -> int:
    _write(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return len(rows)


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def main() -> None:
    """Draw the held-out sets into a folder for each benchmark."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    print(write_charts(folder / "cmc-bench"), write_scenes(folder / "clash"), write_logos(folder / "mmkc-bench"))


if __name__ == "__main__":
    main()
