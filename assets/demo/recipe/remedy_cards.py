"""Fine-tuning of the demo model on price cards, in the form of CrossCheck-Bench: training, measured before and after."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from assets.demo.recipe.charts import NAMES, SIZE, Bars
from assets.demo.recipe.remedy import DEMO, NEW, TRAINED, Kind, distinct_values, rewrite_answers, run_rashomon
from benchmarks.stats.intervals import wilson

_COLOURS = ((66, 114, 181), (221, 132, 82), (85, 168, 104), (196, 78, 82), (129, 114, 178))


@dataclass(frozen=True, slots=True)
class Wordings:
    """The wordings of the three tasks: reading a price, comparing it with a listing, and checking it against a rule."""

    read: Sequence[str]
    compare: Sequence[str]
    comply: Sequence[str]


TRAINED_WORDINGS = Wordings(
    (
        "What is the price of {}?",
        "Which price is shown for {}?",
        "What does {} cost?",
        "How high is the price of {} on the card?",
        "Please read out {} for me.",
        "Tell me what is asked for {} here.",
        "What must I pay for {}?",
        "Which amount stands beside {}?",
        "Name the price of {}.",
        "For how much does {} sell?",
    ),
    (
        "Does the listing of {} match?",
        "Is {} listed as shown?",
        "Is the listing right about {}?",
        "Does the card show {} as listed?",
        "Has {} the price of the listing?",
        "Are card and listing the same for {}?",
        "Did the listing get {} right?",
        "Is the price of {} as listed?",
        "Would you say that {} is listed correctly?",
        "Can the listing of {} be trusted?",
    ),
    (
        "Does {} comply?",
        "Is {} within the rule?",
        "Does the rule allow {}?",
        "Is the price of {} permitted?",
        "Can {} stay on sale?",
        "Would {} pass the rule?",
        "Is {} cheap enough for the rule?",
        "Does the price of {} keep to the rule?",
        "Should {} be let through?",
        "Is it fine to sell {} at this price?",
    ),
)
NEW_WORDINGS = Wordings(
    ("How much is {} here?",),
    ("Do listing and card agree on {}?",),
    ("May {} be sold?",),
)
TESTS = {
    "held-out": (TRAINED, TRAINED_WORDINGS),
    "new": (replace(NEW, asked=TRAINED.asked), NEW_WORDINGS),
    "new-names": (NEW, NEW_WORDINGS),
}
"""Test cards: of the trained kind; with more rows, other prices and other questions; and these about names never trained."""
_LIMITS = (30, 50, 80)
_CLOSED = {"options": ["Yes", "No"]}
"""The options of questions that compare: a letter in brackets is a token that the model can write, unlike Yes and No."""


def draw_card(prices: Bars, random: Random) -> Any:
    """Draw a price card: a row for each product, with its name, a tag of its brand's colour, and its price."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(random.choice((11, 12)))
    ink = (random.randint(0, 50),) * 3
    image = Image.new("RGB", (SIZE, SIZE), (random.choice((255, 250, 244)),) * 3)
    pen = ImageDraw.Draw(image)
    top, bottom = random.randint(1, 5), SIZE - random.randint(1, 5)
    pitch = (bottom - top) / len(prices)
    height, end = min(pitch, 22) * random.uniform(0.55, 0.85), random.randint(48, 72)
    colour = random.choice(_COLOURS)
    for number, (name, price) in enumerate(prices):
        middle = top + pitch * (number + 0.5)
        pen.rectangle((34, round(middle - height / 2), end, round(middle + height / 2)), fill=colour)
        baseline = round(middle) + 4
        pen.text((2, baseline), name, font=font, fill=ink, anchor="ls")
        pen.text((end + 3, baseline), str(price), font=font, fill=ink, anchor="ls")
    return image


def write_cards(folder: Path, kind: Kind, wordings: Wordings, count: int, *, part: str) -> None:
    """Write cards with a question each, for ``rashomon build crosscheck-bench --source rows=FOLDER``.

    Of four questions one reads a price, two compare it with a listing, which is wrong in one of them, and one checks it
    against a rule, which it breaks every other time. Of the wrong listings a third differ in the first digit alone, a third
    in the second alone.
    """
    random = Random(f"remedy cards {part}")
    (folder / "cards").mkdir(parents=True)
    lines = []
    for number in range(count):
        name = random.choice(kind.asked)
        prices = distinct_values(random, kind, name)
        image = f"cards/{number:04d}.png"
        draw_card(prices, random).save(folder / image, optimize=True)
        row = _question(random, kind, wordings, name, dict(prices)[name], number)
        lines.append(json.dumps({**row, "frames": [image], "prices": dict(prices)}) + "\n")
    (folder / "rows.jsonl").write_text("".join(lines), "utf-8")


