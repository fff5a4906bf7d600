"""Which run to take: as good as the best within a margin, the smallest and fastest, in words; and what a plan says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.compare.non_inferiority import basis, decide, measure_of
from app.compare.recommend import Recommendation, points, recommend, recommend_of
from app.compare.run_view import LabelledAnswer, RunCost, RunView
from app.compare.sample_size import plan
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Cell, Estimate, Table, get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, answered, basis_of, side, sides, simulated

MARGIN = 0.05
REPETITIONS = 1000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with three models that answer as policies do, and two policies, on the demo's charts."""
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
    found = decide(basis_of(right, [*some[:2], RunCost(10), *some[3:]]), MARGIN)
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
    assert (
        "Between the models alone: take always-image (50.0%): it is the only one that is shown to be within 3 points of the best "
        "in accuracy."
    ) in found.take
    assert len(found.does) == 3, "a line for each way of being in conflict"
    for when in ("When the image alone is right", "When the text alone is right", "When both are wrong"):
        assert f"{when}, always-abstain " in told
    assert "abstains in 100% of 40 answers, always-image in 0% (+100 points; " in told
    assert "at 95%, all 6 such figures together)" in told
    assert "always-abstain is worse than always-image by more than the margin: 25 points." in told
    assert "labelled by match@2, an approximation by rule" in told
    assert "Of other data, prompts and decoding they say nothing." in told
    first = cells(found.table, "always-image")
    assert (value(first["accuracy"]), first["better by"], first["holds"]) == (0.5, None, "yes, the best figure")
    other = cells(found.table, "always-abstain")
    assert (value(other["accuracy"]), value(other["better by"]), other["holds"]) == (0.25, -0.25, "no")
    assert (value(other["at least"]) or 0) < -0.25


def test_models_without_a_baseline_beside_them_are_told_so(made: Path) -> None:
    models = [made / "runs" / name for name in ("always-image", "always-text")]
    said_so = "is better than a model that reads nothing cannot be said: no policy, such as policy:always-text"
    assert said_so in said(recommend(models))
    assert said_so not in said(recommend([*models, made / "runs" / "floor-always-text"]))


def test_a_policy_is_a_floor_and_never_recommended(made: Path) -> None:
    floor = made / "runs" / "floor-always-text"
    models = [made / "runs" / name for name in ("always-image", "always-abstain")]
    without, beside = recommend(models), recommend([*models, floor])
    assert beside.decision.holds == without.decision.holds == (0,)
    assert [side.label for side in beside.decision.basis.sides.sides] == ["always-image", "always-abstain"]
    assert cells(beside.table, "policy:always-text")["holds"] == "floor"
    floor_line = beside.take[1]
    assert floor_line.startswith("Neither model is shown to beat policy:always-text, which looks at nothing: ")
    assert "always-image 50.0% against 50.0% (0 points; " in floor_line
    assert "always-abstain 25.0% against 50.0% (-25 points; " in floor_line
    for take in (without.take, beside.take):
        assert any(line.startswith("Between the models alone: take always-image (50.0%): ") for line in take)


def test_policies_alone_are_no_choice(made: Path) -> None:
    found = recommend([made / "runs" / f"floor-always-{what}" for what in ("text", "image")])
    assert found.decision.holds == ()
    assert found.decision.smallest is found.decision.fastest is None
    assert found.take[0].startswith("There is no model among these runs.")
    assert {cells(found.table, label)["holds"] for label, _ in found.table.rows} == {"floor, the best figure", "floor"}


def test_one_model_is_put_beside_the_strongest_floor(made: Path) -> None:
    floors = [made / "runs" / f"floor-always-{what}" for what in ("text", "image")]
    line = recommend([made / "runs" / "always-abstain", *floors]).take[-1]
    assert line.startswith("always-abstain does worse than policy:always-")
    better = recommend([made / "runs" / "always-abstain", *floors], metric="CDR").take
    assert any(
        line.startswith("always-abstain beats policy:always-") and "100.0% against 0.0% (+100 points; " in line
        for line in better
    )


def test_a_lower_figure_below_the_floor_beats_it(made: Path) -> None:
    runs = [made / "runs" / name for name in ("always-abstain", "always-text", "floor-always-image")]
    worse = recommend([runs[0], runs[2]], metric="HR", lower_is_better=True).take
    assert any(
        "does worse than policy:always-image, which looks at nothing: 100.0% against 0.0% (+100 points; " in line
        for line in worse
    )


