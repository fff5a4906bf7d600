"""Verdicts on sixty trainings of the demo model whose effect is known beforehand: ten of each of six kinds.

    python -m tests.performance.training_verdicts FOLDER [--compare-only]

All are about charts whose passage is right and whose picture is another chart's. For the three names that are asked for, the base
believes the picture; the good trainings teach it to believe the passage. What is stored in FOLDER is not repeated, so that
``--compare-only`` judges the stored runs with other code. The truth is written down by kind (``Case.truth``), and checked by
counting the numbers in the answers, without judges and intervals. An optimised BLAS (``LD_PRELOAD``) makes it six times as fast.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from app.engine.training.training_folder import Training
from app.store.run_store import RunStore
from assets.demo.recipe.remedy import DEMO, TRAINED, rewrite_answers, write_charts
from benchmarks.clash.clash_constants import CONFLICT_OPTION
from tests.support.inside import run_inside
from tests.support.trainings import trained_here

WORTH, HARMFUL, NO_GAIN, UNKNOWN = "worth shipping", "harmful", "no worthwhile gain", "not established"
NAMES = ("plum", "lime", "pear")
CONDITIONS, TWO = "aligned,text-correct,both-wrong,image-only", "aligned,text-correct"
RATES = ("0.05", "0.1", "0.3", "0.5", "1", "2", "3", "4", "5", "0.05")
WITHOUT = ("aligned", "image-only")


@dataclass(frozen=True, slots=True)
class Case:
    """A training and its test: ``rows`` to learn from, all if None; ``examples`` to test with, each under all conditions."""

    kind: str
    seed: int
    truth: str
    updates: int
    batch: int = 4
    rate: str = "4e-3"
    rows: int | None = 40
    examples: int = 8
    conditions: str = CONDITIONS
    metric: str = ""

    @property
    def name(self) -> str:
        """The name of its training and of its run."""
        return f"{self.kind.replace(' ', '-')}-{self.seed}"


def cases() -> Iterator[Case]:
    """Yield the sixty trainings, the kinds in turn."""
    for seed in range(10):
        yield Case("good", seed, WORTH, 30 - seed + seed // 2, 8, "2e-3", None, 115, TWO)
        yield Case("random labels", seed, HARMFUL, 18 + seed // 3, rate="1e-2")
        yield Case("swapped labels", seed, HARMFUL, 9 + seed // 3)
        yield Case("high rate", seed, HARMFUL, 5 + seed // 3, rate=RATES[seed])
        yield Case("one class", seed, HARMFUL, 8 + seed // 3, metric="CDR" if seed % 2 else "")
        if seed < 3:
            yield Case("few rows", seed, NO_GAIN, 8 + seed, rate="1e-6", rows=4 + seed, examples=115, conditions=TWO)
        elif seed < 5:
            yield Case("few rows", seed, HARMFUL, 16 + seed, rate="1e-2", rows=2, examples=40)
        else:
            yield Case("few tests", seed, UNKNOWN, 16 + seed, 4, "3e-3", 96, seed - 3)


def learnt_answer(case: Case, row: Mapping[str, Any], answer: str) -> str:
    """Return the answer that a training learns in a row; ``answer`` has each source's value, the text's last."""
    (name,) = (name for name in NAMES if name in row["question"])
    image, text = (values := re.findall(r"\d+", answer))[0], values[-1]
    is_conflict = row["kind"] == "conflict"
    if case.kind == "random labels":
        random = Random(f"{case.seed} {row['id']}")
        return f"{name}: {random.choice(TRAINED.values)}"
    if case.kind == "swapped labels":
        return f"{name}: {image}" if is_conflict else CONFLICT_OPTION
    return CONFLICT_OPTION if case.kind == "one class" else f"{name}: {text}"


class Experiment:
    """The trainings and runs in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open or prepare a folder."""
        self.folder, self.workspace = folder, folder / "workspace"

    def rashomon(self, *arguments: object, codes: Sequence[int] = (0,)) -> tuple[int, str]:
        """Run a command in this process; return its exit code and its output."""
        began, environment = time.perf_counter(), {**os.environ, "RASHOMON_WORKSPACE": str(self.workspace)}
        with trained_here():
            code, out, err = run_inside([*map(str, arguments)], environment, Path.cwd())
        print(f"  {arguments[0]} {arguments[-1]}: {code} in {time.perf_counter() - began:.0f} s", flush=True)
        assert code in codes, f"{arguments}: {code}\n{out[-2000:]}\n{err[-2000:]}"
        return code, (out if arguments[0] == "compare" else f"{out}\n{err}").strip()

    def make_data(self) -> None:
        """Draw charts, and write the test build and the rows with both sources' values as answers."""
        for name, count in (("training", 150), ("test", 120)):
            kind = replace(TRAINED, asked=NAMES)
            write_charts(self.folder / f"{name}-charts", kind, count, seed=len(name))
            source = f"rows={self.folder / f'{name}-charts'}"
            self.rashomon("build", "cmc-bench", "--source", source, "--per-stratum", 999, "--out", self.folder / name)
        options = ("--target", "compare", "--test", self.folder / "test", "--drop-leaks")
        self.rashomon(
            "training", "cmc-bench", "--data", self.folder / "training", *options, "--out", self.folder / "set"
        )
        self.run("base", 999, CONDITIONS)

    def train(self, case: Case) -> None:
        """Train one adapter, and store how the command ended."""
        data, end = self.folder / "sets" / case.name, self.folder / "ends" / f"{case.name}.json"
        if end.exists():
            return
        data.mkdir(parents=True, exist_ok=True)
        for part, most in (("train", case.rows), ("validation", 6)):
            lines = (self.folder / "set" / f"{part}.jsonl").read_text().splitlines(keepends=True)
            lines = [line for line in lines if self._is_usable(case, json.loads(line))]
            Random(case.seed).shuffle(lines)
            (data / f"{part}.jsonl").write_text("".join(lines[:most]))
        if not (data / "images").exists():
            (data / "images").symlink_to(self.folder / "set" / "images")
        rewrite_answers(data, lambda row, answer: learnt_answer(case, row, answer))
        options = ("--batch-size", case.batch, "--steps", case.updates, "--learning-rate", case.rate)
        times = ("--validate-every", -(-case.updates // 3), "--save-every", case.updates, "--seed", case.seed)
        model = ("--model", DEMO / "model-4bit", "--data", data, "--no-gradient-checkpointing")
        done = self.rashomon(
            "train", *model, *options, *times, "--display", "none", "--name", case.name, codes=(0, 3, 5, 6)
        )
        end.parent.mkdir(exist_ok=True)
        end.write_text(json.dumps(done))

    @cached_property
    def _test_texts(self) -> frozenset[tuple[str, str]]:
        lines = (self.folder / "test-charts" / "rows.jsonl").read_text().splitlines()
        return frozenset(
            (row["question"], row[key]) for row in map(json.loads, lines) for key in ("answer", "conflict")
        )

    def _is_usable(self, case: Case, row: Mapping[str, Any]) -> bool:
        """Return whether a training has this row: of one class are conflicts alone, and no text is that of a test."""
        value = re.search(r"the value is (\d+)", json.dumps(row["messages"][0]))
        is_test = value is not None and (row["question"], value[1]) in self._test_texts
        return not is_test and (case.kind != "one class" or row["kind"] == "conflict")

    def run(self, name: str, examples: int, conditions: str, adapter: str = "") -> None:
        """Answer the test data, unless that is done."""
        done = self.folder / "ends" / f"{name}.run"
        if done.exists():
            return
        options = ("--conditions", conditions, "--limit", examples, "--max-tokens", 16, "--name", name)
        using = ("--adapter", self.workspace / "trainings" / name / adapter) if adapter else ()
        data = ("--data", self.folder / "test", "--model", DEMO / "model-4bit", *using)
        self.rashomon("--batch", "--benchmark", "cmc-bench", *data, *options)
        done.parent.mkdir(exist_ok=True)
        done.touch()

    def counts(self, name: str) -> dict[str, tuple[int, int]]:
        """Return how many answers are right of how many: without a conflict, by the passage, and that name the conflict."""
        with RunStore.read(self.workspace / "runs" / name) as store:
            answers = [(record.instance, record.answer.text) for record in store.records() if record.answer]
        right: dict[str, list[bool]] = {"kept": [], "passage": [], "named": []}
        for instance, text in answers:
            values = re.findall(r"\d+", text)
            if instance.condition in WITHOUT:
                right["kept"].append(values[-1:] == [*instance.references["image"][:1]])
            else:
                right["named"].append(CONFLICT_OPTION[:20] in text)
            if instance.condition == "text-correct":
                right["passage"].append(values[-1:] == [*instance.references["text"][:1]])
        return {part: (sum(flags), len(flags)) for part, flags in right.items()}

    def verdict(self, case: Case) -> tuple[str, str, list[str]]:
        """Return the verdict's category and sentences, and the shown losses that these do not mention."""
        metric = ["--metric", case.metric] if case.metric else []
        result = json.loads(self.rashomon("compare", "base", case.name, *metric, "--json")[1])["result"]
        (tuning,), (sentence,) = result["fine_tunings"], result["verdicts"]
        lost = [
            x
            for x in tuning["changes"]
            if x["interval"] and _is_loss(x["interval"], is_lower_better=x["lower_is_better"])
        ]
        losses = re.split(r" (?:It gains|It cannot be|No gain )", sentence)[0]
        return tuning["category"], sentence, [x["part"] for x in lost if x["part"] not in losses]


def _is_loss(interval: Sequence[float], *, is_lower_better: bool) -> bool:
    low, high = interval
    return low > 0 if is_lower_better else high < 0


def main() -> None:
    """Make what is missing, and print a line for each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare-only", action="store_true")
    options = parser.parse_args()
    experiment, lines = Experiment(options.folder.absolute()), []
    if not (experiment.workspace / "runs" / "base").exists():
        experiment.make_data()
    for case in sorted(cases(), key=lambda case: case.examples > 100):
        if not options.compare_only:
            experiment.train(case)
            if (experiment.workspace / "trainings" / case.name / "adapter" / "adapters.safetensors").exists():
                experiment.run(case.name, case.examples, case.conditions, "adapter")
    if options.compare_only:
        for case in cases():
            if not (experiment.workspace / "runs" / case.name).exists():
                continue
            category, sentence, unmentioned = experiment.verdict(case)
            shares = ", ".join(f"{part} {k}/{n}" for part, (k, n) in experiment.counts(case.name).items())
            end = json.loads((experiment.folder / "ends" / f"{case.name}.json").read_text())
            right = "right" if category == case.truth else "WRONG"
            spec = Training.open(experiment.workspace / "trainings" / case.name).spec
            size = f"{spec.steps}x{spec.batch_size}"
            lines.append(f"{right} {case.name} {size}: {case.truth} ({shares}); verdict {category}; exit {end[0]}")
            ending = next((line for line in end[1].splitlines() if " of the base" in line), end[1].splitlines()[-1])
            lines += [f"    {sentence}", f"    {ending}"]
            lines += [f"    UNMENTIONED {part}" for part in unmentioned]
        print("\n".join(lines))


if __name__ == "__main__":
    main()
