"""Training sets with planted test data of eight kinds among clean rows that look alike, and what a check makes of them."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import LeakReport
from benchmarks.training.training_set import TrainingSet
from benchmarks.training.write_training_set import drop_rows, write_training_set
from benchmarks.training_rows import TrainingOptions

Row = dict[str, Any]
Picture = Image.Image

RENAMED, ENCODED, RESIZED, CROPPED = "renamed", "encoded anew", "resized", "cropped"
REWORDED, TEXT_ONLY, ID_ONLY, ELSEWHERE = "in other words", "text only", "id only", "elsewhere"
KINDS: Mapping[str, str] = {
    RENAMED: "the row, its picture renamed",
    ENCODED: "its picture encoded anew",
    RESIZED: "its picture resized",
    CROPPED: "its picture cropped",
    REWORDED: "the row in other words",
    TEXT_ONLY: "the text-only prompt, without its id",
    ID_ONLY: "its id, without its picture and in other words",
    ELSEWHERE: "its picture in another question, or as the wrong one of a conflict",
}
"""The kinds of planted test data. The last three are rows of a set made elsewhere; the others are rows of a table."""

_QUESTIONS = ("What is the total?", "How many orders came in?", "What does the last bar show?", "How much was sold?")
_SENTENCE = "The report for the board gives {} as the figure."
_WORDS = (
    "harbour",
    "orchard",
    "library",
    "foundry",
    "bakery",
    "clinic",
    "museum",
    "depot",
    "vineyard",
    "garage",
    "mill",
)
_VERBS = (
    "counted",
    "sold",
    "shipped",
    "stored",
    "repaired",
    "lent",
    "rejected",
    "weighed",
    "posted",
    "returned",
    "tested",
)


@dataclass(frozen=True)
class Example:
    """A row of a table with its picture."""

    picture: Picture
    question: str
    answer: str
    passage: str = ""

    @property
    def is_template(self) -> bool:
        """Return whether its texts are the same for other examples, apart from the value."""
        return self.question in _QUESTIONS and (not self.passage or self.passage.startswith(_SENTENCE[:10]))


@dataclass
class PlantedSet:
    """A training set with planted rows, the test build, and what each row is."""

    training_set: TrainingSet
    test: Build
    planted: dict[str, str] = field(default_factory=dict)
    """The planted examples of the training set, each with its kind."""
    clean: set[str] = field(default_factory=set)
    """The clean examples."""

    def rows(self) -> list[Row]:
        """Return the rows of the training set with their places."""
        files = [self.training_set.path / f"{part}.jsonl" for part in ("train", "validation")]
        lines = [(f"{f.name}:{n}", line) for f in files for n, line in enumerate(f.read_text().splitlines(), 1)]
        return [{"where": where, **json.loads(line)} for where, line in lines]


@dataclass
class Outcome:
    """The result of a check of a planted set."""

    planted: Counter[str] = field(default_factory=Counter)
    complete: Counter[str] = field(default_factory=Counter)
    """Planted examples by kind, and those of which every row was refused."""
    clean: int = 0
    clean_refused: int = 0
    """Clean examples, and those of which a row without a test's picture was refused."""
    left: list[str] = field(default_factory=list)
    """The rows with test data that are left after the refused ones were dropped."""
    clean_dropped: int = 0
    """Clean examples of which a row without a test's picture was dropped."""


def drawn_chart(number: int) -> Picture:
    """Return a bar chart; charts with other numbers have other bars."""
    rng = random.Random(f"chart {number}")
    image = Image.new("RGB", (240, 180), "white")
    draw = ImageDraw.Draw(image)
    for bar in range(7):
        height, colour = rng.randint(15, 150), tuple(rng.randrange(30, 220) for _ in range(3))
        draw.rectangle((20 + 30 * bar, 165 - height, 42 + 30 * bar, 165), fill=colour)
    return image


def examples(pictures: Sequence[Picture], seed: str, asked: Sequence[tuple[str, str]] = ()) -> list[Example]:
    """Return an example for each picture: in turn with a template's texts, with its own passage, and, if any, ``asked`` of it."""
    rng = random.Random(seed)
    rows = []
    for number, picture in enumerate(pictures):
        value, question = str(rng.randint(100, 160)), rng.choice(_QUESTIONS)
        style = number % (4 if asked else 3)
        if style == 1:
            rows.append(Example(picture, question, value, _SENTENCE.format(value)))
        elif style == 2:
            who, what, where = rng.choice(_WORDS), rng.choice(_VERBS), rng.choice(_WORDS)
            passage = (
                f"In week {rng.randint(1, 52)} the {who} {what} {value} crates for the {where}, as {_name(rng)} wrote."
            )
            rows.append(Example(picture, question, value, passage))
        elif style == 3:
            rows.append(Example(picture, *asked[number]))
        else:
            rows.append(Example(picture, question, value))
    return rows


def _name(rng: random.Random) -> str:
    return "".join(rng.choice(("ka", "lo", "mi", "ru", "ten", "vas", "bor", "eli")) for _ in range(4)).capitalize()


