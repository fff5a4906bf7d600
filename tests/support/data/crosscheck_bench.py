"""CrossCheck-Bench rows of our own: one drawn product card a frame, for every task both kinds of answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.crosscheck_bench.crosscheck_instances import instances
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample, parse_sample, with_frames
from benchmarks.vocabulary import Generation, Media, Record
from judges.judge_registry import get_judge

SIZE = (160, 120)
BOXES: list[dict[str, Any]] = [
    {"label": "brand logo", "box": [10, 10, 70, 40]},
    {"label": "price tag", "box": [90, 80, 150, 110]},
]
JUDGES = ("extracted", "printed")


def row(task: str, number: int, *, boxes: bool = True) -> dict[str, Any]:
    """A row of the layout. Tasks of letters have three options, the right one by ``number``."""
    frames = [f"{task.replace('*', 'c')}-{number}-{i}.png" for i in range(3 if TASKS[task].multi_frame else 1)]
    fields: dict[str, Any] = {
        "id": f"{task} {number}",
        "task": task,
        "question": f"What about product {number}?",
        "text": f'Title: "Thing {number}"',
        "frames": frames,
        "product": f"thing-{number}",
    }
    if not TASKS[task].closed:
        fields["answer"] = f"Brand {number}"
    elif TASKS[task].level == "L3":
        fields |= {"options": ["Main item for sale", "Partial item for sale", "Item not for sale"]}
        fields["answer"] = "ABC"[number % 3]
    else:
        fields["answer"] = ("Yes", "No")[number % 2]
    if boxes:
        fields["boxes"] = [BOXES for _ in frames]
    return fields


def write_rows(folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """``rows.jsonl`` and the pictures that it names; a picture's colours are its own."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for number, name in enumerate(name for row in rows for name in row["frames"]):
        picture = Image.new("RGB", SIZE, (40 + number * 37 % 200, 90, 200 - number * 53 % 200))
        draw = ImageDraw.Draw(picture)
        draw.rectangle((12, 12, 68, 38), fill="white")
        draw.text((16, 18), f"N{number}", fill="black")
        picture.save(folder / name)
    return folder


def make_sample(task: str, number: int = 0, *, boxes: bool = True) -> CrossCheckSample:
    """The sample of a row, with pictures of its own that are nowhere."""
    fields = row(task, number, boxes=boxes)
    media = [(Media(hashlib.sha256(name.encode()).hexdigest(), ".png"), SIZE) for name in fields["frames"]]
    return with_frames(parse_sample(fields, len(media)), media)


def records(samples: Iterable[CrossCheckSample], say: Any, conditions: Sequence[str] = ("vanilla",)) -> list[Record]:
    """Records of ``samples`` under ``conditions``, answered by ``say(sample, condition)`` and judged by both matchings.

    Where it says a tuple, those are the steps' answers.
    """
    results = []
    for sample in samples:
        for instance in instances(sample):
            if instance.condition in conditions:
                reply = say(sample, instance.condition)
                texts = reply if isinstance(reply, tuple) else (reply,)
                steps = tuple(Generation(f"{instance.id}#{i}", text, "stop") for i, text in enumerate(texts))
                record = Record(instance, steps)
                verdicts = {judge.id: judge.judge(record) for judge in map(get_judge, JUDGES)}
                results.append(Record(instance, steps, verdicts))
    return results
