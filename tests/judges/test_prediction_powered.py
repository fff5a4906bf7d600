"""Figures corrected by people's labels: on simulated judges whose errors are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.cmc_bench.cmc_constants import LABELS, PAPER_CONDITIONS
from benchmarks.cmc_bench.cmc_metrics import MAIN_METRICS, label_shares
from benchmarks.stats.clusters import Clusters
from benchmarks.vocabulary import Estimate, LabelMetrics, Record
from judges.human_labels_and_samples import draw_sample
from judges.prediction_powered import (
    NO_LABEL,
    NOT_SEEN,
    CorrectedEstimates,
    correct,
    corrected_table,
    correction_sums,
    needed_conditions,
)
from tests.support.labelled import answers_of, labelled

JUDGE, PERSON = "match@1", "human:ann@1"

# What people would say, by condition: IMAGE, TEXT, BOTH, NEITHER, ABSTAIN.
TRUE = np.array(
    [
        [0.05, 0.15, 0.70, 0.06, 0.04],
        [0.50, 0.25, 0.03, 0.12, 0.10],
        [0.22, 0.55, 0.03, 0.12, 0.08],
        [0.30, 0.30, 0.02, 0.25, 0.13],
    ]
)

# What the judge says (columns) where people say the row's label.
GOOD = 0.90 * np.eye(5) + 0.02
BIASED = 0.75 * np.eye(5) + 0.25 * np.eye(5)[[3]]
USELESS = np.tile([0.3, 0.3, 0.1, 0.2, 0.1], (5, 1))
JUDGES = {"good": GOOD, "biased": BIASED, "useless": USELESS}

FIGURES = LabelMetrics(
    PAPER_CONDITIONS,
    LABELS,
    {
        "IMAGE, image-correct": lambda counts: label_shares(counts)[..., 1, 0],
        "NEITHER, both-wrong": lambda counts: label_shares(counts)[..., 3, 3],
        "ABSTAIN, text-correct": lambda counts: label_shares(counts)[..., 2, 4],
        **{name: MAIN_METRICS[name] for name in ("MFR", "MPB Img", "ΔAcc", "CDR")},
    },
)
TRUTH = {name: float(figure(TRUE)) for name, figure in FIGURES.of.items()}


@dataclass(frozen=True)
class Answers:
    """A simulated run; arrays of shape (examples, conditions) of label indices."""

    people: NDArray[np.int64]
    judged: NDArray[np.int64]
    seen: NDArray[np.bool_]

    def sums(self) -> NDArray[np.float64]:
        examples, conditions = self.people.shape
        group, condition = np.divmod(np.arange(examples * conditions), conditions)
        labels = np.where(self.seen, self.people, NOT_SEEN)
        return correction_sums(
            Clusters.of(group), condition, self.judged.ravel(), labels.ravel(), shape=(conditions, 5)
        )

    def records(self) -> list[Record]:
        return [
            labelled(
                {JUDGE: LABELS[self.judged[i, c]]} | ({PERSON: LABELS[self.people[i, c]]} if self.seen[i, c] else {}),
                id=f"{i}/{condition}",
                group=str(i),
                condition=condition,
            )
            for i in range(len(self.people))
            for c, condition in enumerate(PAPER_CONDITIONS)
        ]


def _answers(random: np.random.Generator, confusion: NDArray[np.float64], examples: int, seen: int) -> Answers:
    """``examples`` with four answers each, half of them with one luck for all four, ``seen`` of the answers by people."""
    luck = random.random((examples, 4))
    alike = random.random(examples) < 0.5
    luck[alike] = luck[alike, :1]
    people = (luck[..., None] > TRUE.cumsum(1)[:, :-1]).sum(-1)
    judged = (random.random((examples, 4, 1)) > confusion.cumsum(1)[people][..., :-1]).sum(-1)
    chosen = np.zeros((examples, 4), bool)
    for c in range(4):
        chosen[random.choice(examples, seen // 4, replace=False), c] = True
    return Answers(people, judged, chosen)


def _width(estimates: Estimate) -> float:
    assert estimates.low is not None
    assert estimates.high is not None
    return estimates.high - estimates.low


def _holds(estimates: Estimate, truth: float) -> bool:
    assert estimates.low is not None
    assert estimates.high is not None
    return estimates.low <= truth <= estimates.high


@dataclass(frozen=True)
class Simulated:
    """Of one figure over many repetitions: by the judge, corrected, by people alone."""

    coverage: NDArray[np.float64]
    width: NDArray[np.float64]
    bias: NDArray[np.float64]


def simulate(
    judge: str, *, seen: int, repetitions: int, resamples: int = 1000, examples: int = 250
) -> dict[str, Simulated]:
    """Coverage of the 95% intervals, their mean widths and the estimates' mean errors."""
    random = np.random.default_rng([seen, *judge.encode()])
    estimates: dict[str, list[Any]] = {name: [] for name in TRUTH}
    for repetition in range(repetitions):
        sums = _answers(random, JUDGES[judge], examples, seen).sums()
        for name, run in correct(sums, FIGURES, resamples=resamples, seed=repetition).items():
            three = (run.judge, run.corrected, run.people)
            assert all(item.value is not None for item in three)
            estimates[name].append(
                [(_holds(item, TRUTH[name]), _width(item), (item.value or 0) - TRUTH[name]) for item in three]
            )
    return {name: Simulated(*np.array(rows, float).mean(0).T) for name, rows in estimates.items()}


