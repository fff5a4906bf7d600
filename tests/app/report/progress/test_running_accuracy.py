"""Progress of judges, from a run's counters."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from app.report.progress.running_accuracy import judging_progress, overall_accuracy
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress, JudgedCounts
from app.tui.screens.live_lines import judge_lines

MODEL = "model-4bit@cmc-bench-2"


def run_of(judged: Mapping[str, Mapping[str, int]], *judges: str, done: int = 4, errors: int = 0) -> RunSummary:
    """Return a run of four conditions of four instances; ``judged`` has the labels of each judge by condition."""
    progress = []
    for condition in ("aligned", "image-correct", "text-correct", "image-only"):
        counts = {
            judge: JudgedCounts(labelled=labels[condition]) for judge, labels in judged.items() if condition in labels
        }
        progress.append(ConditionProgress(condition, 4, done, errors, 0, 10, 1.0, 0, counts))
    return RunSummary("r", "judging", {"benchmark": "cmc-bench", "judge": list(judges)}, tuple(progress))


@pytest.mark.parametrize(
    ("judged", "text"),
    [
        ({"image-only": 1}, "1/16 judged"),
        ({"image-only": 1, "aligned": 1}, "2/16 judged"),
        ({"image-only": 4, "aligned": 4}, "8/16 judged"),
    ],
)
def test_a_judge_is_counted_against_every_answer_of_the_run(judged: Mapping[str, int], text: str) -> None:
    run = run_of({MODEL: judged}, "model-4bit")
    assert judging_progress(run) == [f"{text} by {MODEL}"]
    assert judge_lines(run) == [f"{MODEL}: {sum(judged.values())} labelled, {16 - sum(judged.values())} waiting"]


def test_a_judge_that_has_not_begun_is_behind_and_one_of_another_run_is_not_named() -> None:
    run = run_of(
        {"match@4": dict.fromkeys(("aligned", "image-correct", "text-correct", "image-only"), 4)}, "match", "m"
    )
    assert judging_progress(run) == ["0/16 judged by m"]
    assert judge_lines(run) == ["match@4: 16 labelled", "m: 0 labelled, 16 waiting"]


def test_an_undecided_answer_is_judged_and_counted_apart() -> None:
    counts = {"match@4": JudgedCounts(labelled=1, unparsed=1, failed=1, undecided=2)}
    progress = (ConditionProgress("aligned", 5, 5, 0, 0, 10, 1.0, 0, counts),)
    run = RunSummary("r", "done", {"benchmark": "cmc-bench", "judge": ["match"]}, progress)
    assert judging_progress(run) == []
    assert judge_lines(run) == ["match@4: 1 labelled, 1 unparsed, 2 undecided, 1 failed"]
    assert overall_accuracy(run).n == 1


def test_the_total_stays_while_answers_come() -> None:
    assert judging_progress(run_of({MODEL: {"aligned": 1}}, "model-4bit", done=2)) == [f"1/16 judged by {MODEL}"]


def test_an_error_is_not_to_be_judged() -> None:
    assert judging_progress(run_of({MODEL: {"aligned": 1}}, "model-4bit", errors=1)) == [f"1/12 judged by {MODEL}"]


def test_a_judge_that_keeps_up_with_the_answers_is_not_behind() -> None:
    judged = dict.fromkeys(("aligned", "image-correct", "text-correct", "image-only"), 2)
    assert judging_progress(run_of({"match@4": judged}, "match", done=2)) == []


def test_an_earlier_version_of_a_judge_is_not_behind() -> None:
    complete = dict.fromkeys(("aligned", "image-correct", "text-correct", "image-only"), 4)
    assert judging_progress(run_of({"match@2": {"aligned": 1}, "match@4": complete}, "match")) == []


def test_a_rubric_of_some_conditions_is_counted_against_those() -> None:
    progress = [
        ConditionProgress(condition, 4, 4, 0, 0, 10, 1.0, 0, {"m@mmkc-bench-2": JudgedCounts(labelled=1)})
        for condition in ("context-memory-open", "context-memory-choice")
    ]
    summary = RunSummary("r", "judging", {"benchmark": "mmkc-bench", "judge": ["m"]}, tuple(progress))
    (line,) = judging_progress(summary)
    assert line.startswith("1/4 ")
