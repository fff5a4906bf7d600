"""Training sets of every benchmark: what is learnt from, how it is split, and what reads it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.cmc_bench.cmc_constants import CONFLICT_CONDITIONS
from benchmarks.cmc_bench.cmc_training import NAMED_CONFLICT
from benchmarks.contra4.contra4_constants import FILTERS
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.training.training_set import TrainingSet
from benchmarks.training.write_training_set import write_training_set
from benchmarks.training_rows import ABSTENTION, TrainingOptions
from benchmarks.vocabulary import Generation, Record
from judges.judge_registry import get_judge
from tests.support.contra4_writer import writes
from tests.support.data import crosscheck_bench, mmkc_bench
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.contra4 import DATA, Scripted, copy_rows, real_rows
from tests.support.data.small import own_rows, picture


def build(benchmark: str, out: Path, **sources: Path) -> Build:
    pairs = [(name.replace("_", "-"), str(place)) for name, place in sources.items()]
    return get_benchmark(benchmark).build(pairs, out, BuildOptions())


def write(build: Build, out: Path, share: float = 0.0, **options: Any) -> TrainingSet:
    staged = write_training_set(get_benchmark(build.benchmark), [build], out, TrainingOptions(**options), share)
    return staged.put_in_place()


def rows(training_set: TrainingSet, part: str = "train") -> Iterator[dict[str, Any]]:
    for line in (training_set.path / f"{part}.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def target(row: dict[str, Any]) -> str:
    return str(row["messages"][-1]["content"][0]["text"])


@pytest.fixture(scope="module")
def charts_build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A user's own table of twelve numbers."""
    folder = tmp_path_factory.mktemp("own")
    source = own_rows(folder / "source", [str(100 + 7 * n) for n in range(12)])
    return build("cmc-bench", folder / "build", rows=source)


def test_own_table_teaches_to_name_the_conflict_or_to_answer(charts_build: Build, tmp_path: Path) -> None:
    named = list(rows(write(charts_build, tmp_path / "named")))
    assert Counter(row["kind"] for row in named) == {"conflict": 12, "no conflict": 24}
    references = {i.id: i.references for i in get_benchmark("cmc-bench").instances(charts_build, "paper")}
    for row in named:
        values = {source: answers[0] for source, answers in references[row["id"]].items()}
        answer = NAMED_CONFLICT.format(**values) if row["kind"] == "conflict" else next(iter(values.values()))
        assert target(row) == answer
    answers = list(rows(write(charts_build, tmp_path / "answers", target="answer")))
    right = {"image-correct": "image", "text-correct": "text"}
    assert [row["id"] for row in answers] == [row["id"] for row in named]
    for row in answers:
        if row["condition"] in right:
            assert target(row) == references[row["id"]][right[row["condition"]]][0]
    abstaining = rows(write(charts_build, tmp_path / "abstain", target="abstain"))
    assert {target(row) for row in abstaining if row["kind"] == "conflict"} == {ABSTENTION}


@pytest.mark.parametrize("form", ["compare", "abstain"])
def test_rejected_answers_of_an_own_table_ignore_a_conflict_or_name_one_that_is_not_there(
    charts_build: Build, tmp_path: Path, form: str
) -> None:
    instances = {i.id: i for i in get_benchmark("cmc-bench").instances(charts_build, "paper")}
    judge = get_judge("match")
    for row in rows(write(charts_build, tmp_path / "set", target=form)):
        instance = instances[row["id"]]
        learnt, rejected = (
            judge.judge(Record(instance, (Generation(instance.id, text, "stop"),))).label
            for text in (target(row), row["rejected"])
        )
        assert learnt != rejected
        assert (rejected == "ABSTAIN") == (row["kind"] == "no conflict")


def test_each_example_of_an_own_table_has_a_row_with_a_single_source(charts_build: Build, tmp_path: Path) -> None:
    every = list(rows(write(charts_build, tmp_path / "set")))
    conditions = Counter(row["condition"] for row in every)
    assert conditions["image-only"] + conditions["text-only"] == conditions["aligned"] == 12
    assert conditions["image-only"]
    assert conditions["text-only"]
    for row in every:
        types = [part["type"] for part in row["messages"][0]["content"]]
        assert types.count("image") == len(row["images"]) == (row["condition"] != "text-only")