@pytest.mark.slow
@pytest.mark.parametrize("seen", [100, 200])
@pytest.mark.parametrize("judge", JUDGES)
def test_interval_coverage_holds_for_any_judge(judge: str, seen: int) -> None:
    estimates = simulate(judge, seen=seen, repetitions=500)
    print(f"\n{judge}, {seen} of 1,000 answers labelled by people")
    for name, item in estimates.items():
        print(f"{name:24s}", *np.round(np.concatenate([item.coverage, item.width, item.bias]), 3))
    # With 25 labels a condition a label of 8% is seen twice, and the interval is wide; the standard deviation of a coverage
    # is 0.01.
    least, most = (0.92, 0.98) if seen == 200 else (0.9, 1)
    _check(estimates, judge, least, most)


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
def test_interval_coverage_holds_in_a_small_simulation(judge: str) -> None:
    _check(simulate(judge, seen=160, repetitions=60, resamples=150), judge, 0.85, 1)


def _check(estimates: Mapping[str, Simulated], judge: str, least: float, most: float) -> None:
    for name, item in estimates.items():
        assert least <= item.coverage[1] <= most, name
        ratio = item.width[1] / item.width[2]
        assert ratio < (0.75 if judge == "good" else 1.05), name
        assert abs(item.bias[1]) < 0.02, name
    if judge == "biased":
        # What the correction is for: the judge's own interval misses.
        assert estimates["ΔAcc"].coverage[0] < 0.05
        assert abs(estimates["ΔAcc"].bias[0]) > 0.15


def test_rectified_shares_match_the_published_formula() -> None:
    """PPI++ for one share, as printed: lambda mean(f unlabelled) + mean(h - lambda f), lambda = cov / ((1 + n/N) var)."""
    random = np.random.default_rng(3)
    n, more = 120, 700
    people = (random.random(n + more) < 0.35).astype(np.int64)
    judged = np.where(random.random(n + more) < 0.88, people, 1 - people)
    tuned = np.cov(people[:n], judged[:n], bias=True)[0, 1] / ((1 + n / more) * judged.var())
    assert 0 < tuned < 1
    by_hand = tuned * judged[n:].mean() + (people[:n] - tuned * judged[:n]).mean()
    figures = LabelMetrics(("c",), ("no", "yes"), {"yes": lambda counts: label_shares(counts)[..., 0, 1]})
    labels = np.where(np.arange(n + more) < n, people, NOT_SEEN)
    sums = correction_sums(Clusters.of(np.arange(n + more)), np.zeros(n + more, np.int64), judged, labels, shape=(1, 2))
    estimates = correct(sums, figures, resamples=2000, seed=0)["yes"]
    assert estimates.corrected.value == pytest.approx(by_hand, abs=1e-12)
    # The large-sample interval of the same estimate (ppi_mean_ci).
    error = np.sqrt(tuned**2 * judged[n:].var() / more + (people[:n] - tuned * judged[:n]).var() / n)
    assert estimates.corrected.low == pytest.approx(by_hand - 1.96 * error, abs=0.015)
    assert estimates.corrected.high == pytest.approx(by_hand + 1.96 * error, abs=0.015)
    assert estimates.people.value == pytest.approx(people[:n].mean())


