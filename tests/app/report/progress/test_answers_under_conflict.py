"""What answers under conflict do, counted for the list of runs: the numbers of the scorecard, without reading a run whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.report.progress.answers_under_conflict import ConflictActs
from app.report.progress.running_accuracy import conflict_result
from app.report.tables.table_inputs import read_inputs
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from benchmarks.tables.scorecard import scorecard_table
from benchmarks.vocabulary import Estimate, Generation, Instance, Verdict
from tests.support.runs import instances, make_run, says

RULES = ("image", "text", "flag", "")
TEXTS = ("12", "15", "18", "99", "12 or 15", "It cannot be determined: the sources disagree.", "", "I like trams.")


def answer(instance: Instance) -> Generation:
    """Answers of every act, some of them cut off or in error."""
    number = sum(map(ord, instance.id))
    generation = says(TEXTS[number % len(TEXTS)])(instance)
    if number % 11 == 0:
        return replace(generation, finish_reason="length")
    return replace(generation, text="", finish_reason="error", error="no") if number % 13 == 0 else generation


def own(examples: int, *rules: str) -> list[Instance]:
    return [
        replace(i, strata={**i.strata, "trust": rule} if (rule := rules[int(i.group[-4:]) % len(rules)]) else i.strata)
        for i in instances(examples, source="rows")
    ]


def run(folder: Path, asked: list[Instance]) -> Path:
    return make_run(
        Workspace(folder),
        "r",
        asked,
        answer,
        failing=lambda i: i.group.endswith("7"),
        undecided=lambda i: i.group.endswith("4"),
    )


@pytest.mark.parametrize("rule", ["image", "text", "flag"])
@pytest.mark.parametrize("rules", [("",), ("image", "text", "flag"), ("text", "")], ids=["no", "all", "some"])
def test_the_list_and_the_scorecard_count_the_same(tmp_path: Path, rule: str, rules: tuple[str, ...]) -> None:
    folder = run(tmp_path, own(40, *rules))
    summary = read_summary(folder)
    result = conflict_result(summary, ConflictActs(folder).read(summary), rule)
    inputs = read_inputs([folder])
    table = scorecard_table(inputs.benchmark, inputs.runs, inputs.judge, rule=rule, resamples=10, seed=0)
    assert table is not None
    (line,) = (cells[0] for name, cells in table.rows if "follows your rule" in name)
    assert isinstance(line, Estimate)
    assert 0 < (line.value or 0) < 1
    assert result.estimate.n == line.n
    assert result.estimate.value == pytest.approx(line.value)
    assert result.answered > line.n, "some have no label"
    assert result.counted == f"{line.n}/{result.answered}"


def test_nothing_ranks_a_run_while_nobody_says_what_should_win(tmp_path: Path) -> None:
    folder = run(tmp_path, own(40, "text", ""))
    summary = read_summary(folder)
    result = conflict_result(summary, ConflictActs(folder).read(summary))
    assert (result.measure, result.estimate.value) == ("acts", None)
    assert sum(result.acts.values()) == result.estimate.n
    assert result.acts["invents"] > 0


def test_papers_data_and_other_benchmarks_have_none(tmp_path: Path) -> None:
    folder = make_run(Workspace(tmp_path), "paper", instances(3), says("99"))
    summary = read_summary(folder)
    assert ConflictActs(folder).read(summary) is None
    assert conflict_result(summary, None, "image").measure == "conflict"
    mixed = make_run(Workspace(tmp_path), "mixed", [*own(1, ""), *instances(3)[6:]], says("99"))
    assert ConflictActs(mixed).read(read_summary(mixed)) is None


def test_passages_have_acts_and_nothing_that_ranks_them(tmp_path: Path) -> None:
    asked = [
        replace(i, condition=condition, references={"right": ("12",), "wrong": ("15",)}, strata={"source": "chartqa"})
        for i, condition in zip(instances(1), ("no-conflict", "tie", "tie", "majority-wrong"), strict=False)
    ]
    folder = make_run(Workspace(tmp_path), "k", asked, says("15"), benchmark=get_benchmark("k-passages"))
    summary = read_summary(folder)
    result = conflict_result(summary, ConflictActs(folder).read(summary), "text")
    assert (result.measure, result.estimate.value, result.acts) == ("acts", None, {"wrong passages": 3})
    assert result.own_sentence == "under conflict wrong passages 100%, n=3"


def test_new_verdicts_are_added_and_replaced_ones_are_counted_again(tmp_path: Path) -> None:
    asked = own(3, "image")
    folder = make_run(Workspace(tmp_path), "r", asked, says("15"), undecided=lambda i: i.group.endswith("1"))
    reader = ConflictActs(folder)
    first = reader.read(read_summary(folder))
    assert first is not None
    label(folder, [i.id for i in asked if i.group.endswith("1")], "IMAGE")
    second = reader.read(read_summary(folder))
    assert second is not None
    assert sum(second.values()) == sum(first.values()) + 3
    (wrong,) = (i.id for i in asked if i.id.endswith("1/both-wrong"))
    label(folder, [wrong], "TEXT")  # as wrong as before, so no counter moves
    third = reader.read(read_summary(folder))
    assert third is not None
    assert third["image", "text"] == second.get(("image", "text"), 0) + 1
    assert sum(third.values()) == sum(second.values())


def label(folder: Path, ids: list[str], word: str) -> None:
    """Replace the first judge's labels."""
    with RunStore.open(folder) as store:
        stored = [store.answer_of(i) for i in ids]
        store.add_verdicts([(*answer, Verdict("match@4", "labelled", word)) for answer in stored if answer is not None])


def test_the_conflicts_are_the_benchmarks(tmp_path: Path) -> None:
    folder = run(tmp_path, own(8, ""))
    summary = read_summary(folder)
    conflicts = get_benchmark("cmc-bench").conflicts
    assert conflict_result(summary, ConflictActs(folder).read(summary), "image").conditions == conflicts
