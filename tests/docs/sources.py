"""Small sources in the published layouts, for the commands of the documentation."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

from benchmarks.clash.clash_constants import CONFLICT_OPTION
from tests.benchmarks.clash.test_clash_construction import small_coco
from tests.benchmarks.mmkc_bench.test_mmkc_construction import source as knowledge
from tests.benchmarks.mmkc_bench.test_mmkc_construction import tower
from tests.benchmarks.test_vqa import small_gqa, small_okvqa
from tests.docs.pages import ROOT
from tests.support.data.clash import own_folder, own_sample, published_folder, published_row
from tests.support.data.contra4 import row, write_source
from tests.support.data.crosscheck_bench import row as crosscheck_row
from tests.support.data.crosscheck_bench import write_rows
from tests.support.data.mmkc_bench import er_row, whole_folder
from tests.support.data.plain import write_rows_of
from tests.support.data.pope import small_pope
from tests.support.data.small import mmmu_rows, own_rows, write_lines, write_picture
from tests.support.media import sound

HELD_OUT = ROOT / "assets" / "demo" / "held_out"

CAPTIONS = tuple(
    f"A {colour} {thing} {place}."
    for colour, place in (
        ("red", "left of a fence"),
        ("blue", "right of a wall"),
        ("green", "above the street"),
        ("white", "in front of a house"),
    )
    for thing in ("bus", "kite", "umbrella", "bench", "boat", "truck")
)
"""Captions of COCO's images, of which a writer by rule makes conflicting ones, some badly."""

TOWERS = ("Big Tower", "Old Gate", "Red House", "Long Bridge", "North Palace", "Stone Mill")


