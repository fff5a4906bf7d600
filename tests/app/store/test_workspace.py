"""States of runs, as lists show them: what the worker recorded, unless the rows say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.report.progress.running_accuracy import judging_progress
from app.store.run_facts import judge_progress
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import ConditionProgress, JudgedCounts
from app.store.workspace import Workspace
from benchmarks.clash.clash_constants import CONDITIONS, OPEN_ENDED
from benchmarks.vocabulary import Verdict
from judges.cmc_rules import Match
from tests.support.records import judge_called
from tests.support.runs import instances, make_run, says

OWN = Match().id


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(Workspace(tmp_path), "r", instances(2), says("12"))


@pytest.mark.parametrize(
    ("recorded", "state"),
    [
        ("running", "interrupted"),
        ("judging", "interrupted"),
        ("interrupted", "interrupted"),
        ("failed", "failed"),
        ("planned", "planned"),
    ],
)
def test_an_answered_run_is_not_done_before_its_own_judge_is(run: Path, recorded: str, state: str) -> None:
    with RunStore.open(run) as store:
        store.set_meta("state", {"state": recorded, "note": "why"})
        store.retract(OWN, instance=store.ids()[0])
    summary = read_summary(run)
    assert (summary.state, summary.done) == (state, summary.total)
    assert judging_progress(summary) == [f"11/12 judged by {OWN}"]


@pytest.mark.parametrize("recorded", ["running", "judging", "interrupted", "failed"])
def test_another_judge_that_breaks_off_leaves_a_run_done(run: Path, recorded: str) -> None:
    with RunStore.open(run) as store:
        generation, record = next(store.unjudged(judge_called("openai:other@1")))
        store.add_verdicts([(generation, record.instance.condition, Verdict("openai:other@1", "unparsed"))])
        store.set_meta("state", {"state": recorded, "note": "why"})
    summary = read_summary(run)
    assert (summary.state, summary.note) == ("done", "")


def test_a_judge_that_has_not_begun_is_behind_too(run: Path) -> None:
    with RunStore.open(run) as store:
        store.retract(OWN)
        store.set_meta("state", {"state": "judging"})
    summary = read_summary(run)
    assert (summary.state, judging_progress(summary)) == ("interrupted", ["0/12 judged by match"])


def test_a_model_judges_the_conditions_of_its_rubric_alone() -> None:
    judge = "openai:gpt@clash-1"
    progress = [
        ConditionProgress(
            condition, 5, 5, 1, 0, 0, 0.0, 0, {judge: JudgedCounts(labelled=4)} if condition in OPEN_ENDED else {}
        )
        for condition in CONDITIONS
    ]
    (own,) = judge_progress({"benchmark": "clash", "judge": ["openai:gpt"]}, progress)
    assert (own.judge, own.judged, own.now) == (judge, 4 * len(OPEN_ENDED), 4 * len(OPEN_ENDED))
    assert len(OPEN_ENDED) < len(CONDITIONS)