def test_clipped_lambda_differs_from_the_published_estimate() -> None:
    """People and judge agree on a sample that is half yes, where the judge says yes to a tenth of all: cov / var is 2.8."""
    n, more = 10, 90
    judged = np.zeros(n + more, np.int64)
    judged[:5] = judged[n : n + 5] = 1
    labels = np.where(np.arange(n + more) < n, judged, NOT_SEEN)
    figures = LabelMetrics(("c",), ("no", "yes"), {"yes": lambda counts: label_shares(counts)[..., 0, 1]})
    sums = correction_sums(Clusters.of(np.arange(n + more)), np.zeros(n + more, np.int64), judged, labels, shape=(1, 2))
    here = correct(sums, figures, resamples=50, seed=0)["yes"].corrected.value
    tuned = min(np.cov(judged[:n], judged[:n], bias=True)[0, 1] / ((1 + n / more) * judged.var()), 1)
    published = judged[:n].mean() + tuned * (judged[n:].mean() - judged[:n].mean())
    assert here == pytest.approx(0.1)
    assert published == pytest.approx(0.05 / 0.9)


def test_complete_labels_make_the_judge_irrelevant() -> None:
    answers = _answers(np.random.default_rng(0), USELESS, 100, 400)
    for item in correct(answers.sums(), FIGURES, resamples=100, seed=0).values():
        assert item.corrected.value == pytest.approx(item.people.value, abs=1e-12)
        assert item.corrected.low == pytest.approx(item.people.low, abs=5e-3)
        assert item.corrected.high == pytest.approx(item.people.high, abs=5e-3)


def test_perfect_judge_is_not_corrected() -> None:
    answers = _answers(np.random.default_rng(0), np.eye(5), 250, 200)
    for item in correct(answers.sums(), FIGURES, resamples=300, seed=0).values():
        assert item.corrected.value == pytest.approx(item.judge.value, abs=0.03)
        assert _width(item.corrected) < 0.75 * _width(item.people)


def test_inverted_judge_is_ignored() -> None:
    """A judge may not be used the wrong way round: lambda is never below 0, and the figure is people's."""
    answers = _answers(np.random.default_rng(0), (1 - np.eye(5)) / 4, 250, 200)
    for item in correct(answers.sums(), FIGURES, resamples=50, seed=0).values():
        assert item.corrected.value == pytest.approx(item.people.value, abs=1e-12)


def test_interval_includes_sampling_of_the_answers() -> None:
    """The judge's own interval is that of a share of 250 answers, most of which people never see."""
    answers = _answers(np.random.default_rng(0), np.eye(5), 250, 80)
    estimates = correct(answers.sums(), FIGURES, resamples=2000, seed=0)["IMAGE, image-correct"]
    share = estimates.judge.value or 0
    assert _width(estimates.judge) == pytest.approx(2 * 1.96 * np.sqrt(share * (1 - share) / 250), rel=0.08)
    assert _width(estimates.corrected) > 0.95 * _width(estimates.judge)


def test_corrected_share_is_never_negative() -> None:
    """A label that people give once in the sample, and that the judge gives far more often in it than elsewhere."""
    codes = np.arange(1000)
    judged = np.where(codes < 40, codes % 4 == 0, codes % 20 == 0).astype(np.int64)
    people = np.where(codes < 40, codes == 0, NOT_SEEN)
    sums = correction_sums(Clusters.of(codes), np.zeros(1000, np.int64), judged, people, shape=(1, 2))
    figures = LabelMetrics(("c",), ("no", "yes"), {"yes": lambda counts: label_shares(counts)[..., 0, 1]})
    estimates = correct(sums, figures, resamples=500, seed=0)["yes"]
    assert estimates.people.value == 1 / 40
    assert estimates.corrected.value == 0
    assert estimates.corrected.low is not None
    assert estimates.corrected.low >= 0


