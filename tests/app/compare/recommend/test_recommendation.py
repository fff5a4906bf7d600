"""Recommendations: non-inferiority within a margin, the smallest and fastest run, their sentences, and sample sizes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.compare.decision.sample_size import plan
from app.compare.decision.target_metric import target_metric
from app.compare.decision.target_shares import target_shares
from app.compare.recommend.recommendation import Recommendation, recommend, recommend_views
from app.compare.recommend.recommended_runs import decide
from app.compare.runs.packed_answers import LabelledAnswer
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_view import RunView
from app.report.tables.table_rendering import cell_text
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.text.percentage_points import format_points
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Cell, Estimate, Table
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, answered, basis_of, side, sides, simulated

MARGIN = 0.05
REPETITIONS = 1000


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with three models that answer as policies do, and two policies, on the demo's charts."""
    home = Workspace(tmp_path_factory.mktemp("decided") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for policy in ("always-image", "always-text", "always-abstain"):
        answered(home, policy, f"policy:{policy}", 40)
        with RunStore.open(home.runs_folder / policy) as store:
            store.set_meta("spec", {**store.meta("spec"), "model": f"org/{policy}"})
    for policy in ("always-text", "always-image"):
        answered(home, f"floor-{policy}", f"policy:{policy}", 40)
    return home.path


def value(cell: Cell) -> float | None:
    assert isinstance(cell, Estimate)
    return cell.value


def cells(table: Table, label: str) -> dict[str, Cell]:
    return dict(zip(table.columns, dict(table.rows)[label], strict=True))


def costs(*seconds_and_bytes: tuple[float, int]) -> list[RunCost]:
    return [RunCost(10, 10, 10 * seconds, peak_memory=size) for seconds, size in seconds_and_bytes]


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
    decisions = [decide(basis_of(simulated(random, 150, 4, [0.0])), MARGIN).holds for _ in range(REPETITIONS)]
    assert sum(1 in holds for holds in decisions) > 950
    few = [decide(basis_of(simulated(random, 40, 1, [0.0])), MARGIN).holds for _ in range(REPETITIONS)]
    assert sum(1 in holds for holds in few) < 500  # and few of them tell less, instead of more


# --- the decision --------------------------------------------------------------------------------


def test_the_smallest_and_the_fastest_are_among_those_that_hold() -> None:
    random = np.random.default_rng(0)
    right = simulated(random, 400, 4, [0.0, 0.0, 0.3], noise=0.02)
    decision = decide(basis_of(right, costs((0.3, 8), (0.2, 4), (0.25, 5), (0.1, 2))), MARGIN)
    assert decision.holds == (0, 1, 2)  # the fourth is smaller and faster, and worse
    assert (decision.smallest, decision.fastest) == (1, 1)
    decision = decide(basis_of(right, costs((0.3, 8), (0.2, 5), (0.25, 4), (0.1, 2))), MARGIN)
    assert (decision.smallest, decision.fastest) == (2, 1)
    partial_costs = costs((0.3, 8), (0.2, 5), (0.25, 4), (0.1, 2))
    decision = decide(basis_of(right, [*partial_costs[:2], RunCost(10), *partial_costs[3:]]), MARGIN)
    assert (decision.smallest, decision.fastest) == (None, None)  # the one that was not measured might be it


def test_agreeing_on_a_handful_of_answers_shows_nothing() -> None:
    same = np.ones((8, 4, 2), dtype=bool)
    assert decide(basis_of(same), 0.03).holds == ()
    assert decide(basis_of(np.repeat(same, 50, axis=0)), 0.03).holds == (0, 1)


def test_a_difference_that_is_not_significant_is_not_yet_as_good() -> None:
    random = np.random.default_rng(8)
    decision = decide(basis_of(simulated(random, 60, 1, [0.04], noise=0.2)), 0.03)
    low, high = decision.basis.difference(1, 0).interval()
    assert low < 0 < high  # "no significant difference"
    assert 1 not in decision.holds


def test_the_bound_is_on_pairs_that_all_runs_have_labelled() -> None:
    every = {(f"e{i}", c): "BOTH" for i in range(20) for c in CONDITIONS}
    partial = {key: ("error" if key[0] in ("e0", "e1") else label) for key, label in every.items()}
    of = sides(side("a", every), side("b", partial))
    shares = target_shares(of, target_metric(of, None))
    assert (shares.examples, shares.clusters.count, len(shares.group)) == (18, 18, 72)
    of = sides(side("a", every), side("b", dict.fromkeys(every, "error")))
    with pytest.raises(SpecError, match="no instance that counts for accuracy is labelled by match@4 in all"):
        target_shares(of, target_metric(of, None))


def test_only_a_share_of_all_answers_can_decide() -> None:
    of = sides(side("a", {}), side("b", {}))
    with pytest.raises(SpecError, match="MPB Img is no share of all answers"):
        target_metric(of, "mpb img")
    with pytest.raises(SpecError, match="did you mean 'HR'"):
        target_metric(of, "HRR")
    with pytest.raises(SpecError, match="a lower accuracy is not better"):
        target_metric(of, None, lower_is_better=True)


# --- in words ------------------------------------------------------------------------------------


def sentences(recommendation: Recommendation) -> str:
    return "\n".join((*recommendation.advice, *recommendation.behaviour, *recommendation.caveats))


@pytest.mark.slow
def test_baselines_are_told_apart_in_words(demo_runs: Path) -> None:
    recommendation = recommend([demo_runs / "runs" / name for name in ("always-image", "always-abstain")])
    text = sentences(recommendation)
    assert (
        "Among the models only, the choice would be always-image (50.0%), the only run that is shown to be within 3 points of "
        "the best by decision accuracy."
    ) in recommendation.advice
    assert len(recommendation.behaviour) == 3, "a line for each way of being in conflict"
    for when in ("When only the image is right", "When only the text is right", "When both are wrong"):
        assert f"{when}, always-abstain " in text
    assert "abstains in 100% of 40 answers, always-image in 0% (+100 points; " in text
    assert "at 95%, simultaneous over 6 intervals)" in text
    assert "always-abstain is worse than always-image by more than the margin: 25 points." in text
    assert "labelled by match@4, an approximation by rule" in text
    assert "They do not carry over to other data, prompts or decoding." in text
    first = cells(recommendation.table, "always-image")
    assert (value(first["decision accuracy"]), first["better by"], first["holds"]) == (0.5, None, "yes, the best value")
    other = cells(recommendation.table, "always-abstain")
    assert (value(other["decision accuracy"]), value(other["better by"]), other["holds"]) == (0.25, -0.25, "no")
    assert (value(other["at least"]) or 0) < -0.25


def test_models_without_a_baseline_beside_them_are_told_so(demo_runs: Path) -> None:
    models = [demo_runs / "runs" / name for name in ("always-image", "always-text")]
    caveat = "These runs include no policy, such as policy:always-text"
    assert caveat in sentences(recommend(models))
    assert caveat not in sentences(recommend([*models, demo_runs / "runs" / "floor-always-text"]))


def test_a_policy_is_a_floor_and_never_recommended(demo_runs: Path) -> None:
    floor = demo_runs / "runs" / "floor-always-text"
    models = [demo_runs / "runs" / name for name in ("always-image", "always-abstain")]
    without, beside = recommend(models), recommend([*models, floor])
    assert beside.decision.holds == without.decision.holds == (0,)
    assert [side.label for side in beside.decision.basis.views.runs] == ["always-image", "always-abstain"]
    assert cells(beside.table, "policy:always-text")["holds"] == "floor"
    floor_line = beside.advice[0]
    assert floor_line.startswith(
        "policy:always-text is a rule that answers without looking (always the text's value): a floor that a model must beat, "
        "not a candidate. Neither model is shown to beat policy:always-text by decision accuracy: "
    )
    assert beside.summary.startswith("policy:always-text is a rule that answers without looking")
    assert "No model is shown to beat policy:always-text by decision accuracy." in beside.summary
    assert "always-image 50.0% against 50.0% (0 points; " in floor_line
    assert "always-abstain 25.0% against 50.0% (-25 points; " in floor_line
    assert "; n = 160 answers to 40 examples)" in floor_line
    for take in (without.advice, beside.advice):
        assert any("mong the models only, the choice would be always-image (50.0%), " in line for line in take)


def test_policies_alone_are_no_choice(demo_runs: Path) -> None:
    recommendation = recommend([demo_runs / "runs" / f"floor-always-{what}" for what in ("text", "image")])
    assert recommendation.decision.holds == ()
    assert recommendation.decision.smallest is recommendation.decision.fastest is None
    assert recommendation.advice[0].startswith("There is no model among these runs.")
    assert {cells(recommendation.table, label)["holds"] for label, _ in recommendation.table.rows} == {"floor"}


def test_one_model_is_put_beside_the_strongest_floor(demo_runs: Path) -> None:
    floors = [demo_runs / "runs" / f"floor-always-{what}" for what in ("text", "image")]
    line = recommend([demo_runs / "runs" / "always-abstain", *floors]).advice[0]
    assert ": a floor that a model must beat, not a candidate. always-abstain does worse than policy:always-" in line
    better = recommend([demo_runs / "runs" / "always-abstain", *floors], metric="CDR").advice
    assert any(
        line.startswith("always-abstain beats policy:always-") and "100.0% against 0.0% (+100 points; " in line
        for line in better
    )


def test_a_lower_figure_below_the_floor_beats_it(demo_runs: Path) -> None:
    runs = [demo_runs / "runs" / name for name in ("always-abstain", "always-text", "floor-always-image")]
    worse = recommend([runs[0], runs[2]], metric="HR").advice
    assert any(
        "always-abstain does worse than policy:always-image in HR: 100.0% against 0.0% (+100 points; " in line
        for line in worse
    )


def reads(name: str, images: int, *, examples: int = 52) -> RunView:
    """Return a run that is right on half of the answers, on ``images`` images alone and on all texts alone."""
    both = {(f"e{i}", c): RIGHT[c] if i % 2 else WRONG[c] for i in range(examples) for c in CONDITIONS}
    run = side(name, both)
    alone = {
        f"e{i}/image-only": LabelledAnswer(f"e{i}", "image-only", "IMAGE" if i < images else "NEITHER", 0, "image")
        for i in range(examples)
    }
    alone |= {f"e{i}/text-only": LabelledAnswer(f"e{i}", "text-only", "TEXT", 0, "text") for i in range(examples)}
    return replace(run, answers={**run.answers, **alone})


def test_models_that_cannot_read_an_image_are_told_so_first_and_no_more_examples_are_asked_for() -> None:
    recommendation = recommend_views(sides(reads("a", 0), reads("b", 1)), margin=0.001)
    assert recommendation.advice[0].startswith(
        "Neither model reads the images: with the image alone, a is right on 0 of 52 (0.0%, "
    )
    assert "b is right on 1 of 52 (1.9%, " in recommendation.advice[0]
    assert "More rows will not help" in recommendation.advice[0]
    assert "would tell" not in sentences(recommendation)
    assert recommendation.single_sources is not None
    assert value(cells(recommendation.single_sources, "a")["image alone"]) == 0
    assert value(cells(recommendation.single_sources, "b")["text alone"]) == 1


def test_empty_answers_to_one_source_are_counted_beside_its_share() -> None:
    run = reads("a", 52)
    empty = {f"none{i}": LabelledAnswer(f"none{i}", "image-only", "empty", 0, "image") for i in range(8)}
    table = recommend_views(sides(replace(run, answers={**run.answers, **empty}), reads("b", 52))).single_sources
    assert table is not None
    assert cell_text(cells(table, "a")["image alone"]).endswith(" n=52/60")
    assert "n=" not in cell_text(cells(table, "b")["image alone"])


def test_one_model_of_two_that_cannot_read_is_named_and_examples_still_tell() -> None:
    recommendation = recommend_views(sides(reads("a", 0), reads("b", 50)), margin=0.001)
    assert recommendation.advice[-1].startswith(
        "a does not read the images: with the image alone, it is right on 0 of 52"
    )
    assert "would tell" in sentences(recommendation)
    few = recommend_views(sides(reads("a", 1, examples=3), reads("b", 3, examples=3)))
    assert "does not read" not in sentences(few), "three answers show nothing"


def test_a_wrong_image_alone_says_nothing_of_reading(demo_runs: Path) -> None:
    recommendation = recommend([demo_runs / "runs" / name for name in ("always-image", "always-abstain")])
    assert recommendation.single_sources is not None
    cell = cells(recommendation.single_sources, "always-image")["image alone"]
    assert isinstance(cell, Estimate)
    assert (cell.value, cell.n) == (1, 40), "40 examples, each with its right image and a wrong one"


# --- memory --------------------------------------------------------------------------------------


def sized(name: str, disk: int, peak: int | None, seconds: float) -> RunView:
    every = {(f"e{i}", c): "BOTH" for i in range(400) for c in CONDITIONS}
    cost = RunCost(10, 10, 10 * seconds, peak_memory=peak)
    return side(name, every, cost=cost, engines=({"weights_bytes": disk},))


def test_short_of_memory_the_measured_peak_decides_and_not_the_size_on_disk() -> None:
    recommendation = recommend_views(
        sides(sized("big", 8_000_000, 50_000_000, 2), sized("4bit", 3_000_000, 84_000_000, 1))
    )
    assert (
        recommendation.decision.least_memory,
        recommendation.decision.smallest_on_disk,
        recommendation.decision.smallest,
    ) == (0, 1, 0)
    assert (
        "For the least memory: big (50.0 MB at its measured peak; up to 84.0 MB for the others; the weights of others are "
        "smaller, but images and batches take most of so small a peak)." in recommendation.advice
    )
    assert "For the least disk space: 4bit (3.0 MB on disk)." in recommendation.advice
    assert not [line for line in recommendation.advice if "For the least memory" in line and "4bit" in line]


def test_a_peak_that_was_not_measured_is_said_and_disk_is_called_disk() -> None:
    recommendation = recommend_views(sides(sized("big", 8_000_000, None, 2), sized("4bit", 3_000_000, 84_000_000, 1)))
    assert (recommendation.decision.least_memory, recommendation.decision.smallest) == (None, 1)
    assert "is the smallest on disk (3.0 MB on disk) and is the fastest" in recommendation.advice[0]
    assert not any("For the least memory" in line for line in recommendation.advice)
    assert any(line.startswith("Peak memory was not measured for big, so") for line in recommendation.caveats)


def test_a_run_is_called_the_fastest_only_if_it_leads_by_over_ten_percent() -> None:
    def first_line(seconds: float) -> str:
        return recommend_views(sides(sized("big", 8, 90, seconds), sized("small", 3, 50, 0.0348))).advice[0]

    assert "is the fastest" not in first_line(0.036)
    assert "no other is over 10% faster" in first_line(0.036)
    assert "is the fastest" in first_line(0.045)
    assert "no other is over 10% faster" in first_line(0.033)


def test_the_number_of_examples_that_would_tell_is_said() -> None:
    labels = {(f"e{n}", c): RIGHT[c] if n % 2 else WRONG[c] for n in range(60) for c in CONDITIONS}
    other = {(f"e{n}", c): WRONG[c] if n % 2 else RIGHT[c] for n in range(60) for c in CONDITIONS}
    recommendation = recommend_views(sides(side("a", labels), side("b", other)))
    (needed,) = re.findall(
        r"About ([\d,]+) examples would show that .* \(not which is better\); you have 60\.", recommendation.summary
    )
    assert 500 < int(needed.replace(",", "")) < 20_000


def test_a_lower_figure_can_be_the_better_one(demo_runs: Path) -> None:
    folders = [demo_runs / "runs" / name for name in ("always-abstain", "always-text")]
    recommendation = recommend(folders, metric="HR")
    assert (
        "No run can be recommended yet; among the models only, the choice would be always-text (0.0%), the only run that is "
        "shown to be within 3 points of the best in HR."
    ) in recommendation.advice
    assert value(cells(recommendation.table, "always-text")["HR"]) == 0
    assert value(cells(recommendation.table, "always-abstain")["HR"]) == 1
    assert value(cells(recommendation.table, "always-abstain")["better by"]) == -1


def test_what_is_too_few_or_unlabelled_is_said(demo_runs: Path) -> None:
    folders = [demo_runs / "runs" / name for name in ("always-image", "always-text")]
    text = sentences(recommend(folders))
    assert "None of the models is shown to be within 3 points" in text
    assert "not even always-image (50.0%), which has the best value here" in text
    assert "may or may not be within the margin" in text
    with pytest.raises(SpecError, match="one run is not a choice"):
        recommend(folders[:1])
    with pytest.raises(SpecError, match="always-image is named twice"):
        recommend([folders[0], folders[1], folders[0]])
    with pytest.raises(SpecError, match="above 0 and below 1"):
        recommend(folders, margin=3)


def test_points_read_well() -> None:
    assert [format_points(x) for x in (0.03, 0.0125, 0.5, -0.004)] == ["3", "1.2", "50", "-0.4"]
    assert [format_points(x, sign=True) for x in (0.03, -0.03, 0.0)] == ["+3", "-3", "0"]


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_says_how_many_examples_an_interval_takes(demo_runs: Path) -> None:
    folders = [demo_runs / "runs" / "always-image"]
    _, table = plan(folders, width=0.1, margin=0.03)
    cells_now = cells(table, "always-image / MFR")
    assert cells_now["examples now"] == 40
    assert cells_now["instances"] == 8 * int(str(cells_now["examples"]))
    assert value(cells_now["hours"]) is None  # a policy takes no time
    assert any("The build has 144 examples." in note for note in table.notes)
    half = cells(plan(folders, width=0.05, margin=0.03)[1], "always-image / MFR")
    assert int(str(half["examples"])) == pytest.approx(4 * int(str(cells_now["examples"])), abs=4)
    with pytest.raises(SpecError, match="--width"):
        plan(folders, width=0, margin=0.03)


def test_a_planned_number_of_examples_gives_the_planned_width(demo_runs: Path) -> None:
    # 40 examples of which half are right under the four conditions, the two of them always: no spread; so one of three runs.
    folders = [demo_runs / "runs" / name for name in ("always-image", "always-text")]
    _, table = plan(folders, width=0.1, margin=0.05)
    rows = [label for label, _ in table.rows if " beside " in label]
    assert len(rows) == 2
    assert rows[1].endswith("to show the margin 0.05")


def test_the_width_of_a_plan_is_reached_by_as_many_examples() -> None:
    """Widths shrink with the square root of the number of examples, over ten pilots of 200."""
    wanted, reached = 0.04, []
    for seed in range(10):
        random = np.random.default_rng(seed)
        low, high = basis_of(simulated(random, 200, 4, [0.02])).difference(1, 0).interval()
        examples = math.ceil(200 * ((high - low) / wanted) ** 2)
        low, high = basis_of(simulated(random, examples, 4, [0.02])).difference(1, 0).interval()
        reached.append(high - low)
    assert np.mean(reached) == pytest.approx(wanted, rel=0.1)
    assert max(reached) < 1.3 * wanted


def test_the_command_tells_and_plans(demo_runs: Path) -> None:
    rashomon = Rashomon(demo_runs.parent)
    parsed = rashomon.json("recommend", "always-image", "always-abstain")
    assert (parsed["best"], parsed["holds"], parsed["smallest"]) == ("always-image", ["always-image"], None)
    assert "What remains unknown" in rashomon.run("recommend", "always-image", "always-abstain").stdout
    assert (
        "examples now"
        in rashomon.run("recommend", "always-image", "--plan", "--all", "--width", "0.1", "--metric", "MFR").stdout
    )
    assert "one run is not a choice" in rashomon.run("recommend", "always-image", code=2).stderr


@pytest.mark.slow
def test_a_plan_answers_in_one_sentence_for_the_rule_in_use(demo_runs: Path) -> None:
    rashomon = Rashomon(demo_runs.parent)
    runs = ("always-image", "always-text")
    first, *others = rashomon.run("recommend", *runs, "--plan", "--trust", "image").stdout.splitlines()
    assert re.match(
        r"About [\d,]+ examples show .* your rule .* Which is better is .* about [\d,]+ .* You have 40\.", first
    )
    assert len(others) == 1
    assert "your rule" not in rashomon.run("recommend", *runs, "--plan").stdout
    alone = rashomon.run("recommend", "always-image", "--plan", "--width", "0.1").stdout
    assert re.match(r"About [\d,]+ examples .* 10 points wide", alone)
    rashomon.run("recommend", *runs, "--plan", "--trust", "image", "--metric", "MFR", code=2)
