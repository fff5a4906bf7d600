"""Fine-tuning of the demo model on scenes, CLASH's way: filtered against unfiltered rows, measured before and after."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Literal

from assets.demo.recipe.remedy import DEMO, rewrite_answers, run_rashomon
from assets.demo.recipe.scenes import COLOURS, RELATIONS, SHAPES, Sample, Scene, caption, draw_scene, sample
from assets.demo.recipe.scenes import held_out_things as held_out
from benchmarks.clash.constants import CONFLICT_OPTION

_OPPOSITE = dict(zip(RELATIONS, (RELATIONS[1], RELATIONS[0], RELATIONS[3], RELATIONS[2]), strict=True))
_CHANGES: tuple[Literal["object", "attribute"], ...] = ("object", "attribute")


@dataclass(frozen=True, slots=True)
class SceneKind:
    """A kind of scenes. ``asked`` are words of which the thing that is asked about has at least one; empty for any thing."""

    colours: Sequence[str]
    shapes: Sequence[str]
    relations: Sequence[str]
    asked: Sequence[str] = ()


_NEW_WORDS = ("purple", "cross")

TRAINED = SceneKind(
    [colour for colour in COLOURS if colour not in _NEW_WORDS],
    [shape for shape in SHAPES if shape not in _NEW_WORDS],
    RELATIONS[:2],
)
"""The scenes of the fine-tuning. Held-out pairs of a colour and a shape are in none."""
NEW = SceneKind([*COLOURS], SHAPES, RELATIONS[2:], asked=_NEW_WORDS)
"""Scenes with a colour or a shape that is asked for, and with an arrangement, that ``TRAINED`` does not have."""


def write_scenes(folder: Path, kind: SceneKind, count: int, *, conflicting: bool = True, seed: int = 0) -> None:
    """Write scenes of a kind with two captions and a question each, for ``rashomon build clash --source rows=FOLDER``.

    Without ``conflicting``, the second caption only puts the first one otherwise, so that the samples are what CLASH's filter
    is there to reject.
    """
    random = Random(f"remedy scenes {seed} {kind.relations} {conflicting}")
    (folder / "scenes").mkdir(parents=True)
    lines = []
    for number in range(count):
        scene, drawn = _sample(random, kind, _CHANGES[number % 2])
        image = f"scenes/{number:04d}.png"
        draw_scene(scene, random).image.save(folder / image, optimize=True)
        row = {name: value for name, value in asdict(drawn).items() if name not in ("change", "changed", "followed")}
        if not conflicting:
            row["conflicting_caption"] = caption(Scene(scene.things[::-1], _OPPOSITE[scene.relation]))
        row |= {"image": image, "change_type": drawn.change}
        row |= {"changed_original": drawn.changed[0], "changed_conflicting": drawn.changed[1]}
        lines.append(json.dumps(row) + "\n")
    (folder / "rows.jsonl").write_text("".join(lines), "utf-8")


def _sample(random: Random, kind: SceneKind, change: Literal["object", "attribute"]) -> tuple[Scene, Sample]:
    known = {*kind.colours, *kind.shapes}
    while True:
        colours, shapes = random.sample(kind.colours, 2), random.sample(kind.shapes, 2)
        first, second = zip(colours, shapes, strict=True)
        scene = Scene((first, second), random.choice(kind.relations))
        index = random.randrange(2)
        if held_out() & {*scene.things} or (kind.asked and not {*scene.things[index]} & {*kind.asked}):
            continue
        drawn = sample(random, scene, index, change)
        if drawn.changed[1] in known:
            return scene, drawn


def in_model_words(training_set: Path) -> None:
    """Give the conflict sentence of a training set its full stop, with which it is one token of the demo model."""
    rewrite_answers(training_set, lambda row, answer: CONFLICT_OPTION if row["kind"] == "conflict" else answer)


def remedy(
    folder: Path, *, examples: int = 1500, new: int = 54, steps: int = 300, sizes: str = "", limit: int | None = None
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
        in_model_words(folder / name)
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
    parser.add_argument("--examples", type=int, default=1500, help="scenes to learn from; as many are rejected ones")
    parser.add_argument("--new", type=int, default=54, help="scenes of kinds that the training does not have")
    parser.add_argument("--steps", type=int, default=300, help="updates of sixteen rows")
    parser.add_argument("--sizes", default="", help="measure a learning curve with these numbers of rows instead")
    parser.add_argument("--limit", type=int, help="measure on this many examples of each test set")
    arguments = vars(parser.parse_args())
    remedy(arguments.pop("folder").absolute(), **arguments)


if __name__ == "__main__":
    main()
