"""The page on simulated studies: the generator's truth, the claims that are read, and few false ones in a small run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from docs import claims_page
from docs.claim_rates import ROWS, Tally, lower_limit, upper_limit
from docs.claims_page import PAGE
from docs.command_studies import Commands
from docs.simulated_readers import (
    ACCURATE,
    ANSWERED,
    BOTH,
    FAILED,
    UNDECIDED,
    Reader,
    population,
    random_reader,
    true_accuracy,
    true_obedience,
    true_value,
)
from docs.simulated_runs import Layout, World, draw
from docs.study_kinds import MARGIN, Study, open_tables, threshold_readers, unequal_study

_QUESTIONS = 60_000
GOOD = Reader(0.95, 0.95, (0.1, 0.1, 0.6), 0.1, 0.2)
POOR = Reader(0.3, 0.3, (0.1, 0.1, 0.6), 0.9, 0.2)


def test_the_page_has_the_rows_that_the_script_declares() -> None:
    table = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| (")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    assert [(row[0], row[1]) for row in cells] == [(row.claim, row.required) for row in ROWS]
    assert all(row[2] != "-" or row[3] != "-" for row in cells)
    assert len(PAGE.read_text("utf-8").splitlines()) < 60


def test_answers_are_drawn_with_the_rates_that_are_taken_for_the_truth() -> None:
    random = np.random.default_rng(0)
    readers = [random_reader(random) for _ in range(2)]
    page = np.arange(_QUESTIONS)
    layout = Layout(page, (page + random.integers(1, _QUESTIONS, _QUESTIONS)) % _QUESTIONS)
    drawn = draw(random, layout, World(tuple(readers), 0.4, 0.5))
    for model, reader in enumerate(readers):
        truth = population(reader)
        counted = truth[..., [ANSWERED, UNDECIDED, FAILED]].sum(-1)
        right = [counted[place, list(outcomes)].sum() for place, outcomes in enumerate(ACCURATE)]
        assert sum(right) / len(right) == pytest.approx(true_accuracy(reader))
        counts = np.zeros_like(truth)
        for prompt in range(len(truth)):
            np.add.at(counts[prompt], (drawn.outcome[:, prompt, model], drawn.fate[:, prompt, model]), 1)
        error = np.sqrt(truth * (1 - truth) / _QUESTIONS)
        assert (np.abs(counts / _QUESTIONS - truth) <= 4.5 * error + 1e-9).all()


def test_pages_are_correlated() -> None:
    random = np.random.default_rng(0)
    page = np.repeat(np.arange(3000), 8)
    drawn = draw(random, Layout(page, (page + 1) % 3000), World((random_reader(random),), 0.5, 0.5))
    right = (drawn.outcome[:, 0, 0] == BOTH).reshape(-1, 8)
    assert right.mean(1).var() > 1.4 * right.var() / 8


def test_a_mirrored_reader_is_right_as_often() -> None:
    reader = random_reader(np.random.default_rng(0))
    assert true_accuracy(reader) == pytest.approx(true_accuracy(reader.mirrored))
    assert true_obedience(reader, "image") == pytest.approx(true_obedience(reader.mirrored, "text"))


def test_readers_at_the_margin_are() -> None:
    for rule in (None, "image", "text", "flag"):
        best, first, *_ = threshold_readers(np.random.default_rng(1), rule)
        loss = true_value(best, rule) - true_value(first, rule)
        assert loss == pytest.approx(MARGIN, abs=1e-6)


def check_that_claims_are_read(study: Study) -> None:
    """Check the claims on two models, of which one reads far better."""
    comparison, recommended = study.compare(), study.recommend(None, MARGIN)
    assert comparison.accuracy == {"m1": -1}
    assert comparison.metrics["m1", "Aligned"] == -1
    assert recommended.holds == ("m0",)
    assert recommended.worse == (("m1", "m0"),)
    assert recommended.beats == ("m0",)
    assert study.recommend("flag", MARGIN).worse == (("m1", "m0"),)
    assert study.recommend("flag", 0.9).behaves > 0


def test_claims_are_read_from_tables() -> None:
    study = open_tables(np.random.default_rng(0), World((GOOD, POOR), 0.3, 0.5), True)
    check_that_claims_are_read(study)
    assert study.floors is not None
    assert study.floors(None)


def test_limits_are_those_of_clopper_and_pearson() -> None:
    beta = pytest.importorskip("scipy.stats").beta
    for count, n in ((0, 10), (3, 60), (100, 2000), (1999, 2000)):
        assert upper_limit(count, n) == pytest.approx(beta.ppf(0.95, count + 1, n - count), abs=1e-9)
    assert upper_limit(10, 10) == 1
    assert upper_limit(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60))
    assert lower_limit(10, 10) == pytest.approx(0.05**0.1)


def check_rates(tally: Tally, slack: float) -> None:
    """Check the rates of false claims, and that they do not contradict the requirement beyond chance."""
    for row in ROWS:
        if tally.studies[row.key] and not row.power:
            assert tally.rate(row.key) <= row.limit + slack, row.claim


@pytest.mark.slow
def test_few_claims_of_a_few_studies_are_false() -> None:
    tally, small = Tally(), partial(open_tables, pages=20)
    unequal: claims_page.Kind = partial(unequal_study, worlds=1, chunks=2)
    kinds = {**claims_page.KINDS, "unequal": unequal}
    studies = {"equal": 8, "mirrored": 24, "unequal": 6, "threshold": 16, "policy": 6}
    for name, count in studies.items():
        for number in range(count):
            tally.add(kinds[name](np.random.default_rng((3, number)), small))
    check_rates(tally, slack=0.3)


@pytest.mark.slow
def test_claims_of_commands_are_read_and_few_are_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    level = Commands(tmp_path / "level")
    level.in_process = False
    check_that_claims_are_read(level.open(np.random.default_rng(0), World((GOOD, POOR), 0.3, 0.5), True))
    check_rates(claims_page.simulate_commands(8), slack=0.5)