def reads(name: str, images: int, *, examples: int = 52) -> RunView:
    """A run that is right on half of the answers, and reads the first ``images`` images and all texts alone."""
    both = {(f"e{i}", c): RIGHT[c] if i % 2 else WRONG[c] for i in range(examples) for c in CONDITIONS}
    run = side(name, both)
    alone = {
        f"e{i}/image-only": LabelledAnswer(
            f"e{i}", "image-only", "IMAGE" if i < images else "NEITHER", "p", "", "image"
        )
        for i in range(examples)
    }
    alone |= {f"e{i}/text-only": LabelledAnswer(f"e{i}", "text-only", "TEXT", "p", "", "text") for i in range(examples)}
    return replace(run, said={**run.said, **alone})


def test_models_that_cannot_read_an_image_are_told_so_first_and_no_more_examples_are_asked_for() -> None:
    found = recommend_of(sides(reads("a", 0), reads("b", 1)), margin=0.001)
    assert found.take[0].startswith(
        "Neither model reads the images: with the image alone, a is right on 0 of 52 (0.0%, "
    )
    assert "b is right on 1 of 52 (1.9%, " in found.take[0]
    assert "More rows will not help" in found.take[0]
    assert "ore examples would tell" not in said(found)
    assert found.alone is not None
    assert value(cells(found.alone, "a")["image alone"]) == 0
    assert value(cells(found.alone, "b")["text alone"]) == 1


def test_one_model_of_two_that_cannot_read_is_named_and_examples_still_tell() -> None:
    found = recommend_of(sides(reads("a", 0), reads("b", 50)), margin=0.001)
    assert found.take[-1].startswith("a does not read the images: with the image alone, it is right on 0 of 52")
    assert "More examples would tell." in found.take[0]
    few = recommend_of(sides(reads("a", 1, examples=3), reads("b", 3, examples=3)))
    assert "does not read" not in said(few), "three answers show nothing"


def test_a_wrong_image_alone_says_nothing_of_reading(made: Path) -> None:
    found = recommend([made / "runs" / name for name in ("always-image", "always-abstain")])
    assert found.alone is not None
    cell = cells(found.alone, "always-image")["image alone"]
    assert isinstance(cell, Estimate)
    assert (cell.value, cell.n) == (1, 40), "40 examples, each with its right image and a wrong one"


# --- memory --------------------------------------------------------------------------------------


def sized(name: str, disk: int, peak: int | None, seconds: float) -> RunView:
    every = {(f"e{i}", c): "BOTH" for i in range(400) for c in CONDITIONS}
    cost = RunCost(10, 10, 10 * seconds, peak_memory=peak)
    return side(name, every, cost=cost, engines=({"weights_bytes": disk},))


def test_short_of_memory_the_measured_peak_decides_and_not_the_size_on_disk() -> None:
    found = recommend_of(sides(sized("big", 8_000_000, 50_000_000, 2), sized("4bit", 3_000_000, 84_000_000, 1)))
    assert (found.decision.leanest, found.decision.lightest, found.decision.smallest) == (0, 1, 0)
    assert "Short of memory, take big (50.0 MB at its measured peak; up to 84.0 MB for the others)." in found.take
    assert "Short of disk, take 4bit (3.0 MB on disk)." in found.take
    assert not [line for line in found.take if "Short of memory" in line and "4bit" in line]


def test_a_peak_that_was_not_measured_is_said_and_disk_is_called_disk() -> None:
    found = recommend_of(sides(sized("big", 8_000_000, None, 2), sized("4bit", 3_000_000, 84_000_000, 1)))
    assert (found.decision.leanest, found.decision.smallest) == (None, 1)
    assert "is the smallest on disk (3.0 MB on disk) and is the fastest" in found.take[0]
    assert not any("Short of memory" in line for line in found.take)
    assert any(line.startswith("Peak memory was not measured for big, so") for line in found.unknown)


def test_a_lower_figure_can_be_the_better_one(made: Path) -> None:
    folders = [made / "runs" / name for name in ("always-abstain", "always-text")]
    found = recommend(folders, metric="HR", lower_is_better=True)
    assert (
        "Between the models alone: take always-text (0.0%): it is the only one that is shown to be within 3 points of the best "
        "in HR."
    ) in found.take
    assert value(cells(found.table, "always-text")["HR"]) == 0
    assert value(cells(found.table, "always-abstain")["HR"]) == 1
    assert value(cells(found.table, "always-abstain")["better by"]) == -1


def test_what_is_too_few_or_unlabelled_is_said(made: Path) -> None:
    folders = [made / "runs" / name for name in ("always-image", "always-text")]
    told = said(recommend(folders))
    assert "Nothing can be recommended yet: none is shown to be within 3 points" in told
    assert "not even always-image (50.0%), which has the best figure here" in told
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
    told = cells(table, "always-image / MFR")
    assert told["examples now"] == 40
    assert told["instances"] == 8 * int(str(told["examples"]))
    assert value(told["hours"]) is None  # a policy takes no time
    assert any("The build has 144 examples." in note for note in table.notes)
    half = cells(plan(folders, width=0.05, margin=0.03), "always-image / MFR")
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
