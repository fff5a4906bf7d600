"""Abstention quality: metrics of policies by arithmetic, costs as users type them, and the coverage of the intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.answers import Answers
from benchmarks.errors import SpecError
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.tables.abstention_quality import (
    COVERAGE,
    GAP,
    JUSTIFIED,
    NEEDLESS,
    RATIOS,
    RISK,
    SHARES,
    UNDER_CONFLICT,
    Costs,
    abstention_metrics,
    at_ratio,
    share_estimates,
    utility,
    utility_estimate,
)
from benchmarks.tables.abstention_tables import abstention_tables
from benchmarks.vocabulary import Estimate, Generation, Instance, Record, Table, Text, Verdict

SIMULATIONS = 1000


def answers_of(benchmark_name: str, labels: dict[str, str], examples: int = 10) -> dict[str, Answers]:
    """A run with one answer of each condition's label for every example."""
    records = [
        Record(
            Instance(f"{number}/{condition}", str(number), condition, "q", (Text("q"),)),
            (Generation(f"{number}/{condition}#0", "a", "stop"),),
            {"j": Verdict("j", "labelled", label)},
        )
        for number in range(examples)
        for condition, label in labels.items()
    ]
    return {"run": Answers.of(records, get_benchmark(benchmark_name))}


def values(table: Table, row: str = "run") -> dict[str, float | None]:
    cells = dict(zip(table.columns, dict(table.rows)[row], strict=True))
    return {name: cell.value for name, cell in cells.items() if isinstance(cell, Estimate)}


def tables_by_name(benchmark_name: str, labels: dict[str, str]) -> dict[str, Table]:
    runs = answers_of(benchmark_name, labels)
    tables = abstention_tables(runs, "j", get_benchmark(benchmark_name), resamples=20, seed=0)
    return {table.name: table for table in tables}


CMC = ("aligned", "image-correct", "text-correct", "both-wrong")
CLASH = ("mc-original", "open-original", "mc-conflicting", "open-conflicting")


@pytest.mark.parametrize(
    ("benchmark", "labels", "shares", "at_one"),
    [
        # Follows the image: right on two of CMC-Bench's four conditions, wrong on the others.
        ("cmc-bench", dict(zip(CMC, ("BOTH", "IMAGE", "IMAGE", "IMAGE"), strict=True)), (0, 0, 0, None, 1, 0.5), 0.5),
        # Abstains always: needless in one of four.
        ("cmc-bench", dict.fromkeys(CMC, "ABSTAIN"), (1, 1, 0, 0.75, 0, None), 0.75),
        # Right, and abstains under conflict alone.
        ("cmc-bench", dict(zip(CMC, ("BOTH", *["ABSTAIN"] * 3), strict=True)), (1, 0, 1, 1, 0.25, 0), 1.0),
        # A caption that contradicts the image makes every other answer a missed conflict.
        ("clash", dict.fromkeys(CLASH, "IMAGE"), (0, 0, 0, None, 1, 0.5), 0.5),
        ("clash", dict.fromkeys(CLASH, "CONFLICT"), (1, 1, 0, 0.5, 0, None), 0.5),
        # Always "No": detects every conflict, and disagrees with every true document.
        (
            "mmkc-bench",
            {
                "coarse-conflict": "CORRECT",
                "coarse-non-conflict": "WRONG",
                "fine-conflict": "CORRECT",
                "original-mc": "ORIGINAL",
            },
            (1, 1, 0, 2 / 3, 0, None),
            2 / 3,
        ),
    ],
)
def test_policies_have_the_values_that_follow_from_arithmetic(
    benchmark: str, labels: dict[str, str], shares: tuple[float | None, ...], at_one: float
) -> None:
    tables = tables_by_name(benchmark, labels)
    expected = dict(zip((UNDER_CONFLICT, NEEDLESS, GAP, JUSTIFIED, COVERAGE, RISK), shares, strict=True))
    assert values(tables["abstention"]) == pytest.approx(expected)
    assert values(tables["risk-coverage"]) == pytest.approx({name: expected[name] for name in (COVERAGE, RISK)})
    assert values(tables["utility"])["1:1"] == pytest.approx(at_one)