def write(data: Path, here: Path) -> None:
    """Write small sources in the published layouts."""
    _charts(data / "ChartQA")
    mmmu_rows(data / "MMMU", subjects=("Physics",), count=2)
    for name, place in (("HuggingFaceM4/ChartQA", "ChartQA"), ("MMMU/MMMU", "MMMU")):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).symlink_to(data / place)  # a folder that is called like the Hub id is taken before it
    own_rows(data / "my-charts", ["12", "15", "18", "21", "1990", "1995"])
    published_folder(data / "clash", [published_row(number) for number in (1, 2, 3)])
    own_folder(data / "my-scenes", [own_sample(number) for number in (1, 2, 3)])
    charts = [json.loads(line) for line in (HELD_OUT / "cmc-bench" / "rows.jsonl").read_text("utf-8").splitlines()[:12]]
    with (here / "rows.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerow(("image", "question", "answer"))
        csv.writer(stream).writerows((HELD_OUT / "cmc-bench" / c["image"], c["question"], c["answer"]) for c in charts)
    (data / "few-charts").mkdir()
    shutil.copytree(HELD_OUT / "cmc-bench" / "charts", data / "few-charts" / "charts")
    (data / "few-charts" / "rows.jsonl").write_text("".join(json.dumps(c) + "\n" for c in charts), "utf-8")
    _misleading_charts(data / "misleading_chartqa")
    whole_folder(data / "MLLMKC")
    for name in ("mc2", "words-or-vision"):
        write_rows_of(name, data / name, 4)
    small_pope(data / "pope")
    small_okvqa(data / "okvqa")
    small_gqa(data / "gqa")
    pictures = [("image", "coco_val", number, f"A number, {number}") for number in range(139, 143)]
    rows = [row("one", pictures[:2]), row("two", pictures[1:], "C"), row("three", pictures, "D")]
    write_source(data / "contra4", rows)
    for _, source, number, _ in pictures:
        write_picture(data / "contra4" / source / f"{number:012d}.jpg", number, "JPEG")
    (data / "audiocaps").mkdir()
    (data / "audiocaps" / "105253.wav").write_bytes(sound())
    small_coco(data / "coco", {number: [text] for number, text in enumerate(CAPTIONS, 139)})
    sugar_crepe(data / "sugar-crepe")
    knowledge(data / "my-knowledge", [tower(name) for name in TOWERS])
    captions(data / "captions")
    predictions(here)
    write_rows(data / "my-questions", [crosscheck_row(task, 1) for task in ("LD", "BR", "BDC")])
    (data / "my-products").symlink_to(ROOT / "assets" / "products")


def _charts(folder: Path) -> None:
    """Write some of the demo's charts in ChartQA's layout."""
    lines = (HELD_OUT / "cmc-bench" / "rows.jsonl").read_text("utf-8").splitlines()
    for split, subset in (("val", lines[:3]), ("test", lines[3:6])):
        rows = [json.loads(line) for line in subset]
        (folder / split / "png").mkdir(parents=True)
        for chart in rows:
            shutil.copy(HELD_OUT / "cmc-bench" / chart["image"], folder / split / "png" / Path(chart["image"]).name)
        labels = [
            {"imgname": Path(chart["image"]).name, "query": chart["question"], "label": chart["answer"]}
            for chart in rows
        ]
        (folder / split / f"{split}_human.json").write_text(json.dumps(labels), "utf-8")


def sugar_crepe(folder: Path) -> None:
    """Write SugarCrepe's file of replaced objects."""
    rows = {
        str(number): {
            "filename": f"{number:012d}.jpg",
            "caption": f"A {word} sat.",
            "negative_caption": f"A {other} sat.",
        }
        for number, (word, other) in enumerate((("cat", "dog"), ("cow", "pig"), ("hen", "goat")), 1)
    }
    for number in range(1, 4):
        write_picture(folder / "val2017" / f"{number:012d}.jpg", number, "JPEG")
    (folder / "replace_obj.json").write_text(json.dumps(rows), "utf-8")


def captions(folder: Path) -> None:
    """Write four pictures and four sounds with captions, in Contra4's layout."""
    pairs = [
        [
            ("image", "coco_val", f"{n}.jpg", f"A picture of {n} trees"),
            ("audio", "clotho", f"{n}.wav", f"A sound of {'many ' * n} bells"),
        ]
        for n in range(4)
    ]
    write_source(folder, [row(f"row{n}", pair) for n, pair in enumerate(pairs)])


def predictions(here: Path) -> None:
    """Write result files in the layouts of the authors of CLASH and MMKC-Bench."""
    answers = [
        {
            **{key: value for key, value in published_row(number).items() if key in _PREDICTED},
            "prediction": f"({letter})",
            "modality_answers": {
                role: {"choice": choice, "answer": answer}
                for role, choice, answer in (
                    ("image_only", "C", "White"),
                    ("text_only", "D", "Black"),
                    ("irrelevant_but_plausible", "B", "Orange"),
                    ("contradiction", "A", CONFLICT_OPTION),
                )
            },
        }
        for number, letter in ((1, "C"), (2, "D"), (3, "A"))
    ]
    for name in ("predictions.json", "multiple_choice__gemini-2.5-flash-lite_predictions.json"):
        (here / name).write_text(json.dumps(answers), "utf-8")
    for folder in ("output/ER", "RESULTS/output/ER"):
        rows = [er_row(number) | {"success": True, "prediction": "A"} for number in (1, 2)]
        write_lines(here / folder / "mcq_Qwen2.5-VL-7B_ie.jsonl", rows)


_PREDICTED = ("image_id", "original_caption", "conflicting_caption", "question")


def _misleading_charts(folder: Path) -> None:
    write_picture(folder / "0.png", 0)
    row = {
        "question": "What is the trend?",
        "options": {"A": "Falling", "B": "Rising"},
        "correctAnswer": "B",
        "wrongDueToMisleaderAnswer": "A",
        "explanation": "The axis is inverted; the values are rising.",
        "misleader": "inverted axis",
        "image": "0.png",
    }
    write_lines(folder / "qa.jsonl", [row])