def test_sample_without_errors_keeps_uncertainty() -> None:
    """Ten labels that all agree: 0 of 10 errors is compatible with one in ten."""
    judged = np.zeros(1000, np.int64)
    labels = np.where(np.arange(1000) < 10, 0, NOT_SEEN)
    sums = correction_sums(Clusters.of(np.arange(1000)), np.zeros(1000, np.int64), judged, labels, shape=(1, 2))
    figures = LabelMetrics(("c",), ("right", "wrong"), {"right": lambda counts: label_shares(counts)[..., 0, 0]})
    estimates = correct(sums, figures, resamples=2000, seed=0)["right"]
    assert estimates.corrected.value == 1
    assert estimates.corrected.low is not None
    wilson = 10 / (10 + 2.2622**2)  # of 10 of 10, with Student's quantile of 9 degrees of freedom
    assert estimates.corrected.low == pytest.approx(wilson, abs=1e-4)
    assert estimates.judge.low is not None
    assert 0.99 < estimates.judge.low < 1


def test_metrics_declare_their_conditions() -> None:
    assert {name: needed_conditions(figure, FIGURES) for name, figure in FIGURES.of.items()} == {
        "IMAGE, image-correct": [1],
        "NEITHER, both-wrong": [3],
        "ABSTAIN, text-correct": [2],
        "MFR": [1, 2, 3],
        "MPB Img": [1, 2, 3],
        "ΔAcc": [0, 1, 2, 3],
        "CDR": [1, 2, 3],
    }


def _table(records: list[Record], **more: list[Record]) -> dict[str, dict[str, Any]]:
    runs = {run: answers_of(of) for run, of in {"run": records, **more}.items()}
    table = corrected_table(runs, JUDGE, PERSON, FIGURES, resamples=300, seed=0)
    rows = {label: dict(zip(table.columns, cells, strict=True)) for label, cells in table.rows}
    return {**rows, "notes": dict.fromkeys(table.notes)}


def test_table_has_a_row_per_run_and_metric() -> None:
    answers = _answers(np.random.default_rng(1), BIASED, 250, 200)
    rows = _table(answers.records(), other=answers.records()[:400])
    assert [label for label in rows if label != "notes"] == [f"{run} / {f}" for run in ("run", "other") for f in TRUTH]
    row = rows["run / ΔAcc"]
    assert list(row) == [JUDGE, "corrected", f"{PERSON} alone", "labelled by people"]
    assert row["labelled by people"] == 200
    assert rows["run / IMAGE, image-correct"]["labelled by people"] == 50
    by_array = correct(answers.sums(), FIGURES, resamples=300, seed=0)["ΔAcc"]
    assert by_array == CorrectedEstimates(row[JUDGE], row["corrected"], row[f"{PERSON} alone"])
    # The judge calls a quarter of everything NEITHER: it sees a drop that is not there.
    assert not _holds(row[JUDGE], TRUTH["ΔAcc"])
    assert _holds(row["corrected"], TRUTH["ΔAcc"])


def test_too_few_labels_make_only_that_conditions_metrics_na() -> None:
    records = _answers(np.random.default_rng(1), GOOD, 250, 200).records()
    few = [
        labelled(
            {JUDGE: str(r.verdicts[JUDGE].label)}, id=r.instance.id, group=r.instance.group, condition="both-wrong"
        )
        if r.instance.condition == "both-wrong"
        else r
        for r in records
    ]
    rows = _table(few)
    missing = rows["run / ΔAcc"]
    assert missing["corrected"].value is None
    assert missing["corrected"].reason == "people looked at fewer than 10 answers under both-wrong"
    assert missing[f"{PERSON} alone"].value is None
    assert missing[JUDGE].value is not None
    assert rows["run / IMAGE, image-correct"]["corrected"].value is not None


def test_condition_without_judge_labels_is_na() -> None:
    answers = _answers(np.random.default_rng(1), GOOD, 250, 200)
    rows = _table([r for r in answers.records() if r.instance.condition != "aligned"])
    assert rows["run / ΔAcc"][JUDGE].reason == "the judge has labelled no answer under aligned"
    assert rows["run / ΔAcc"]["corrected"].value is None
    assert rows["run / MFR"]["corrected"].value is not None
    assert _table([])["run / MFR"][JUDGE].value is None