def test_the_utility_is_what_the_costs_say() -> None:
    # Of 8 answers: 1 needless abstention, 2 wrong, 3 missed, 2 without a mistake.
    counts = np.array([[1, 1, 2], [1, 0, 3]], float)
    costs = Costs(wrong=4, needless=1, missed=2)
    assert float(utility(costs)(counts)) == pytest.approx(1 - (1 * 1 + 2 * 4 + 3 * 2) / 8 / 4)
    # Without conflict the mean cost is 9/4, under conflict 6/4; 10% of the user's questions have one.
    assert float(utility(costs, 0.1)(counts)) == pytest.approx(1 - (0.9 * 9 / 4 + 0.1 * 6 / 4) / 4)
    assert float(utility(costs, 0.0)(counts)) == pytest.approx(1 - 9 / 4 / 4)
    assert math.isnan(float(utility(costs, 0.1)(np.array([[1, 1, 2], [0, 0, 0]], float))))


def test_abstaining_always_pays_exactly_where_it_is_cheaper_than_following_the_image() -> None:
    image = tables_by_name("cmc-bench", dict(zip(CMC, ("BOTH", "IMAGE", "IMAGE", "IMAGE"), strict=True)))["utility"]
    abstains = tables_by_name("cmc-bench", dict.fromkeys(CMC, "ABSTAIN"))["utility"]
    # A quarter of the answers is needless, half is missed: equal where a needless abstention costs twice as much.
    for name, ratio in RATIOS.items():
        gain = (values(abstains)[name] or 0) - (values(image)[name] or 0)
        assert math.isclose(gain, (0.5 - 0.25 * ratio) / max(1, ratio), abs_tol=1e-12), name


def test_a_benchmark_without_abstentions_has_no_such_table() -> None:
    names = {name for name in benchmark_names() if get_benchmark(name).abstention is not None}
    assert names >= {"cmc-bench", "clash", "mmkc-bench"}
    assert not names & {"pope", "okvqa", "gqa", "crosscheck-bench", "contra4"}
    runs = answers_of("pope", {"random": "CORRECT"})
    assert abstention_tables(runs, "j", get_benchmark("pope"), resamples=5, seed=0) == []
    assert abstention_metrics(get_benchmark("pope")) is None


def test_unanswered_situations_are_not_available_and_say_why() -> None:
    table = tables_by_name("cmc-bench", {"aligned": "BOTH"})["abstention"]
    cells = dict(zip(table.columns, dict(table.rows)["run"], strict=True))
    missing = {name for name, cell in cells.items() if isinstance(cell, Estimate) and cell.value is None}
    assert missing == {UNDER_CONFLICT, GAP, JUSTIFIED}
    assert all(cell.reason for name, cell in cells.items() if name in missing and isinstance(cell, Estimate))
    assert abstention_tables(answers_of("cmc-bench", {}), "j", get_benchmark("cmc-bench"), resamples=5, seed=0) == []


def test_the_curve_of_a_run_with_likelihoods_falls_to_its_most_confident_answers() -> None:
    """Ten answers, the first of which is the most confident; the last three are wrong, and one abstains."""
    labels = ["BOTH"] * 6 + ["ABSTAIN"] + ["NEITHER"] * 3
    records = [
        Record(
            Instance(f"{number}/aligned", str(number), "aligned", "q", (Text("q"),)),
            (Generation(f"{number}/aligned#0", "a", "stop", (1, 2), scores=(-9.0, -9.0, -9.0, -0.1 - number)),),
            {"j": Verdict("j", "labelled", label)},
        )
        for number, label in enumerate(labels)
    ]
    benchmark = get_benchmark("cmc-bench")
    answers = Answers.of(records, benchmark)
    (table,) = (
        t for t in abstention_tables({"run": answers}, "j", benchmark, resamples=5, seed=0) if t.name == "risk-coverage"
    )
    points = {name: [cell.value for cell in cells if isinstance(cell, Estimate)] for name, cells in table.rows}
    assert points["run"] == pytest.approx([0.9, 3 / 9])
    curve = [points[f"run / most confident {tenth}0%"] for tenth in range(1, 10)]
    risks = [0] * 6 + [1 / 7, 2 / 8, 3 / 9]
    assert [value for point in curve for value in point] == pytest.approx(
        [value for tenth, risk in enumerate(risks, 1) for value in (tenth / 10, risk)]
    )