def plant(folder: Path, tests: Sequence[Example], clean: Sequence[Example], planted: int) -> PlantedSet:
    """Write a test build of ``tests``, and a training set of ``clean`` rows with test data planted among them."""
    test = _build(folder / "test", [(example, "") for example in tests])
    own = [example for example in tests if not example.is_template]
    kinds = [list(KINDS)[number % len(KINDS)] for number in range(planted)]
    of_table = [(example, kind) for example, kind in zip(tests, kinds, strict=False) if kind in _CHANGES]
    build = _build(folder / "train", [*((example, "") for example in clean), *of_table])
    benchmark, out = get_benchmark("cmc-bench"), folder / "set"
    training_set = write_training_set(benchmark, [build], out, TrainingOptions(), 0.1).put_in_place()
    groups = groups_of(build)
    result = PlantedSet(training_set, test, clean=set(groups[: len(clean)]))
    result.planted = dict(zip(groups[len(clean) :], (kind for _, kind in of_table), strict=True))
    rows, extra = result.rows(), []
    test_groups = groups_of(test)
    for number, kind in enumerate(kinds):
        name = f"planted {number}"
        if kind == TEXT_ONLY:
            group = test_groups[tests.index(own[number // len(KINDS) % len(own)])]
            text = next(i for i in benchmark.instances(test, "paper") if i.id == f"{group}/text-only/right")
            extra.append(_row(name, [text.parts[0].text], text.references["text"][0]))  # type: ignore[union-attr]
        elif kind == ID_ONLY:
            extra.append(_row(name, ["Say the figure of the plot."], tests[number].answer, group=test_groups[number]))
        elif kind == ELSEWHERE:
            file = f"images/planted-{number}.png"
            (out / file).write_bytes(_encoded(tests[number].picture))
            if number // len(KINDS) % 2:
                victim = next(row for row in rows if row["group"] in result.clean and row["images"])
                texts, more = ["Is the figure below 90?"], {"group": victim["group"], "own_images": victim["images"]}
            else:
                texts, more = ["Which colour does the first bar have?"], {"group": f"other {number}"}
            extra.append(_row(name, texts, "The image and the text disagree.", [file], **more))
        else:
            continue
        result.planted[name] = kind
    with (out / "train.jsonl").open("a") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in extra)
    result.training_set = TrainingSet.open(out)
    return result


def groups_of(build: Build) -> list[str]:
    """Return the examples of a build in the order of its table."""
    return [row.group for row in sorted(build.built_rows(), key=lambda row: int(row.row.rpartition(":")[2]))]


def examine(planted: PlantedSet, check: Callable[[PlantedSet], LeakReport]) -> Outcome:
    """Check a planted set, drop what is refused, and return what was right and wrong."""
    outcome = Outcome(clean=len(planted.clean))
    rows = planted.rows()
    test_pictures = {image for row in rows if row["group"] in planted.planted for image in row["images"]} & {
        image
        for row in rows
        if row["group"] in planted.planted and row.get("condition") in ("aligned", "image-only")
        for image in row["images"]
    }
    report = check(planted)
    refused = set(report.refused_rows)
    owner = {row["where"]: row.get("id") if row.get("id") in planted.planted else row["group"] for row in rows}
    outcome.planted.update(planted.planted.values())
    for name, kind in planted.planted.items():
        outcome.complete[kind] += all(where in refused for where in owner if owner[where] == name)
    innocent = [
        row["where"] for row in rows if owner[row["where"]] in planted.clean and not test_pictures & {*row["images"]}
    ]
    outcome.clean_refused = len({owner[where] for where in innocent if where in refused})
    guilty = {row["id"] for row in rows if row["where"] not in innocent}
    drop_rows(planted.training_set, report.refused_rows)
    after = {row["id"] for row in planted.rows()}
    outcome.left = sorted(guilty & after)
    outcome.clean_dropped = len(
        {owner[row["where"]] for row in rows if row["where"] in innocent and row["id"] not in after}
    )
    return outcome


def _recoded(picture: Picture) -> bytes:
    return _encoded(picture, "JPEG", quality=60)


def _halved(picture: Picture) -> bytes:
    return _encoded(picture.resize((picture.width // 2, picture.height // 2)))


def _cropped(picture: Picture) -> bytes:
    width, height = picture.size
    return _encoded(picture.crop((width // 25, height // 25, width, height)))


def _encoded(picture: Picture, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    picture.save(data, kind, **options)
    return data.getvalue()


_CHANGES: Mapping[str, Callable[[Picture], bytes]] = {
    RENAMED: _encoded,
    ENCODED: _recoded,
    RESIZED: _halved,
    CROPPED: _cropped,
    REWORDED: _encoded,
}


def _build(folder: Path, rows: Sequence[tuple[Example, str]]) -> Build:
    """Build a table of examples; each of a kind is changed as the kind says."""
    source = folder / "table"
    source.mkdir(parents=True)
    lines = []
    for number, (example, kind) in enumerate(rows):
        image = f"{number}.jpg" if kind == ENCODED else f"{number}.png"
        (source / image).write_bytes(_CHANGES.get(kind, _encoded)(example.picture))
        row = {"image": image, "question": example.question, "answer": example.answer}
        if kind == REWORDED:
            row["question"] = f"Please read it off: {example.question.lower()}"
        elif example.passage:
            row["passage"] = example.passage
        lines.append(json.dumps(row) + "\n")
    (source / "rows.jsonl").write_text("".join(lines))
    return get_benchmark("cmc-bench").build([("rows", str(source))], folder / "build", BuildOptions())


def _row(name: str, texts: Sequence[str], answer: str, images: Sequence[str] = (), **more: Any) -> Row:
    content = [*({"type": "image"} for _ in images), *({"type": "text", "text": text} for text in texts)]
    turns = [{"role": "user", "content": content}, {"role": "assistant", "content": answer}]
    return {"images": list(images), "messages": turns, "id": name, "group": "", "kind": "no conflict", **more}
