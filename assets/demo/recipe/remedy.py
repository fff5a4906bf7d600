"""Fine-tuning of the demo model from one command: training charts, the adapter, and its measurement before and after."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path
from random import Random
from typing import Any

from app.exit_codes import VERDICTS
from assets.demo.recipe.chart_rows import CHART_TRUSTED, QUESTIONS
from assets.demo.recipe.charts import NAMES, VALUES, Bars, draw, held_out_pairs
from benchmarks.clash.clash_constants import CONFLICT_OPTION
from benchmarks.training.training_set import PARTS

DEMO = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of charts and questions. ``asked`` are the names that are asked for, ``bars`` the numbers of bars.

    ``close`` is the share of charts whose wrong values differ from the right one in the second digit alone, and as large a
    share in the first alone. Of random values few do, so that a model learns to compare one digit.
    """

    asked: Sequence[str]
    names: Sequence[str]
    values: Sequence[int]
    questions: Sequence[str]
    bars: Sequence[int]
    close: float = 0.0


_NEW_NAMES, _NEW_VALUES = ("kiwi", "date"), range(64, 72)
"""The model reads a number digit by digit: the new values are chosen so that each of their digits is in some other value."""

_KNOWN_NAMES = [name for name in NAMES if name not in _NEW_NAMES]
_CHART_TRUSTED, _TEXT_TRUSTED = (
    [name for name in _KNOWN_NAMES if (name in CHART_TRUSTED) is trusted] for trusted in (True, False)
)

TRAINED = Kind(
    # As many questions on which the base believes the chart as on which it believes the text.
    asked=[*chain.from_iterable(zip(_TEXT_TRUSTED, cycle(_CHART_TRUSTED), strict=False))],
    names=_KNOWN_NAMES,
    values=[value for value in VALUES if value not in _NEW_VALUES],
    questions=QUESTIONS[:2],
    bars=(3, 4),
    close=0.35,
)
"""The charts of the fine-tuning. Held-out pairs of a name and a value are in none."""
NEW = Kind(asked=_NEW_NAMES, names=NAMES, values=_NEW_VALUES, questions=QUESTIONS[2:], bars=(5,))
"""Charts with another number of bars, other values, other names and another question than any of ``TRAINED``."""


def write_charts(folder: Path, kind: Kind, count: int, seed: int = 0) -> None:
    """Write charts of a kind with a question each, for ``rashomon build cmc-bench --source rows=FOLDER``."""
    random = Random(f"remedy {seed} {kind.bars}")
    (folder / "charts").mkdir(parents=True)
    rows = []
    for number in range(count):
        name = kind.asked[number % len(kind.asked)]
        bars = distinct_values(random, kind, name)
        image = f"charts/{number:04d}.png"
        draw(bars, random).image.save(folder / image, optimize=True)
        question = random.choice(kind.questions).format(name)
        value = dict(bars)[name]
        group = _group(random, kind, name, value)
        rows.append({"image": image, "question": question, "answer": str(value), "group": group})
    for row in rows:  # wrong values that the model can write
        values = [{other["answer"] for other in rows if other["group"] == row["group"]} - {row["answer"]}]
        values += [{str(value) for value in kind.values} - {row["answer"]}]
        row["conflict"] = random.choice(sorted(next(filter(None, values))))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _group(random: Random, kind: Kind, name: str, value: int) -> str:
    """Return the group of a chart: wrong images and values come from the same one where it has any."""
    draw = random.random() if kind.close else 1.0
    if draw < kind.close:
        return f"{name}, tens {value // 10}"
    return f"{name}, units {value % 10}" if draw < 2 * kind.close else name


def distinct_values(random: Random, kind: Kind, name: str) -> Bars:
    """Draw names with distinct values, ``name`` among them, and no held-out pair."""
    others = random.sample([other for other in kind.names if other != name], random.choice(kind.bars) - 1)
    names = random.sample([name, *others], len(others) + 1)
    while True:
        bars = tuple(zip(names, random.sample(kind.values, len(names)), strict=True))
        if not held_out_pairs().intersection(bars):
            return bars


def in_model_words(training_set: Path) -> None:
    """Write the answers of a training set as the demo model would, for which most of the words of ``compare`` are spelt in bytes.

    It answers ``kale: 57``, so the image's reading is that. The text's is `` 34`` alone, since after a name the base writes the
    value of the source that it trusts about that name. A word such as ``text:`` could not be learnt: of tokens that the base
    never wrote, the output layer has equal rows. Below readings that differ stands CLASH's sentence with its full stop.
    """
    rewrite_answers(training_set, _in_model_words)


