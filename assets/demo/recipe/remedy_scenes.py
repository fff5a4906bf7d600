"""Fine-tuning of the demo model on scenes, CLASH's way: filtered against unfiltered rows, measured before and after."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Literal

from assets.demo.recipe.remedy import DEMO, rewrite_answers, run_rashomon
from assets.demo.recipe.scenes import (
    COLOURS,
    RELATIONS,
    SHAPES,
    Sample,
    Scene,
    caption,
    draw_scene,
    held_out_things,
    sample,
)
from benchmarks.clash.clash_constants import CONFLICT_OPTION

_OPPOSITE = dict(zip(RELATIONS, (RELATIONS[1], RELATIONS[0], RELATIONS[3], RELATIONS[2]), strict=True))
_CHANGES: tuple[Literal["object", "attribute"], ...] = ("object", "attribute")


TRAINED = RELATIONS[:2]
"""The arrangements of the fine-tuning's scenes. Held-out pairs of a colour and a shape are in none."""
NEW = RELATIONS[2:]
"""Arrangements that the fine-tuning never shows."""


def write_scenes(
    folder: Path, relations: Sequence[str], count: int, *, conflicting: bool = True, seed: int = 0
) -> None:
    """Write scenes so arranged with two captions and a question each, for ``rashomon build clash --source rows=FOLDER``.

    Without ``conflicting``, the second caption only puts the first one otherwise, so that the samples are what CLASH's filter
    is there to reject.
    """
    random = Random(f"remedy scenes {seed} {relations} {conflicting}")
    (folder / "scenes").mkdir(parents=True)
    lines = []
    for number in range(count):
        scene, drawn = _sample(random, relations, _CHANGES[number % 2])
        image = f"scenes/{number:04d}.png"
        draw_scene(scene, random).image.save(folder / image, optimize=True)
        row = {name: value for name, value in asdict(drawn).items() if name not in ("change", "changed", "followed")}
        if not conflicting:
            row["conflicting_caption"] = caption(Scene(scene.things[::-1], _OPPOSITE[scene.relation]))
        row |= {"image": image, "change_type": drawn.change}
        row |= {"changed_original": drawn.changed[0], "changed_conflicting": drawn.changed[1]}
        lines.append(json.dumps(row) + "\n")
    (folder / "rows.jsonl").write_text("".join(lines), "utf-8")


def _sample(random: Random, relations: Sequence[str], change: Literal["object", "attribute"]) -> tuple[Scene, Sample]:
    while True:
        colours, shapes = random.sample(list(COLOURS), 2), random.sample(SHAPES, 2)
        first, second = zip(colours, shapes, strict=True)
        scene = Scene((first, second), random.choice(relations))
        if not held_out_things() & {*scene.things}:
            return scene, sample(random, scene, random.randrange(2), change)


def in_model_words(training_set: Path, scenes: Sequence[Path]) -> None:
    """Put what the picture and the caption say before the verdict of each answer of a training set: a line each.

    Where they differ, CLASH's sentence stands below, with its full stop: so it is one token of the demo model.
    """
    readings: dict[str, tuple[str, str]] = {}
    for folder in scenes:
        for row in map(json.loads, (folder / "rows.jsonl").read_text("utf-8").splitlines()):
            image = hashlib.sha256((folder / row["image"]).read_bytes()).hexdigest()
            readings[image] = row["image_only"], row["text_only"]

    def rewrite(row: Mapping[str, Any], _: str) -> str:
        picture, caption = readings[row["image_digests"][0]]
        return f"{picture}\n{caption}\n{CONFLICT_OPTION}" if row["kind"] == "conflict" else f"{picture}\n{picture}"

    rewrite_answers(training_set, rewrite)


def remedy(
    folder: Path, *, examples: int = 6000, new: int = 108, steps: int = 2000, sizes: str = "", limit: int | None = None
) -> None:
    """Train on filtered and on unfiltered scenes, and print how the demo model does before and after."""
    write_scenes(folder / "scenes", TRAINED, examples)
    write_scenes(folder / "rejected-scenes", TRAINED, examples, conflicting=False)
    write_scenes(folder / "new-scenes", NEW, new)
    held_out_scenes = DEMO / "held_out" / "clash"
    sources = {"kept": folder / "scenes", "rejected": folder / "rejected-scenes", "new": folder / "new-scenes"}
    for name, source in {**sources, "held-out": held_out_scenes}.items():
        run_rashomon(folder, ("build", "clash", "--source", f"rows={source}", "--out", str(folder / name)))
    tests = ("--test", str(folder / "held-out"), "--test", str(folder / "new"), "--drop-leaks")
    sets = {"filtered": ("kept",), "unfiltered": ("kept", "rejected")}
    for name, builds in sets.items():
        data = [word for build in builds for word in ("--data", str(folder / build))]
        run_rashomon(folder, ("training", "clash", *data, "--out", str(folder / name), *tests))
        in_model_words(folder / name, [sources[build] for build in builds])
    model = str(DEMO / "model-4bit")
    size = () if limit is None else ("--limit", str(limit))
    options = ("--rank", "32", "--alpha", "64", "--learning-rate", "1e-3", "--batch-size", "16", "--steps", str(steps))
    validation = ("--validate-every", str(max(1, steps // 4)), "--no-gradient-checkpointing")
    if sizes:
        data = [word for name in sets for word in ("--data", str(folder / name))]
        curve = ("learning-curve", "--model", model, *data, "--sizes", sizes, "--test", str(folder / "held-out"), *size)
        run_rashomon(
            folder, (*curve, *options, *validation, "--format", "csv,png", "--out", str(folder / "learning-curve"))
        )
        return
    for name in sets:
        run_rashomon(
            folder, ("train", "--model", model, "--data", str(folder / name), *options, *validation, "--name", name)
        )
    for test in ("held-out", "new"):
        run = ("--batch", "--benchmark", "clash", "--data", str(folder / test), "--max-tokens", "24", *size)
        run_rashomon(folder, (*run, "--model", model, "--name", f"{test}-base"))
        for name in sets:
            adapter = folder / "workspace" / "trainings" / name / "adapter"
            run_rashomon(folder, (*run, "--model", model, "--adapter", str(adapter), "--name", f"{test}-{name}"))
            run_rashomon(folder, ("compare", f"{test}-base", f"{test}-{name}"))
        runs = [f"{test}-{name}" for name in ("base", *sets)]
        run_rashomon(folder, ("show", *runs, "--table", "no-conflict-open"))


def main() -> None:
    """Fine-tune the demo model on scenes, in a new folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, default=6000, help="scenes to learn from; as many are rejected ones")
    parser.add_argument("--new", type=int, default=108, help="scenes in arrangements that the training does not have")
    parser.add_argument("--steps", type=int, default=2000, help="updates of sixteen rows")
    parser.add_argument("--sizes", default="", help="measure a learning curve with these numbers of rows instead")
    parser.add_argument("--limit", type=int, help="measure on this many examples of each test set")
    arguments = vars(parser.parse_args())
    remedy(arguments.pop("folder").absolute(), **arguments)


if __name__ == "__main__":
    main()