def test_target_that_compares_writes_both_readings_and_is_labelled_as_meant(
    charts_build: Build, tmp_path: Path
) -> None:
    labels: dict[str, set[str | None]] = {}
    instances = {i.id: i for i in get_benchmark("cmc-bench").instances(charts_build, "paper")}
    for row in rows(write(charts_build, tmp_path / "set", target="compare")):
        instance = instances[row["id"]]
        shown = [instance.references[source][0] for source in ("image", "text") if source in instance.references]
        assert all(answer in target(row) for answer in shown)
        record = Record(instance, (Generation(instance.id, target(row), "stop"),))
        labels.setdefault(row["condition"], set()).add(get_judge("match").judge(record).label)
    conflicts = {condition: {"ABSTAIN"} for condition in CONFLICT_CONDITIONS if condition in labels}
    assert labels == {"aligned": {"BOTH"}, "image-only": {"IMAGE"}, "text-only": {"TEXT"}, **conflicts}


def test_rows_state_group_image_question_and_build_and_keep_the_place_of_the_image(
    charts_build: Build, tmp_path: Path
) -> None:
    training_set = write(charts_build, tmp_path / "set")
    instances = {i.id: i for i in get_benchmark("cmc-bench").instances(charts_build, "paper")}
    for row in rows(training_set):
        instance = instances[row["id"]]
        assert (row["group"], row["question"], row["build"]) == (instance.group, instance.question, charts_build.digest)
        assert row["images"] == [f"images/{image}.png" for image in row["image_digests"]]
        assert all((training_set.path / image).read_bytes() for image in row["images"])
        if row["images"]:
            assert [part["type"] for part in row["messages"][0]["content"]] == ["text", "image", "text"]
    for chat in training_set.rows("train"):
        parts = [type(part).__name__ for part in chat.messages[0].parts]
        assert parts == (["Text", "Media", "Text"] if chat.images else ["Text"])


def test_crosscheck_takes_500_pairs_of_its_capabilities_spread_over_tasks(tmp_path: Path) -> None:
    tasks = ("LD", "BR", "SP", "PMO", "BC", "PI")
    source = crosscheck_bench.write_rows(
        tmp_path / "source", [crosscheck_bench.row(task, n) for task in tasks for n in range(4)]
    )
    built = build("crosscheck-bench", tmp_path / "build", rows=source)
    every = list(rows(write(built, tmp_path / "all")))
    instances = {i.id: i for i in get_benchmark("crosscheck-bench").instances(built, "paper")}
    assert Counter(instances[row["id"]].strata["task"] for row in every) == {"SP": 4, "PMO": 4, "BC": 4, "PI": 4}
    assert all(row["condition"] == "vanilla" for row in every)
    assert all(target(row) == instances[row["id"]].references["answer"][0] for row in every)
    few = list(rows(write(built, tmp_path / "few", limit=6)))
    assert sorted(Counter(instances[row["id"]].strata["task"] for row in few).values()) == [1, 1, 2, 2]


def test_mmkc_keeps_to_the_true_answer(tmp_path: Path) -> None:
    built = build("mmkc-bench", tmp_path / "build", published=mmkc_bench.whole_folder(tmp_path / "source"))
    instances = {i.id: i for i in get_benchmark("mmkc-bench").instances(built, "official")}
    every = list(rows(write(built, tmp_path / "set")))
    assert {row["condition"] for row in every} >= {"original-mc", "context-memory-mc"}
    for row in every:
        key = "image letter" if row["condition"].endswith("-mc") else "image"
        assert target(row) == instances[row["id"]].references[key][0]
        wrong = instances[row["id"]].references.get("text letter" if key.endswith("letter") else "text", ())
        assert target(row) not in wrong


@real_rows
def test_contra4_takes_the_questions_that_pass_a_filter(tmp_path: Path) -> None:
    options = BuildOptions(per_stratum=2, writer=Scripted("writer", writes), checkers=(Scripted("agrees", writes),))
    place = copy_rows(tmp_path / "source", 40)
    built = get_benchmark("contra4").build([("captioned", str(place))], tmp_path / "build", options)
    assert DATA.is_dir()
    candidates = [json.loads(line) for line in (built.path / "candidates.jsonl").read_text().splitlines()]
    for name in FILTERS:
        passing = {c["question"] for c in candidates if name in c["filters"]}
        every = list(rows(write(built, tmp_path / name, filter=name)))
        assert {row["question"] for row in every} == passing
        assert all(target(row)[-1] in "ABCD" for row in every)
    with pytest.raises(SpecError):
        write(built, tmp_path / "wrong", filter="unfiltered")


