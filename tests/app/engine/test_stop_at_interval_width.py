"""Runs that stop when their intervals are narrow enough: what is asked is a random part, and no more is changed by it."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from app.engine import stop_at_interval_width
from app.engine.answer_loop import AnswerLoop
from app.engine.request_order import WINDOW
from app.store.parsed_texts import ParsedTexts
from app.store.run_store import RunStore
from app.store.stored_answers import KnownInstance
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Estimate, Record
from tests.app.commands.running.test_batch_command import states
from tests.app.store.test_run_store import META
from tests.support.command import ROOT, Rashomon
from tests.support.toy import EvenJudge, Scripted, Toy, TwoSteps, toy_instances

DEMO = ROOT / "assets" / "demo"
BATCH = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--display", "plain", "--limit", "80")


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with the demo's charts: 144 examples of eight instances."""
    result = Rashomon(tmp_path_factory.mktemp("precision"))
    result.run("build", "cmc-bench", "--source", f"rows={DEMO / 'held_out' / 'cmc-bench'}")
    return result


def records(rashomon: Rashomon, name: str) -> dict[str, Record]:
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        return {record.instance.id: record for record in store.records()}


def accuracies(store: RunStore, judge: str) -> dict[str, Estimate]:
    return stop_at_interval_width.running_accuracies(store, Toy(), judge)


@pytest.mark.slow
def test_it_stops_says_so_goes_on_narrower_and_to_the_end_with_the_answers_of_a_whole_run(rashomon: Rashomon) -> None:
    stdout = rashomon.run(*BATCH, "--name", "part", "--until-width", "0.4").stdout
    assert "stopped because every condition's 95% interval is 0.4 wide or less" in stdout
    state, done, total = states(rashomon)["part"]
    assert (state, total, done) == ("stopped", 640, WINDOW)
    assert done < total
    stdout = rashomon.run("show", "part", "--table", "main").stdout
    assert "stopped (every condition's 95% interval is 0.4 wide or less)" in stdout
    assert "policy:uniform covers a random part of its examples; it was stopped early" in stdout
    assert "256 of 640 answered" in stdout
    answered = Counter(item.instance.group for item in records(rashomon, "part").values() if item.answer)
    assert set(answered.values()) == {8}, "whole examples"
    built = list(dict.fromkeys(item.instance.group for item in records(rashomon, "part").values()))
    assert set(answered) != set(built[: len(answered)]), "not the build's first ones"

    rashomon.run(*BATCH, "--name", "part", "--until-width", "0.4")
    assert states(rashomon)["part"] == ("stopped", done, total), "as narrow as it is wanted, nothing more is asked"
    rashomon.run("resume", "part", "--until-width", "0.36")
    assert done < states(rashomon)["part"][1] < total
    assert rashomon.run(*BATCH, "--name", "part").stdout.endswith("part: 640 of 640 answered\n")
    assert states(rashomon)["part"] == ("done", total, total)
    rashomon.run(*BATCH, "--name", "whole", "--display", "none")
    texts = [
        {name: item.answer and item.answer.text for name, item in records(rashomon, run).items()}
        for run in ("part", "whole")
    ]
    assert texts[0] == texts[1]
    # And a run in the build's order is not taken for a random part of it.
    with RunStore.open(rashomon.workspace / "runs" / "whole") as store:
        store.repeat(["both-wrong"])
    refused = rashomon.run("resume", "whole", "--until-width", "0.2", code=2).stderr
    assert "560 answers in the build's order" in refused


def test_what_cannot_stop_a_run_is_refused_before_it_is_made(rashomon: Rashomon) -> None:
    for width in ("0", "nan"):
        assert "a number above 0 and below 1" in rashomon.run(*BATCH, "--until-width", width, code=2).stderr
    model = str(DEMO / "model-4bit")
    stderr = rashomon.run(*BATCH, "--judge", model, "--name", "late", "--until-width", "0.2", code=2).stderr
    assert "labels only after all answers are in" in stderr
    assert "late" not in states(rashomon)


