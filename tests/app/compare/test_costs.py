"""Recommendations under a user's costs and limits: the utility that follows, the best run at each ratio, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.compare.decision.resource_limits import Limits
from app.compare.decision.target_shares import target_shares
from app.compare.decision.utility_metric import UserCosts, parse_requirements, utility_target
from app.compare.recommend.recommendation import recommend_views
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_view import RunView
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.tables.abstention_quality import RATIOS, Costs, at_ratio
from benchmarks.vocabulary import Estimate, Table
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import CONDITIONS, answered, side, sides

EXAMPLES = 60
IMAGE = dict.fromkeys(CONDITIONS, "IMAGE")
ABSTAIN = dict.fromkeys(CONDITIONS, "ABSTAIN")


def run_of(name: str, labels: dict[str, str], *, peak: int | None = 4 * 10**9, disk: int = 3 * 10**9) -> RunView:
    cost = RunCost(10, 10, 20.0, peak_memory=peak)
    every = {(f"e{i}", condition): label for i in range(EXAMPLES) for condition, label in labels.items()}
    return side(name, every, cost=cost, engines=({"weights_bytes": disk},))


def column(table: Table, name: str) -> list[object]:
    place = table.columns.index(name)
    return [cells[place] for _, cells in table.rows]


def test_the_utility_of_runs_that_always_do_one_thing_follows_from_the_costs() -> None:
    views = sides(run_of("image", IMAGE), run_of("abstain", ABSTAIN))
    user = UserCosts(Costs(wrong=1, needless=0.2, missed=3))
    # Of four conditions, following the image misses two conflicts; abstaining is needless in one.
    expected = [1 - 2 / 4 * 3 / 3, 1 - 1 / 4 * 0.2 / 3]
    assert target_shares(views, utility_target(views, user)).shares.tolist() == pytest.approx(expected)
    # With conflicts in a tenth of the questions: two of three conflicts are missed, nine in ten abstentions needless.
    rare = UserCosts(user.costs, 0.1)
    expected = [1 - 0.1 * 2 / 3 * 3 / 3, 1 - 0.9 * 0.2 / 3]
    assert target_shares(views, utility_target(views, rare)).shares.tolist() == pytest.approx(expected)
    none = UserCosts(user.costs, 0.0)
    assert target_shares(views, utility_target(views, none)).shares.tolist() == pytest.approx([1, 1 - 0.2 / 3])


def test_the_best_run_at_each_ratio_changes_where_arithmetic_says() -> None:
    table = recommend_views(sides(run_of("image", IMAGE), run_of("abstain", ABSTAIN))).cost_ratios
    assert table is not None
    assert [name for name, _ in table.rows] == [*RATIOS]
    # Abstaining costs a quarter of the ratio, following the image a half: equal at 2:1, where the first run is named.
    assert column(table, "best run") == ["abstain"] * 4 + ["image"] * 3
    leads = [cell.value for cell in column(table, "lead") if isinstance(cell, Estimate)]
    assert leads == pytest.approx([abs(0.5 - 0.25 * r) / max(1, r) for r in RATIOS.values()])


def test_costs_turn_the_recommendation() -> None:
    views = sides(run_of("image", IMAGE), run_of("abstain", ABSTAIN))
    assert recommend_views(views).decision.holds == (0,)
    cheap = recommend_views(views, user=UserCosts(Costs(needless=0.1)))
    assert cheap.decision.holds == (1,)
    assert "abstain" in cheap.summary
    assert "needless 0.1" in cheap.table.notes[0]


def test_limits_leave_runs_out_and_say_which() -> None:
    views = sides(
        run_of("large", IMAGE, peak=9 * 10**9), run_of("small", IMAGE, disk=2 * 10**9), run_of("other", IMAGE)
    )
    assert [run.label for run in recommend_views(views, limits=Limits(memory=5)).decision.basis.views.runs] == [
        "small",
        "other",
    ]
    limited = recommend_views(views, limits=Limits(memory=5, disk=2.5))
    assert [run.label for run in limited.decision.basis.views.runs] == ["small"]
    assert sum(line.startswith(("large is left out", "other is left out")) for line in limited.caveats) == 2
    unmeasured = sides(run_of("a", IMAGE, peak=None), run_of("b", IMAGE))
    assert [run.label for run in recommend_views(unmeasured, limits=Limits(memory=5)).decision.basis.views.runs] == [
        "b"
    ]
    with pytest.raises(SpecError):
        recommend_views(views, limits=Limits(seconds=0.1))


def test_requirements_as_typed() -> None:
    assert parse_requirements("") == (None, Limits())
    typed = "needless=0.2, memory=8, conflict=0.1, seconds=2"
    assert parse_requirements(typed) == (UserCosts(Costs(needless=0.2), 0.1), Limits(memory=8, seconds=2))
    for wrong in ("memory=", "memory=x", "memory=-1", "conflict=3", "needless=-1", "speed=3"):
        with pytest.raises(SpecError):
            parse_requirements(wrong)


def test_costs_need_labels_that_abstain_and_answers_of_both_kinds() -> None:
    views = sides(run_of("a", {"aligned": "BOTH"}), run_of("b", {"aligned": "BOTH"}))
    with pytest.raises(SpecError):
        recommend_views(views, user=UserCosts(conflict_share=0.1))
    with pytest.raises(SpecError):
        recommend_views(views, user=UserCosts(), metric="MFR")


# --- by command -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """Two models that answer as policies do, and a policy, on the demo's charts as a user's own rows."""
    home = Workspace(tmp_path_factory.mktemp("costs") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for policy in ("always-image", "always-abstain"):
        answered(home, policy, f"policy:{policy}", 12)
        with RunStore.open(home.runs_folder / policy) as store:
            store.set_meta("spec", {**store.meta("spec"), "model": f"org/{policy}"})
    answered(home, "floor", "policy:always-text", 12)
    return Rashomon(home.path.parent)


@pytest.mark.slow
def test_the_command_takes_costs_and_prints_the_ratios(rashomon: Rashomon) -> None:
    runs = ("always-image", "always-abstain", "floor")
    parsed = rashomon.json("recommend", *runs, "--costs", "needless=0.1")
    assert parsed["best"] == "always-abstain"
    assert len(parsed["cost_ratios"]["rows"]) == len(RATIOS)
    shown = rashomon.run("recommend", *runs, "--conflict-share", "0.1").stdout
    assert "The best run at each cost ratio" in shown
    assert "policy:always-text" in shown


@pytest.mark.parametrize(
    "options",
    [
        ("--costs", "wrong=-1"),
        ("--costs", "typo=1"),
        ("--conflict-share", "1.5"),
        ("--max-memory", "-1"),
        ("--max-disk", "1"),  # the size on disk of these runs is unknown
        ("--costs", "wrong=1", "--plan"),
        ("--costs", "wrong=1", "--metric", "MFR"),
    ],
)
def test_what_cannot_be_decided_is_refused(rashomon: Rashomon, options: tuple[str, ...]) -> None:
    assert "Traceback" not in rashomon.run("recommend", "always-image", "always-abstain", *options, code=2).stderr


@pytest.mark.slow
def test_tables_and_figures_of_abstention_are_exported(rashomon: Rashomon, tmp_path: Path) -> None:
    out = tmp_path / "files"
    rashomon.run("export", "always-image", "always-abstain", "floor", "--format", "csv,svg", "--out", out)
    names = {path.name for path in out.iterdir()}
    for table in ("abstention", "risk-coverage", "utility"):
        assert {f"{table}.csv", f"{table}.svg"} <= names


# --- coverage of the interval ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("conflict_share", [None, 0.1])
def test_the_interval_of_a_lead_contains_the_truth_as_often_as_it_says(conflict_share: float | None) -> None:
    random = np.random.default_rng(5)
    user = UserCosts(at_ratio(0.5), conflict_share)
    truths = ({"aligned": 0.2, "conflict": 0.5}, {"aligned": 0.1, "conflict": 0.4})
    right = 0.6
    shares = (0.25, 0.75) if conflict_share is None else (1 - conflict_share, conflict_share)
    utilities = [
        shares[0] * (t["aligned"] * 0.5 + (1 - t["aligned"]) * right)
        + shares[1] * (t["conflict"] + (1 - t["conflict"]) * right)
        for t in truths
    ]
    hits = 0
    for _ in range(1000):
        runs = [_drawn(random, name, truth, right) for name, truth in zip("ab", truths, strict=True)]
        views = sides(*runs)
        low, high = target_shares(views, utility_target(views, user)).difference(0, 1).interval()
        hits += low <= utilities[0] - utilities[1] <= high
    assert 925 <= hits <= 980, hits


def _drawn(random: np.random.Generator, name: str, truth: dict[str, float], right: float) -> RunView:
    labels = {}
    for i in range(80):
        for condition in CONDITIONS:
            abstains = random.random() < truth["aligned" if condition == "aligned" else "conflict"]
            good = {"aligned": "BOTH", "image-correct": "IMAGE", "text-correct": "TEXT", "both-wrong": "NEITHER"}[
                condition
            ]
            bad = {"aligned": "NEITHER", "image-correct": "TEXT", "text-correct": "IMAGE", "both-wrong": "IMAGE"}[
                condition
            ]
            labels[f"e{i}", condition] = "ABSTAIN" if abstains else good if random.random() < right else bad
    return side(name, labels)
