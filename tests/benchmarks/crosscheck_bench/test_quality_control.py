"""Quality control by two annotators and a verifier."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.crosscheck_bench.construction.quality_control import agreement, kappa, review, select_for_review
from benchmarks.crosscheck_bench.crosscheck_build import build
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.errors import SourceError
from tests.support.data.small import write_lines

SET = Path(__file__).resolve().parents[3] / "assets" / "products"

YES, NO = "accept", "reject"
PAIRS = {f"s{i}": CrossCheckSample("LD", f"Question {i}?", "Yes") for i in range(10)}


def named(labels: Mapping[str, str | tuple[str, str]]) -> list[dict[str, str]]:
    rows = []
    for name, problems in labels.items():
        verdict, level = problems if isinstance(problems, tuple) else (problems, "")
        rows.append({"sample": PAIRS[name].id, "verdict": verdict, "level": level})
    return rows


def reviewed(
    folder: Path, first: list[dict[str, str]], second: list[dict[str, str]], decided: Any = ()
) -> tuple[dict[str, str], Any, list[tuple[str, str]]]:
    """Return the excluded samples by their short names, the report, and the unusable rows."""
    for name, rows in (("annotator-1", first), ("annotator-2", second), ("adjudication", decided)):
        write_lines(folder / "labels" / f"{name}.jsonl", rows)
    bad: list[tuple[str, str]] = []
    outcome = review(folder, list(PAIRS.values()), lambda row, why: bad.append((row, why)))
    assert outcome is not None
    short = {sample.id: name for name, sample in PAIRS.items()}
    return (
        {short[name]: why.removeprefix("quality control: ") for name, why in outcome.left_out.items()},
        outcome.report,
        bad,
    )


def test_kappa_matches_manual_computation() -> None:
    # 20 and 15 on the diagonal, 5 and 10 beside it: agreement 35/50 = .7, by chance .5 * .6 + .5 * .4 = .5, kappa .2/.5.
    pairs = [(YES, YES)] * 20 + [(YES, NO)] * 5 + [(NO, YES)] * 10 + [(NO, NO)] * 15
    assert kappa(pairs, (YES, NO)).value == pytest.approx(0.4)
    assert agreement(pairs).value == pytest.approx(0.7)
    assert kappa(pairs, (YES, NO)).n == 50


def test_undefined_kappa_is_na_with_a_reason(tmp_path: Path) -> None:
    same = named(dict.fromkeys(PAIRS, YES))
    _, report, _ = reviewed(tmp_path, same, same)
    assert report["agreement"] == {"value": 1.0, "n": 10}
    assert report["kappa"]["value"] is None
    assert "one and the same label" in report["kappa"]["reason"]
    _, report, _ = reviewed(tmp_path, named({"s0": YES}), named({"s1": YES}))
    assert report["kappa"] == {"value": None, "n": 0, "reason": "no sample is labelled by both"}
    assert report["agreement"]["value"] is None
    assert report["levels"]["kappa"]["value"] is None


def test_excluded_samples_follow_the_rules(tmp_path: Path) -> None:
    first = {"s0": YES, "s1": NO, "s2": YES, "s3": NO, "s4": NO, "s5": NO, "s6": YES}
    second = {"s0": YES, "s1": NO, "s2": NO, "s3": YES, "s4": YES, "s7": NO}
    left_out, report, bad = reviewed(tmp_path, named(first), named(second), named({"s2": YES, "s3": NO, "s7": YES}))
    assert left_out == {
        "s1": "both annotators reject it",
        "s3": "the annotators disagree and the verifier rejects it",
        "s4": "the annotators disagree and nobody has decided",
        "s5": "one annotator rejects it and the other has not labelled it",
    }
    assert report["undecided"] == [PAIRS["s4"].id]
    assert report["adjudicated"] == 2
    assert (report["labelled_by_both"], report["labelled_by_one"]) == (5, 3)
    assert report["agreement"]["value"] == 0.4
    # 1 and 1 agreed of 5; the first rejects 3 of 5, the second 2 of 5: by chance .4 * .6 + .6 * .4 = .48.
    assert report["kappa"]["value"] == pytest.approx((0.4 - 0.48) / (1 - 0.48), abs=1e-6)
    assert not bad


def test_levels_are_compared_with_each_other_and_with_the_tasks(tmp_path: Path) -> None:
    first = named({"s0": (YES, "L1"), "s1": (YES, "L1"), "s2": (YES, "L2"), "s3": YES})
    second = named({"s0": (YES, "L1"), "s1": (YES, "L2"), "s2": (YES, "L2"), "s3": (YES, "L3")})
    _, report, _ = reviewed(tmp_path, first, second)
    levels = report["levels"]
    assert levels["agreement"] == {"value": pytest.approx(2 / 3, abs=1e-6), "n": 3}
    # By chance 2/3 * 1/3 + 1/3 * 2/3 = 4/9.
    assert levels["kappa"]["value"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9), abs=1e-6)
    assert levels["annotator_1_as_assigned"] == {"value": pytest.approx(2 / 3, abs=1e-6), "n": 3}
    assert levels["annotator_2_as_assigned"] == {"value": 0.25, "n": 4}


def test_unusable_labels_are_reported_by_row(tmp_path: Path) -> None:
    good = named({"s0": YES})[0]
    rows: list[Any] = [
        good,
        good,
        {"sample": "crosscheck-0", "verdict": YES},
        {"sample": PAIRS["s1"].id, "verdict": "fine"},
        {"sample": PAIRS["s1"].id, "verdict": [YES]},
        {"sample": PAIRS["s2"].id, "verdict": YES, "level": "L4"},
        {"verdict": YES},
        ["no object"],
    ]
    _, report, bad = reviewed(tmp_path, rows, [good])
    assert [row for row, _ in bad] == [f"labels/annotator-1.jsonl:{n}" for n in range(2, 9)]
    assert [why.split(":")[0] for _, why in bad] == [
        "repeated",
        "a label for a sample that is not in this build",
        "the verdict is not one of accept, reject",
        "the verdict is not one of accept, reject",
        "the level is not one of L1, L2, L3",
        "a label for a sample that is not in this build",
        "the line is not a JSON object",
    ]
    assert report["labelled_by_both"] == 1


def test_single_annotator_is_an_error_and_none_is_accepted(tmp_path: Path) -> None:
    assert review(tmp_path, [], lambda row, why: None) is None
    write_lines(tmp_path / "labels" / "annotator-2.jsonl", [])
    with pytest.raises(SourceError, match=r"annotator-1\.jsonl and annotator-2\.jsonl"):
        review(tmp_path, [], lambda row, why: None)


def test_tenth_of_each_task_is_selected_for_review() -> None:
    many = [CrossCheckSample(task, f"Question {i}?", "Yes") for task, n in (("LD", 31), ("SP", 3)) for i in range(n)]
    chosen = select_for_review(many, 0)
    assert [sample.task for sample in chosen] == ["LD"] * 4 + ["SP"]
    assert chosen != select_for_review(many, 1)


def _rows(rows: Build) -> set[str]:
    return {row["id"] for row in rows.rows()}


@pytest.mark.slow
def test_the_product_sets_example_labels(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(SET, bare, ignore=shutil.ignore_patterns("labels", "recipe"))
    labelled = build([("products", str(SET))], tmp_path / "whole", BuildOptions())
    unlabelled = build([("products", str(bare))], tmp_path / "unlabelled", BuildOptions())
    assert unlabelled.manifest["construction"][0]["quality"] is None
    assert _rows(labelled) < _rows(unlabelled)
    quality = labelled.manifest["construction"][0]["quality"]
    assert len(_rows(unlabelled) - _rows(labelled)) == 4 == sum(quality["left_out"].values())
    assert quality["labelled_by_both"] == 50
    # 45 both accept, 2 both reject, 1 and 2 disagreed: (47 * 50 - 2174) / (50 * 50 - 2174) with 47 * 46 + 3 * 4 = 2174.
    assert quality["kappa"] == {"value": pytest.approx(176 / 326, abs=1e-6), "n": 50}
    assert len(quality["undecided"]) == 1
    assert set(quality["undecided"]) < _rows(unlabelled) - _rows(labelled)