def test_windows_are_whole_examples_in_an_order_of_the_seed(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, META, toy_instances(3 * WINDOW)) as store:
        windows = list(stop_at_interval_width.windows(store, 7))
        assert windows == list(stop_at_interval_width.windows(store, 7))
        assert windows != list(stop_at_interval_width.windows(store, 8))
        assert [len(window.pending) for window in windows] == [WINDOW] * 3
        assert sorted(itertools.chain(*(window.pending for window in windows))) == list(range(3 * WINDOW))
        groups = [{ordinal // 2 for ordinal in window.pending} for window in windows]
        assert sum(len(group) for group in groups) == len(set.union(*groups)), "no example in two windows"
        spread = np.mean(list(windows[0].pending))
        assert WINDOW < spread < 2 * WINDOW, "from all of the run"


def test_an_interrupted_window_is_ended_before_it_is_looked_at(tmp_path: Path) -> None:
    looks = itertools.count()
    with RunStore.create(tmp_path, META, toy_instances(2 * WINDOW)) as store:
        store.use_engine({"engine": "scripted"})
        first, second = stop_at_interval_width.windows(store, 0)
        stop = lambda: next(looks) >= 40  # noqa: E731
        AnswerLoop(store, Scripted(4), TwoSteps(), [EvenJudge()], Toy(), only=first.pending, width=4, stop=stop).run()
        left, untouched = stop_at_interval_width.windows(store, 0)
        assert 0 < len(left.pending) < WINDOW
        assert (left.untouched, untouched) == (False, second)
        assert set(left.pending) < set(first.pending)


def test_the_accuracies_that_are_looked_at_are_those_of_the_tables(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, META, toy_instances(80)) as store:
        store.use_engine({"engine": "scripted"})
        half = [place.ordinal for place in store.positions() if place.ordinal < 40]
        AnswerLoop(store, Scripted(4), TwoSteps(), [EvenJudge()], Toy(), only=half, width=4).run()
        estimates = accuracies(store, "even@1")
        for progress in store.progress():
            judged = progress.judged["even@1"]
            message = estimates[progress.condition]
            assert (message.n, round((message.value or 0) * message.n)) == (judged.labelled, judged.correct)
        condition, width = stop_at_interval_width.widest(estimates)
        assert 0 < width < 1
        asked = [place.ordinal for place in store.positions() if place.condition == condition]
        AnswerLoop(store, Scripted(4), TwoSteps(), [EvenJudge()], Toy(), only=asked, width=4).run()
        assert condition not in accuracies(store, "even@1"), "answered to the end"
        assert stop_at_interval_width.widest(accuracies(store, "nobody@1"))[1] == 1, "without a label nothing is known"


def test_accuracies_are_kept_up_to_date(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, META, toy_instances(3 * WINDOW)) as store:
        store.use_engine({"engine": "scripted"})
        known = ParsedTexts[KnownInstance]()
        seen = 0
        for window in list(stop_at_interval_width.windows(store, 0))[:2]:
            AnswerLoop(store, Scripted(4), TwoSteps(), [EvenJudge()], Toy(), only=window.pending, width=4).run()
            estimates = stop_at_interval_width.running_accuracies(store, Toy(), "even@1", known=known)
            assert estimates == accuracies(store, "even@1")
            assert (seen := seen + WINDOW // 2) <= sum(estimate.n for estimate in estimates.values())
        store.retract("even@1")
        after = stop_at_interval_width.running_accuracies(store, Toy(), "even@1", known=known)
        assert all(estimate.value is None for estimate in after.values()), "verdicts were set aside"


def test_conditions_without_sources_do_not_prolong_a_run(tmp_path: Path) -> None:
    benchmark = Toy()
    first, *others = benchmark.conditions
    benchmark.without_sources = {first: tuple(others)}
    with RunStore.create(tmp_path, META, toy_instances(WINDOW)) as store:
        assert {*stop_at_interval_width.running_accuracies(store, benchmark, "even@1")} == {*others}
        assert {*stop_at_interval_width.running_accuracies(store, benchmark, "even@1", [first])} == {first}


# --- what stopping does to the interval: 1,000 repetitions each ----------------------------------

REPETITIONS = 1000


def stopped(random: np.random.Generator, share: float, answers: int, width: float) -> tuple[float, bool, int]:
    """A run of examples with so many answers each that is stopped at ``width``: its share, whether its interval holds the truth,
    and how many examples it took. The answers of an example hang together."""
    hits: list[float] = []
    result = Estimate(None)
    while result.value is None or _wide(result) > width:
        new = WINDOW // 8
        able = random.beta(3 * share, 3 * (1 - share), new) if answers > 1 else np.full(new, share)
        hits += random.binomial(answers, able).tolist()
        result = clustered_wilson(hits, [answers] * len(hits))
    low, high = _ends(result)
    return result.value, low <= share <= high, len(hits)


def _ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def _wide(estimate: Estimate) -> float:
    low, high = _ends(estimate)
    return high - low


@pytest.mark.slow
@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("width", [0.2, 0.1, 0.05])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.8, 0.95])
def test_the_interval_of_a_stopped_run_holds_the_truth_about_as_often_as_it_says(
    answers: int, width: float, share: float
) -> None:
    random = np.random.default_rng(round(1000 * (share + width)) + answers)
    items = [stopped(random, share, answers, width) for _ in range(REPETITIONS)]
    held = sum(inside for _, inside, _ in items)
    value, examples = np.mean([item for item, _, _ in items]), np.mean([count for *_, count in items])
    print(f"{answers} answers, width {width}, share {share}: {held} hold, mean {value:.4f}, {examples:.0f} examples")
    assert held >= 920  # of 1,000; at a fixed number of examples it was 931 to 982
    assert abs(value - share) < 0.012  # it is moved a little towards 0 and 1