def test_human_labels_correct_a_failing_judge() -> None:
    """A judge that cannot read refusals: without them its ABSTAIN is 0, the corrected figure is not."""
    answers = _answers(np.random.default_rng(2), GOOD, 250, 400)
    records = []
    for record, label in zip(answers.records(), answers.people.ravel(), strict=True):
        by_judge = "judge-failed" if label == LABELS.index("ABSTAIN") else LABELS[label]
        person = {judge: verdict for judge, verdict in record.verdicts.items() if judge == PERSON}
        i = record.instance
        records.append(labelled({JUDGE: by_judge, **person}, id=i.id, group=i.group, condition=i.condition))
    rows = _table(records)
    row = rows["run / CDR"]
    assert row[JUDGE].value == 0
    assert _holds(row["corrected"], TRUTH["CDR"])
    refused = int((answers.people == LABELS.index("ABSTAIN"))[answers.seen].sum())
    note = f"Answers with a label by {PERSON} and none that {JUDGE} could give; they count by {PERSON}: {refused}."
    assert note in rows["notes"]


def test_unlabellable_answers_are_excluded() -> None:
    random = np.random.default_rng(4)
    records: list[Record] = []
    clean: list[Record] = []
    for i in range(600):
        nonsense, label = random.random() < 0.2, LABELS[int(random.random() < 0.3)]
        person = {PERSON: "unparsed" if nonsense else label} if i < 300 else {}
        for target, skip in ((records, False), (clean, nonsense)):
            if not skip:
                # The judge reads every answer that says nothing as IMAGE.
                text = {JUDGE: "IMAGE" if nonsense else label, **person}
                target.append(labelled(text, id=str(i), condition="image-correct"))
    row, expected = (_table(item)["run / IMAGE, image-correct"] for item in (records, clean))
    assert row["corrected"].value == pytest.approx(expected["corrected"].value, abs=0.03)
    assert row[f"{PERSON} alone"].value == pytest.approx(expected[f"{PERSON} alone"].value)
    assert row[JUDGE].value > expected[JUDGE].value + 0.04


def test_empty_broken_and_unjudged_answers_are_excluded() -> None:
    records = _answers(np.random.default_rng(1), GOOD, 250, 200).records()
    rows = _table(records)
    label: dict[str, str] = {JUDGE: "unparsed", PERSON: "IMAGE"}
    others = [
        labelled(label, id="empty", answer="<think>so"),
        labelled({JUDGE: "IMAGE", PERSON: "IMAGE"}, id="broken", error=True),
        labelled({JUDGE: "IMAGE", PERSON: "IMAGE"}, id="elsewhere", condition="image-only"),
        Record(records[0].instance, ()),
        labelled({PERSON: "TEXT"}, id="not judged"),
    ]
    again = _table([*records, *others])
    note = f"Labels by {PERSON} that are not used, since {JUDGE} has not judged the answer: 1."
    assert note in again["notes"]
    assert note not in rows["notes"]
    assert {k: v for k, v in again.items() if k != "notes"} == {k: v for k, v in rows.items() if k != "notes"}


def test_record_order_changes_nothing() -> None:
    records = _answers(np.random.default_rng(1), GOOD, 100, 100).records()
    assert _table(records[::-1]) == _table(records)


def test_a_drawn_sample_corrects_a_biased_judge_end_to_end() -> None:
    answers = _answers(np.random.default_rng(8), BIASED, 250, 1000)
    everything = answers.records()
    chosen = set(draw_sample(everything, 200, 0))
    records = [
        Record(
            r.instance, r.generations, {j: v for j, v in r.verdicts.items() if j == JUDGE or r.instance.id in chosen}
        )
        for r in everything
    ]
    row = _table(records)["run / ΔAcc"]
    everyone = _table(everything)["run / ΔAcc"][f"{PERSON} alone"]
    assert row["labelled by people"] == 200
    assert not _holds(row[JUDGE], everyone.value)
    assert _holds(row["corrected"], everyone.value)


def test_codes_without_a_label_are_ignored() -> None:
    sums = correction_sums(
        Clusters.of([0, 0]), np.array([0, 0]), np.array([NO_LABEL, 1]), np.array([1, NO_LABEL]), shape=(1, 2)
    )
    # answers, looked at, agreeing; judge's labels; judge's labels where people looked; people's labels.
    assert sums[0, 0].tolist() == [2, 2, 0, 0, 1, 0, 1, 0, 1]