def test_metrics_for_comparing_equal_those_of_the_tables() -> None:
    benchmark = get_benchmark("cmc-bench")
    metrics = abstention_metrics(benchmark)
    assert metrics is not None
    labels = dict(zip(CMC, ("BOTH", "ABSTAIN", "IMAGE", "TEXT"), strict=True))
    counts = np.zeros((len(metrics.conditions), len(metrics.labels)))
    for condition, label in labels.items():
        counts[metrics.conditions.index(condition), metrics.labels.index(label)] += 1
    table = values(tables_by_name("cmc-bench", labels)["abstention"])
    assert {name: float(metrics.of[name](counts)) for name in SHARES} == pytest.approx(table)


# --- costs as typed -------------------------------------------------------------------------------


def test_costs_are_read_and_the_unnamed_are_one() -> None:
    assert Costs.parse("needless=0.2, missed=3") == Costs(1, 0.2, 3)
    assert Costs.parse("") == Costs()
    assert at_ratio(5, Costs(2, 1, 3)) == Costs(2, 10, 3)


@pytest.mark.parametrize(
    "text",
    [
        "wrong=-1",
        "wrong=nan",
        "missed=inf",
        "wrong",
        "wrong=",
        "typo=1",
        "wrong=1,wrong=2",
        "wrong=0,needless=0,missed=0",
    ],
)
def test_costs_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        Costs.parse(text)


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("examples", [40, 150])
@pytest.mark.parametrize(("abstains", "needless", "right"), [(0.6, 0.2, 0.7), (0.3, 0.1, 0.5)])
def test_intervals_contain_the_truth_as_often_as_they_say(
    examples: int, abstains: float, needless: float, right: float
) -> None:
    """Examples differ in how readily they are abstained on, and their four conditions hang together."""
    random = np.random.default_rng(int(1000 * abstains) + examples)
    # The truth: with a mean of 1, the readiness leaves every share as it is.
    truth_counts = np.array(
        [
            [needless, (1 - needless) * right, (1 - needless) * (1 - right)],
            [3 * abstains, 3 * (1 - abstains) * right, 3 * (1 - abstains) * (1 - right)],
        ]
    )
    costs = Costs(1, 0.5, 2)
    truth = {name: float(metric(truth_counts)) for name, metric in SHARES.items()}
    truth["utility"] = float(utility(costs)(truth_counts))
    truth["utility at 10%"] = float(utility(costs, 0.1)(truth_counts))
    hits = dict.fromkeys(truth, 0)
    for _ in range(SIMULATIONS):
        counts = _simulated(random, examples, abstains, needless, right)
        cells = share_estimates(counts, 400, 1)
        cells["utility"] = utility_estimate(counts, costs, 400, 1)
        cells["utility at 10%"] = utility_estimate(counts, costs, 400, 1, 0.1)
        for name, cell in cells.items():
            if cell.low is not None and cell.high is not None:
                hits[name] += cell.low - 1e-9 <= truth[name] <= cell.high + 1e-9
    low = 910 if examples < 100 else 925
    assert all(low <= count <= 985 for count in hits.values()), hits


def _simulated(
    random: np.random.Generator, examples: int, abstains: float, needless: float, right: float
) -> NDArray[np.int64]:
    readiness = random.uniform(0.5, 1.5, examples)
    counts = np.zeros((examples, 2, 3), dtype=np.int64)
    for situation, share in ((0, needless), (1, abstains), (1, abstains), (1, abstains)):
        abstained = random.random(examples) < share * readiness
        response = np.where(abstained, 0, np.where(random.random(examples) < right, 1, 2))
        counts[np.arange(examples), situation, response] += 1
    return counts
