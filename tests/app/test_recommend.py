"""Which run to take: as good as the best within a margin, the smallest and fastest, in words; and what a plan says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.compare.decide import basis, decide, measure_of
from app.compare.plan import plan
from app.compare.recommend import Recommendation, points, recommend, recommend_of
from app.compare.sides import Cost, load
from app.store.workspace import Workspace
from benchmarks.base import Cell, Estimate, Table, get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from tests.app.compared import CONDITIONS, answered, basis_of, side, sides, simulated
from tests.support.command import ROOT, Rashomon

MARGIN = 0.05
REPETITIONS = 1000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with runs of three policies on the demo's charts."""
    home = Workspace(tmp_path_factory.mktemp("decided") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for policy in ("always-image", "always-text", "always-abstain"):
        answered(home, policy, f"policy:{policy}", 40)
    return home.path


def value(cell: Cell) -> float | None:
    assert isinstance(cell, Estimate)
    return cell.value


def cells(table: Table, label: str) -> dict[str, Cell]:
    return dict(zip(table.columns, dict(table.rows)[label], strict=True))


def costs(*seconds_and_bytes: tuple[float, int]) -> list[Cost]:
    return [Cost(10, 10, 10 * seconds, peak_memory=size) for seconds, size in seconds_and_bytes]


# --- error rates on runs of known truth ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "conditions"), [(40, 1), (150, 1), (150, 4), (600, 4)])
@pytest.mark.parametrize("worse", [(MARGIN,), (MARGIN, MARGIN), (0.0, MARGIN)])
def test_a_run_that_is_worse_by_the_margin_is_said_to_hold_in_five_of_a_hundred(
    examples: int, conditions: int, worse: tuple[float, ...]
) -> None:
    random = np.random.default_rng(examples * 10 + conditions + len(worse))
    false = 0
    for _ in range(REPETITIONS):
        holds = decide(basis_of(simulated(random, examples, conditions, worse)), MARGIN).holds
        false += any(less >= MARGIN and i + 1 in holds for i, less in enumerate(worse))
    assert false <= 65  # of 1,000: 5%, and two standard errors


@pytest.mark.slow
def test_runs_that_are_as_good_in_truth_are_found_by_enough_examples() -> None:
    random = np.random.default_rng(3)
    found = [decide(basis_of(simulated(random, 150, 4, [0.0])), MARGIN).holds for _ in range(REPETITIONS)]
    assert sum(1 in holds for holds in found) > 950
    few = [decide(basis_of(simulated(random, 40, 1, [0.0])), MARGIN).holds for _ in range(REPETITIONS)]
    assert sum(1 in holds for holds in few) < 500  # and few of them tell less, instead of more


# --- the decision --------------------------------------------------------------------------------


def test_the_smallest_and_the_fastest_are_among_those_that_hold() -> None:
    random = np.random.default_rng(0)
    right = simulated(random, 400, 4, [0.0, 0.0, 0.3], noise=0.02)
    found = decide(basis_of(right, costs((0.3, 8), (0.2, 4), (0.25, 5), (0.1, 2))), MARGIN)
    assert found.holds == (0, 1, 2)  # the fourth is smaller and faster, and worse
    assert (found.smallest, found.fastest) == (1, 1)
    found = decide(basis_of(right, costs((0.3, 8), (0.2, 5), (0.25, 4), (0.1, 2))), MARGIN)
    assert (found.smallest, found.fastest) == (2, 1)
    some = costs((0.3, 8), (0.2, 5), (0.25, 4), (0.1, 2))
    found = decide(basis_of(right, [*some[:2], Cost(10), *some[3:]]), MARGIN)
    assert (found.smallest, found.fastest) == (None, None)  # the one that was not measured might be it


def test_agreeing_on_a_handful_of_answers_shows_nothing() -> None:
    same = np.ones((8, 4, 2), dtype=bool)
    assert decide(basis_of(same), 0.03).holds == ()
    assert decide(basis_of(np.repeat(same, 50, axis=0)), 0.03).holds == (0, 1)


def test_a_difference_that_is_not_significant_is_not_yet_as_good() -> None:
    random = np.random.default_rng(8)
    found = decide(basis_of(simulated(random, 60, 1, [0.04], noise=0.2)), 0.03)
    low, high = found.basis.difference(1, 0).interval()
    assert low < 0 < high  # "no significant difference"
    assert 1 not in found.holds


def test_the_bound_is_on_pairs_that_all_runs_have_labelled() -> None:
    every = {(f"e{i}", c): "BOTH" for i in range(20) for c in CONDITIONS}
    some = {key: ("error" if key[0] in ("e0", "e1") else label) for key, label in every.items()}
    of = sides(side("a", every), side("b", some))
    found = basis(of, measure_of(of, None))
    assert (found.groups, len(found.group)) == (18, 72)
    of = sides(side("a", every), side("b", dict.fromkeys(every, "error")))
    with pytest.raises(SpecError, match="no instance that accuracy is made of is labelled by match@2 in all"):
        basis(of, measure_of(of, None))


def test_only_a_share_of_all_answers_can_decide() -> None:
    of = sides(side("a", {}), side("b", {}))
    with pytest.raises(SpecError, match="MPB Img is no share of all answers"):
        measure_of(of, "mpb img")
    with pytest.raises(SpecError, match="did you mean 'HR'"):
        measure_of(of, "HRR")
    with pytest.raises(SpecError, match="a lower accuracy is not better"):
        measure_of(of, None, lower_is_better=True)


# --- in words ------------------------------------------------------------------------------------


def said(found: Recommendation) -> str:
    return "\n".join((*found.take, *found.does, *found.unknown))


def test_baselines_are_told_apart_in_words(made: Path) -> None:
    found = recommend([made / "runs" / name for name in ("always-image", "always-abstain")])
    told = said(found)
    assert found.take == (
        "Take policy:always-image (50.0%): it is the only one that is shown to be within 3 points of the best in accuracy.",
    )
    assert len(found.does) == 3, "a line for each way of being in conflict"
    for when in ("When the image alone is right", "When the text alone is right", "When both are wrong"):
        assert f"{when}, policy:always-abstain " in told
    assert "abstains in 100% of 40 answers, policy:always-image in 0% (+100 points; " in told
    assert "at 95%, all 6 such figures together)" in told
    assert "policy:always-abstain is worse than policy:always-image by more than the margin: 25 points." in told
    assert "labelled by match@2, an approximation by rule" in told
    assert "Of other data, prompts and decoding they say nothing." in told
    first = cells(found.table, "policy:always-image")
    assert (value(first["accuracy"]), first["better by"], first["holds"]) == (0.5, None, "yes, the best figure")
    other = cells(found.table, "policy:always-abstain")
    assert (value(other["accuracy"]), value(other["better by"]), other["holds"]) == (0.25, -0.25, "no")
    assert (value(other["at least"]) or 0) < -0.25


def test_models_without_a_baseline_beside_them_are_told_so(made: Path) -> None:
    baselines = load([made / "runs" / name for name in ("always-image", "always-text")])
    models = [replace(each, spec={**each.spec, "model": f"org/{each.name}"}) for each in baselines.sides]
    said_so = "is better than a model that reads nothing cannot be said: no policy, such as policy:always-text"
    assert said_so in said(recommend_of(replace(baselines, sides=tuple(models))))
    assert said_so not in said(recommend_of(replace(baselines, sides=(models[0], baselines.sides[1]))))


def test_a_lower_figure_can_be_the_better_one(made: Path) -> None:
    folders = [made / "runs" / name for name in ("always-abstain", "always-text")]
    found = recommend(folders, metric="HR", lower_is_better=True)
    assert found.take == (
        "Take policy:always-text (0.0%): it is the only one that is shown to be within 3 points of the best in HR.",
    )
    assert value(cells(found.table, "policy:always-text")["HR"]) == 0
    assert value(cells(found.table, "policy:always-abstain")["HR"]) == 1
    assert value(cells(found.table, "policy:always-abstain")["better by"]) == -1


def test_what_is_too_few_or_unlabelled_is_said(made: Path) -> None:
    folders = [made / "runs" / name for name in ("always-image", "always-text")]
    told = said(recommend(folders))
    assert "Nothing can be recommended yet: none is shown to be within 3 points" in told
    assert "not even policy:always-image (50.0%), which has the best figure here" in told
    assert "is not shown to hold, nor to fail" in told
    with pytest.raises(SpecError, match="one run is not a choice"):
        recommend(folders[:1])
    with pytest.raises(SpecError, match="always-image is named twice"):
        recommend([folders[0], folders[1], folders[0]])
    with pytest.raises(SpecError, match="no share between 0 and 1"):
        recommend(folders, margin=3)


def test_points_read_well() -> None:
    assert [points(x) for x in (0.03, 0.0125, 0.5, -0.004)] == ["3", "1.2", "50", "-0.4"]
    assert [points(x, sign=True) for x in (0.03, -0.03, 0.0)] == ["+3", "-3", "0"]


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_says_how_many_examples_an_interval_takes(made: Path) -> None:
    folders = [made / "runs" / "always-image"]
    table = plan(folders, width=0.1, margin=0.03)
    told = cells(table, "policy:always-image / MFR")
    assert told["examples now"] == 40
    assert told["instances"] == 8 * int(str(told["examples"]))
    assert value(told["hours"]) is None  # a policy takes no time
    assert any("The build has 144 examples." in note for note in table.notes)
    half = cells(plan(folders, width=0.05, margin=0.03), "policy:always-image / MFR")
    assert int(str(half["examples"])) == pytest.approx(4 * int(str(told["examples"])), abs=4)
    with pytest.raises(SpecError, match="--width 0 is no share"):
        plan(folders, width=0, margin=0.03)


def test_a_planned_number_of_examples_gives_the_planned_width(made: Path) -> None:
    # 40 examples of which half are right under the four conditions, the two of them always: no spread; so one of three runs.
    folders = [made / "runs" / name for name in ("always-image", "always-text")]
    table = plan(folders, width=0.1, margin=0.05)
    rows = [label for label, _ in table.rows if " beside " in label]
    assert len(rows) == 2
    assert rows[1].endswith("to show the margin 0.05")


def test_the_width_of_a_plan_is_reached_by_as_many_examples() -> None:
    random = np.random.default_rng(1)
    pilot = basis_of(simulated(random, 200, 4, [0.02]))
    wanted = 0.04
    examples = pilot.difference(1, 0).groups_for(wanted / 2 / 1.959964)
    low, high = basis_of(simulated(random, examples, 4, [0.02])).difference(1, 0).interval()
    assert high - low == pytest.approx(wanted, rel=0.15)


def test_the_command_tells_and_plans(made: Path) -> None:
    rashomon = Rashomon(made.parent)
    told = rashomon.run("recommend", "always-image", "always-abstain", "--json").stdout
    parsed = json.loads(told)
    assert (parsed["best"], parsed["holds"], parsed["smallest"]) == ("always-image", ["always-image"], None)
    assert "What cannot be said" in rashomon.run("recommend", "always-image", "always-abstain").stdout
    assert (
        "examples now"
        in rashomon.run("recommend", "always-image", "--plan", "--width", "0.1", "--metric", "MFR").stdout
    )
    assert "one run is not a choice" in rashomon.run("recommend", "always-image", code=2).stderr
