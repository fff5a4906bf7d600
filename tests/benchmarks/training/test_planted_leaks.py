"""Test data planted among rows that look alike: all rows of a planted example are refused and dropped, and no clean one."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.build import Build
from benchmarks.errors import SourceError
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import REFUSED, LeakIndex, LeakReport
from benchmarks.training.training_set import TrainingSet
from tests.support.command import Rashomon
from tests.support.planted_leaks import (
    KINDS,
    Example,
    Outcome,
    PlantedSet,
    drawn_chart,
    examine,
    examples,
    groups_of,
    plant,
)

HOSTILE = "ro\x1b[31mws"


def check(planted: PlantedSet) -> LeakReport:
    return LeakIndex([(get_benchmark("cmc-bench"), planted.test)]).compare(planted.training_set)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A set with two planted examples of each kind among 40 clean ones of the same templates, values and style."""
    charts = [drawn_chart(number) for number in range(64)]
    planted = plant(tmp_path_factory.mktemp("planted"), examples(charts[:24], "a"), examples(charts[24:], "b"), 16)
    return examine(planted, check)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_a_planted_example_is_refused(kind: str, outcome: Outcome) -> None:
    assert outcome.planted[kind] == 2
    assert outcome.complete[kind] == 2


def test_clean_rows_that_look_alike_stay_and_no_test_data_does(outcome: Outcome) -> None:
    assert (outcome.clean, outcome.clean_refused, outcome.clean_dropped) == (40, 0, 0)
    assert outcome.left == []