def _question(random: Random, kind: Kind, wordings: Wordings, name: str, price: int, number: int) -> dict[str, Any]:
    agrees = number // 4 % 2 == 0
    if number % 4 == 0:
        question = random.choice(wordings.read).format(name)
        return {"task": "PMO", "question": question, "answer": f"{name}: {price}"}
    if number % 4 == 1:
        below = [limit for limit in _LIMITS if limit // 10 < price // 10]
        above = [limit for limit in _LIMITS if limit // 10 > price // 10]
        broken = bool(below) and (not above or not agrees)
        limit = random.choice(below if broken else above)
        row = {"task": "BC", "question": random.choice(wordings.comply).format(name), "text": f"Rule: at most {limit}."}
        return {**row, **_CLOSED, "answer": "B" if broken else "A", "conflict_type": "rule" if broken else ""}
    agrees = number % 4 == 2
    listed = price if agrees else _wrong(random, kind, price)
    row = {"task": "SP", "question": random.choice(wordings.compare).format(name), "text": f"Listing: {listed}"}
    return {**row, **_CLOSED, "answer": "A" if agrees else "B", "conflict_type": "" if agrees else "price"}


def _wrong(random: Random, kind: Kind, price: int) -> int:
    """Return another price, for a third of the cards with the same first digit, for a third with the same second one."""
    others = [value for value in kind.values if value != price]
    alike = random.choice((lambda value: value // 10 == price // 10, lambda value: value % 10 == price % 10, bool))
    return random.choice([value for value in others if alike(value)] or others)


def in_model_words(training_set: Path, cards: Path) -> None:
    """Put what the card and the text say before each letter: ``kale: 57``, `` 34``, and below these ``(B)``.

    ``(A)`` follows on the same line. So the model decides where it does on charts: after the second reading it ends its answer
    if both agree, and begins a line if not.
    """
    rows = [json.loads(line) for line in (cards / "rows.jsonl").read_text("utf-8").splitlines()]
    prices = {hashlib.sha256((cards / row["frames"][0]).read_bytes()).hexdigest(): row["prices"] for row in rows}

    def rewrite(row: Mapping[str, Any], answer: str) -> str:
        if answer not in ("A", "B"):
            return answer
        (name,) = [name for name in NAMES if name in row["question"]]
        prompt = "".join(part.get("text", "") for part in row["messages"][0]["content"])
        (stated,) = re.findall(r"(?:Listing: |at most )([0-9]+)", prompt)
        verdict = "(A)" if answer == "A" else "\n(B)"
        return f"{name}: {prices[row['image_digests'][0]][name]}\n {stated}{verdict}"

    rewrite_answers(training_set, rewrite)


def add_charts(training_set: Path, charts: Path) -> None:
    """Add rows of another training set, half as many as there are, so that what these taught is not unlearnt."""
    own = training_set / "train.jsonl"
    rows = own.read_text("utf-8").splitlines(keepends=True)
    others = (charts / "train.jsonl").read_text("utf-8").splitlines(keepends=True)
    added = Random("remedy cards charts").sample(others, min(len(others), len(rows) // 2))
    shown_or_own = (json.loads(row)[key] for row in added for key in ("images", "own_images"))
    for image in {image for images in shown_or_own for image in images}:
        shutil.copyfile(charts / image, training_set / image)
    own.write_text("".join([*rows, *added]), "utf-8")


def repeat_rare(training_set: Path) -> None:
    """Repeat the rows of which there are too few: these are the last to be learnt.

    Rows whose prices differ in the last digit alone come twice; rows about a price with a first digit that few prices have,
    as often as brings it to the frequency of the others.
    """
    file = training_set / "train.jsonl"
    rows = file.read_text("utf-8").splitlines(keepends=True)
    first_digits = Counter(str(value)[0] for value in TRAINED.values)
    repeated = []
    for row in rows:
        answer = json.loads(row)["messages"][-1]["content"][0]["text"]
        close = re.search(r" (\d)\d\n \1\d\n\(B\)", answer) is not None
        (digit,) = re.findall(r"^\w+: (\d)", answer)
        repeated += [row] * (close + math.ceil(10 / first_digits[digit]) - 1)
    file.write_text("".join([*rows, *repeated]), "utf-8")


def write_sets(folder: Path, examples: int, tests: int) -> None:
    """Draw the cards, and write the training set and the builds of the tests, none of which it has."""
    write_cards(folder / "cards", TRAINED, TRAINED_WORDINGS, examples, part="training")
    sources = {"training": "cards"}
    for test, (kind, wordings) in TESTS.items():
        sources[test] = f"{test}-cards"
        write_cards(folder / sources[test], kind, wordings, tests, part=test)
    for name, source in sources.items():
        form = ("--source", f"rows={folder / source}", "--out", str(folder / name))
        run_rashomon(folder, ("build", "crosscheck-bench", *form))
    leaks = [word for test in TESTS for word in ("--test", str(folder / test))]
    training = ("--data", str(folder / "training"), "--limit", str(examples), "--out", str(folder / "set"))
    run_rashomon(folder, ("training", "crosscheck-bench", *training, *leaks, "--drop-leaks"))
    in_model_words(folder / "set", folder / "cards")
    repeat_rare(folder / "set")


def remedy(
    folder: Path,
    *,
    charts: Path | None = None,
    examples: int = 8000,
    tests: int = 240,
    steps: int = 1500,
    limit: int | None = None,
) -> None:
    """Train the demo model on cards, and print how it does on held-out and on new ones before and after.

    ``charts`` is the folder of the charts' fine-tuning: its adapter, which can compare, is fused into the model first, and
    some of its rows are learnt again.
    """
    write_sets(folder, examples, tests)
    model, adapter = str(DEMO / "model-4bit"), str(folder / "workspace" / "trainings" / "cards" / "adapter")
    if charts is not None:
        add_charts(folder / "set", charts / "set")
        start = str(charts / "workspace" / "trainings" / "remedy" / "adapter")
        run_rashomon(folder, ("models", "fuse", model, "--adapter", start, "--to", str(folder / "charts-model")))
        model = str(folder / "charts-model")
    options = ("--rank", "32", "--alpha", "64", "--learning-rate", "1e-3", "--batch-size", "16", "--steps", str(steps))
    validation = ("--warmup", "0.1", "--validate-every", str(steps), "--no-gradient-checkpointing")
    train = ("train", "--model", model, "--data", str(folder / "set"), "--name", "cards")
    run_rashomon(folder, (*train, *options, *validation))
    size = () if limit is None else ("--limit", str(limit))
    for test in TESTS:
        run = ("--batch", "--benchmark", "crosscheck-bench", "--data", str(folder / test), "--model", model)
        run = (*run, "--max-tokens", "24", "--temperature", "0", *size)
        run_rashomon(folder, (*run, "--name", f"{test}-base"))
        run_rashomon(folder, (*run, "--adapter", adapter, "--name", f"{test}-tuned"))
        run_rashomon(folder, ("compare", f"{test}-base", f"{test}-tuned"))
        for part in ("base", "tuned"):
            print("\n".join(_shares(folder, f"{test}-{part}")))
        run_rashomon(folder, ("show", f"{test}-base", f"{test}-tuned", "--table", "interventions"))


def _shares(folder: Path, run: str) -> Iterator[str]:
    """Yield how many answers of a run are right, by task and by whether the card conflicts with the text."""
    export = folder / "export" / run
    run_rashomon(folder, ("export", run, "--format", "json", "--out", str(export)))
    right: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for file in export.rglob("samples*.jsonl"):
        for sample in map(json.loads, file.read_text("utf-8").splitlines()):
            (verdict, *_) = sample["verdicts"].values()
            kind = "conflict" if "conflict" in sample["strata"] else "no conflict"
            for key in (kind, f"{sample['strata']['task']}, {kind}"):
                count[key] += 1
                right[key] += verdict["label"] == "CORRECT"
    for key in sorted(count):
        share = wilson(right[key], count[key])
        yield f"{run}, {key}: {right[key]} of {count[key]} right ({share.low:.1%} to {share.high:.1%})"


def main() -> None:
    """Fine-tune the demo model on cards, in a new folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--charts", type=Path, help="a folder of the charts' fine-tuning to start from")
    parser.add_argument("--examples", type=int, default=8000, help="cards to learn from")
    parser.add_argument("--tests", type=int, default=240, help="cards of each of the three test sets")
    parser.add_argument("--steps", type=int, default=1500, help="updates of sixteen rows")
    parser.add_argument("--limit", type=int, help="measure on this many of each test set")
    arguments = vars(parser.parse_args())
    remedy(arguments.pop("folder").absolute(), **arguments)


if __name__ == "__main__":
    main()