def test_split_keeps_samples_of_an_image_together_and_repeats(tmp_path: Path) -> None:
    source = own_folder(tmp_path / "source", [own_sample(n) for n in range(40)], pictures=20)
    built = build("clash", tmp_path / "build", rows=source)
    first = write(built, tmp_path / "first", 0.25)
    parts = {part: list(rows(first, part)) for part in ("train", "validation")}
    assert len(parts["train"]) + len(parts["validation"]) == sum(1 for _ in built.rows())
    assert 0 < len(parts["validation"]) <= len(parts["train"])
    images = {part: {image for row in found for image in row["image_digests"]} for part, found in parts.items()}
    assert not images["train"] & images["validation"]
    second = write(built, tmp_path / "second", 0.25)
    assert second.digest == first.digest


def test_digest_depends_on_the_images(charts_build: Build, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (tmp_path / "1.png").write_bytes(picture(1))
    (tmp_path / "train.jsonl").write_text(json.dumps({"images": ["1.png"], "messages": turns}))
    before = TrainingSet.open(tmp_path).digest
    assert TrainingSet.open(tmp_path).digest == before
    (tmp_path / "1.png").write_bytes(picture(2))
    assert TrainingSet.open(tmp_path).digest != before
    own = write(charts_build, tmp_path / "own")
    image = next(iter(own.image_digests))
    image.write_bytes(image.read_bytes() + b" ")
    with pytest.raises(SourceError):
        _ = TrainingSet.open(own.path).digest


def test_few_rows_are_counted_by_part(charts_build: Build, tmp_path: Path) -> None:
    none = write(charts_build, tmp_path / "none", 0.0)
    assert {part: none.manifest["rows"][part] for part in ("train", "validation")} == {"train": 36, "validation": 0}
    some = write(charts_build, tmp_path / "some", 0.1)
    assert 0 < some.manifest["rows"]["validation"] <= 18


def test_failed_write_is_reported_and_leaves_nothing(charts_build: Build, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        write(charts_build, tmp_path / "set", 1.0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(SourceError):
        write(charts_build, tmp_path / "full")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "notes.txt"]


@pytest.mark.parametrize(
    "row",
    [
        "[1]",
        "{",
        '{"images": ["gone.png"], "messages": []}',
        '{"messages": [{"role": "user", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " "}]}',
        '{"messages": [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": [{"type": "image"}]}, {"role": "assistant", "content": "Hi"}]}',
        '{"messages": [{"role": "tool", "content": "Hi"}, {"role": "assistant", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": 5}, {"role": "assistant", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": true}, {"role": "assistant", "content": "Hi"}]}',
        '{"messages": [{"role": "user", "content": "\\ud800"}, {"role": "assistant", "content": "Hi"}]}',
        '{"messages": [{"role": "system", "content": "a"}, {"role": "assistant", "content": "b"}]}',
        f'{{"images": ["{"a" * 5000}"], "messages": []}}',
        '{"video": ["a.mp4"], "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}',
    ],
)
def test_unusable_row_is_refused_by_name(tmp_path: Path, row: str) -> None:
    (tmp_path / "train.jsonl").write_text(row + "\n")
    with pytest.raises(SourceError, match=r"train\.jsonl:1"):
        list(TrainingSet.open(tmp_path).rows("train"))


@pytest.mark.parametrize("manifest", ["[" * 100_000, "null", '{"rows": 1e999}', None])
def test_manifest_that_cannot_be_read_is_none(tmp_path: Path, manifest: str | None) -> None:
    (tmp_path / "train.jsonl").write_text("")
    if manifest is None:
        os.mkfifo(tmp_path / "manifest.json")
    else:
        (tmp_path / "manifest.json").write_text(manifest)
    assert TrainingSet.open(tmp_path).manifest == {}


@pytest.mark.parametrize("builds", ["5", '"text"', "[[1], {}]", '{"a": 1}'])
def test_builds_of_another_kind_are_none(tmp_path: Path, builds: str) -> None:
    (tmp_path / "train.jsonl").write_text("")
    (tmp_path / "manifest.json").write_text(f'{{"builds": {builds}}}')
    assert TrainingSet.open(tmp_path).builds == frozenset()


def test_an_image_too_large_to_read_is_refused_by_name(tmp_path: Path) -> None:
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(1 << 40)
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (tmp_path / "train.jsonl").write_text(json.dumps({"images": ["huge.png"], "messages": turns}))
    with pytest.raises(SourceError, match=r"train\.jsonl:1"):
        list(TrainingSet.open(tmp_path).rows("train"))