def table(folder: Path, rows: Sequence[tuple[Image.Image, str]], name: str = "rows", kind: str = "PNG") -> Path:
    """Rows about charts with one question, each with its answer."""
    folder.mkdir()
    lines = []
    for number, (chart, answer) in enumerate(rows):
        chart.save(folder / f"{number}.png", kind)
        lines.append(json.dumps({"image": f"{number}.png", "question": "What is the total?", "answer": answer}))
    (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def build(rashomon: Rashomon, source: Path, name: str) -> Path:
    out = source.parent / name
    rashomon.run("build", "cmc-bench", "--source", f"rows={source}", "--out", out)
    return out


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test build of six charts, and a table with two of them as JPEG among six other charts, with values in common."""
    folder = tmp_path_factory.mktemp("home")
    rashomon = Rashomon(folder)
    values = [str(110 + 7 * n) for n in range(6)]
    tests = [(drawn_chart(n), value) for n, value in enumerate(values)]
    own = [(drawn_chart(100 + n), value) for n, value in enumerate(values)]
    build(rashomon, table(folder / "test", tests), "test-build")
    copies = [(Image.open(io.BytesIO(jpeg(chart))), value) for chart, value in tests[:2]]
    build(rashomon, table(folder / "own", [*own, *copies], HOSTILE), "own-build")
    return folder


def jpeg(chart: Image.Image) -> bytes:
    data = io.BytesIO()
    chart.save(data, "JPEG", quality=70)
    return data.getvalue()


def arguments(home: Path, out: Path) -> tuple[str | Path, ...]:
    return ("training", "cmc-bench", "--data", home / "own-build", "--test", home / "test-build", "--out", out)


def test_the_rows_of_a_table_are_named_and_what_they_have(home: Path, tmp_path: Path) -> None:
    refused = Rashomon(home).run(*arguments(home, tmp_path / "set"), code=2)
    assert "a test image encoded anew, resized or cropped" in refused.stderr
    assert "ws.jsonl:7" in refused.stderr
    assert "ws.jsonl:8" in refused.stderr
    assert "\x1b" not in refused.stderr + refused.stdout
    dropped = Rashomon(home).run(*arguments(home, tmp_path / "set"), "--drop-leaks")
    assert "left out: " in dropped.stdout
    assert "\x1b" not in dropped.stderr + dropped.stdout


def test_dropping_leaves_neither_a_row_nor_a_picture_of_a_test(home: Path, tmp_path: Path) -> None:
    Rashomon(home).json(*arguments(home, tmp_path / "set"), "--drop-leaks")
    rows = [row for part in ("train", "validation") for row in TrainingSet.open(tmp_path / "set").rows(part)]
    planted = set(groups_of(Build.open(home / "own-build"))[6:])
    assert {row.group for row in rows}.isdisjoint(planted)
    assert len({row.group for row in rows}) == 6
    images = {file.name for file in (tmp_path / "set" / "images").iterdir()}
    assert images == {path.name for row in rows for path in row.all_images}
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert manifest["rows"]["conflict"] + manifest["rows"]["no conflict"] == len(rows)


def test_a_text_without_its_picture_goes_with_its_example_in_a_part_of_the_set_too(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    unrelated = home / "own-build"
    Rashomon(tmp_path).run("training", "cmc-bench", "--data", unrelated, "--out", out)
    lines = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    texts = [line for line in lines if line["condition"] == "text-only"]
    assert texts
    (out / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in texts))
    (out / "validation.jsonl").unlink(missing_ok=True)
    test = Build.open(home / "test-build")
    report = LeakIndex([(get_benchmark("cmc-bench"), test)]).compare(TrainingSet.open(out))
    planted = set(groups_of(Build.open(unrelated))[6:])
    expected = {f"train.jsonl:{n}" for n, line in enumerate(texts, 1) if line["group"] in planted}
    assert set(report.refused_rows) == expected
    assert {leak.means for leak in report.leaks} <= {"related"}


def test_missing_test_pictures_are_reported(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "test-build", tmp_path / "test-build")
    media = list((tmp_path / "test-build").rglob("*.png"))
    media[0].unlink()
    media[1].write_bytes(b"damaged")
    common = ("training", "cmc-bench", "--data", home / "own-build", "--test", tmp_path / "test-build")
    dropped = Rashomon(tmp_path).run(*common, "--out", tmp_path / "set", "--drop-leaks")
    assert "2 test images are missing or damaged" in dropped.stderr
    assert "build the test data again" in dropped.stderr


def test_a_test_build_that_was_built_again_is_compared_with_as_it_is_now(home: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    first = table(tmp_path / "first", [(drawn_chart(300 + n), str(200 + 9 * n)) for n in range(4)])
    rashomon.run("build", "cmc-bench", "--source", f"rows={first}")
    common = ("training", "cmc-bench", "--data", home / "own-build")
    rashomon.run(*common, "--out", tmp_path / "set")
    again = table(tmp_path / "again", [(drawn_chart(100 + n), str(200 + 9 * n)) for n in range(4)])
    rashomon.run("build", "cmc-bench", "--source", f"rows={again}", "--replace")
    model = Path(__file__).resolve().parents[3] / "assets" / "demo" / "model-4bit"
    refused = rashomon.run("train", "--model", model, "--data", tmp_path / "set", "--dry-run", code=2)
    assert "training rows are test data" in refused.stderr
    assert "the file of a test image" in refused.stderr


@pytest.mark.parametrize("own", [5, ["gone.png"], [""], ["../outside.png"], {"a": 1}])
def test_pictures_of_an_example_that_cannot_be_used_are_refused(own: object, tmp_path: Path) -> None:
    row = {"images": [], "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (tmp_path / "train.jsonl").write_text(json.dumps({**row, "own_images": own}))
    with pytest.raises(SourceError, match=r"train\.jsonl:1: the image"):
        list(TrainingSet.open(tmp_path).rows("train"))


def prompt_sets(folder: Path, tests: Sequence[Example], prompt: Example, **row: object) -> set[str]:
    """The means by which a row with the text-only prompt of an example is a leak."""
    planted = plant(folder, tests, examples([drawn_chart(500 + n) for n in range(6)], "c"), 0)
    instances = get_benchmark("cmc-bench").instances(planted.test, "paper")
    group = groups_of(planted.test)[tests.index(prompt)]
    (text,) = (i.parts[0].text for i in instances if i.id == f"{group}/text-only/right")  # type: ignore[union-attr]
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "5"}]
    line = {"images": [], "messages": turns, "question": prompt.question, **row}
    with (planted.training_set.path / "train.jsonl").open("a") as lines:
        lines.write(json.dumps(line))
    report = check(planted)
    last = max(int(leak.row.rpartition(":")[2]) for leak in report.leaks) if report.leaks else 0
    return {leak.means for leak in report.leaks if leak.means in REFUSED and leak.row.endswith(f":{last}")}


def test_a_text_of_its_own_is_a_leak_and_what_a_template_makes_equal_is_none(tmp_path: Path) -> None:
    charts = [drawn_chart(400 + n) for n in range(4)]
    own = Example(charts[0], "What is the total?", "41", "The lighthouse keeper wrote 41 into the book that evening.")
    alike = [Example(chart, "What is the total?", str(50 + 9 * n)) for n, chart in enumerate(charts[1:])]
    assert prompt_sets(tmp_path / "own", [own, *alike], own) == {"prompt"}
    assert prompt_sets(tmp_path / "alike", [own, *alike], alike[0]) == set()
    asked = Example(charts[0], "Which share did the lighthouse have?", "41")
    assert prompt_sets(tmp_path / "asked", [asked, *alike], asked) == {"prompt"}