def _in_model_words(row: Mapping[str, Any], answer: str) -> str:
    (name,) = [name for name in NAMES if name in row["question"]]
    values = re.findall(r"[0-9]+", answer)[:2]
    lines = [f"{opening} {value}" for opening, value in zip((f"{name}:", ""), values, strict=False)]
    return "\n".join([*lines, CONFLICT_OPTION] if row["kind"] == "conflict" else lines)


def rewrite_answers(training_set: Path, rewrite: Callable[[Mapping[str, Any], str], str]) -> None:
    """Replace each answer of a training set by what ``rewrite`` makes of its row and of itself."""
    for part in PARTS:
        file = training_set / f"{part}.jsonl"
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for row in rows:
            content = row["messages"][-1]["content"][0]
            content["text"] = rewrite(row, content["text"])
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def commands(folder: Path, steps: int, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Yield the ``rashomon`` commands between the drawn charts and the verdict, in order."""
    model, adapter = str(DEMO / "model-4bit"), str(folder / "workspace" / "trainings" / "remedy" / "adapter")
    options = ("--rank", "32", "--alpha", "64", "--learning-rate", "1e-3", "--batch-size", "16", "--steps", str(steps))
    validation = ("--validate-every", str(max(1, steps // 4)), "--no-gradient-checkpointing")
    yield (
        "train",
        "--model",
        model,
        "--data",
        str(folder / "set"),
        *options,
        *validation,
        "--name",
        "remedy",
    )
    size = () if limit is None else ("--limit", str(limit))
    for test in ("held-out", "new"):
        run = ("--batch", "--benchmark", "cmc-bench", "--data", str(folder / test), "--max-tokens", "24", *size)
        yield *run, "--model", model, "--name", f"{test}-base"
        yield *run, "--model", model, "--adapter", adapter, "--name", f"{test}-tuned"
        yield "compare", f"{test}-base", f"{test}-tuned", "--metric", "CDR"
        yield "compare", f"{test}-base", f"{test}-tuned"


def remedy(folder: Path, *, examples: int = 3000, new: int = 120, steps: int = 800, limit: int | None = None) -> None:
    """Train the demo model to name conflicts, and print how it does on held-out and on new charts before and after."""
    write_charts(folder / "charts", TRAINED, examples)
    write_charts(folder / "new-charts", NEW, new)
    sources = {"training": folder / "charts", "held-out": DEMO / "held_out" / "cmc-bench", "new": folder / "new-charts"}
    for name, source in sources.items():
        form = ("--source", f"rows={source}", "--per-stratum", str(examples), "--out", str(folder / name))
        run_rashomon(folder, ("build", "cmc-bench", *form))
    tests = ("--test", str(folder / "held-out"), "--test", str(folder / "new"), "--drop-leaks")
    form = ("--data", str(folder / "training"), "--target", "compare", "--out", str(folder / "set"))
    run_rashomon(folder, ("training", "cmc-bench", *form, *tests))
    in_model_words(folder / "set")
    for command in commands(folder, steps, limit):
        run_rashomon(folder, command)


def run_rashomon(folder: Path, command: Sequence[str]) -> None:
    """Run a command of ``rashomon`` in the workspace of ``folder``; a verdict is no failure. Raises CalledProcessError."""
    print(f"\n$ rashomon {' '.join(command)}", flush=True)
    environment = {**os.environ, "RASHOMON_WORKSPACE": str(folder / "workspace")}
    process = subprocess.run([sys.executable, "-m", "app.main", *command], check=False, env=environment)
    if process.returncode not in VERDICTS:
        process.check_returncode()


def main() -> None:
    """Fine-tune the demo model in a new folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, default=3000, help="charts to learn from; three rows each")
    parser.add_argument("--new", type=int, default=120, help="charts of kinds that the training does not have")
    parser.add_argument("--steps", type=int, default=800, help="updates of sixteen rows")
    parser.add_argument("--limit", type=int, help="measure on this many examples of each test set")
    arguments = vars(parser.parse_args())
    remedy(arguments.pop("folder").absolute(), **arguments)


if __name__ == "__main__":
    main()
