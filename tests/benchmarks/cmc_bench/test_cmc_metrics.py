"""CMC-Bench's equations and tables, against the paper's own numbers and by definition."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.answers import Answers
from benchmarks.cmc_bench import CMCBench
from benchmarks.cmc_bench.cmc_constants import CONFLICT_CONDITIONS, LABELS, PAPER_CONDITIONS
from benchmarks.cmc_bench.cmc_metrics import MAIN_METRICS, accuracy, conflict_detection_rate, mpb_image
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Estimate, FinishReason, Generation, Instance, Record, Table, Verdict, VerdictStatus

PUBLISHED = Path(__file__).resolve().parents[3] / "assets" / "published" / "cmc-bench.json"
JUDGE = "some-judge@1"
CORRECT = {
    "aligned": "both",
    "image-correct": "image",
    "text-correct": "text",
    "both-wrong": "none",
    "image-only/right": "image",
    "image-only/wrong": "none",
    "text-only/right": "text",
    "text-only/wrong": "none",
}


def _published(table: str) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for cell in json.loads(PUBLISHED.read_text("utf-8")):
        if cell["table"] == table:
            rows.setdefault(cell["row"], {})[cell["column"]] = cell["value"]
    return rows


TABLE_3 = _published("Table 3")


def _record(
    group: str,
    view: str,
    label: str | None,
    kind: str = "factual",
    status: VerdictStatus | None = "labelled",
    finish: FinishReason | None = "stop",
    answer: str = "x",
) -> Record:
    instance = Instance(
        id=f"{group}/{view}",
        group=group,
        condition=view.split("/")[0],
        question="?",
        parts=(),
        references={"image": ("8",), "text": ("9",)},
        strata={"type": kind, "correct": CORRECT[view]},
    )
    generations = () if finish is None else (Generation(f"{instance.id}#0", answer, finish),)
    return Record(instance, generations, {} if status is None else {JUDGE: Verdict(JUDGE, status, label)})


def _tables(*records: Record, resamples: int = 50, seed: int = 0, run: str = "run") -> dict[str, Table]:
    benchmark = CMCBench()
    results = benchmark.tables({run: Answers.of(records, benchmark)}, JUDGE, resamples=resamples, seed=seed)
    return {table.name: table for table in results}


def _row(table: Table, label: str) -> dict[str, Estimate]:
    cells = dict(table.rows)[label]
    return {name: cell for name, cell in zip(table.columns, cells, strict=True) if isinstance(cell, Estimate)}


def _values(table: Table, label: str) -> dict[str, float | None]:
    return {name: None if cell.value is None else round(cell.value, 9) for name, cell in _row(table, label).items()}


# --- the paper's numbers -------------------------------------------------------------------------------


def test_the_counts_of_section_5_3_give_the_published_accuracies() -> None:
    counted = _published("Section 5.3")
    for model in ("Qwen3-VL-4B", "LFM2.5-VL-1.6B"):
        labels = counted[f"{model} / image-correct"]
        left = 942 - sum(labels.values())
        counts = np.zeros((4, 5))
        counts[1] = [labels["IMAGE"], labels["TEXT"], labels["BOTH"], left, 0]
        assert round(float(accuracy(counts)[1]), 3) == TABLE_3[model]["Img-Cor"]


def test_detection_rates_of_qwen_pool_to_the_published_rate() -> None:
    shares = _published("Section 5.2, RQ4")
    counts = np.zeros((4, 5))
    for i, condition in enumerate(CONFLICT_CONDITIONS, 1):
        abstained = round(942 * shares[f"Qwen3-VL-4B / {condition}"]["ABSTAIN"])
        counts[i] = [942 - abstained, 0, 0, 0, abstained]
    assert round(float(conflict_detection_rate(counts)), 3) == TABLE_3["Qwen3-VL-4B"]["CDR"]


def test_published_preference_of_lfm_requires_hundreds_of_both_labels() -> None:
    """The documentation's arithmetic: with b labels BOTH in text-correct, MPB-img is at most 880 / (2278 - b)."""

    def most(both: int) -> float:
        counts = np.zeros((4, 5))
        counts[1] = [198, 578, 23, 143, 0]
        counts[2] = [1, 820 - both, both, 121, 0]
        counts[3] = [681, 0, 0, 261, 0]
        assert round(float(accuracy(counts)[2]), 3) == TABLE_3["LFM2.5-VL-1.6B"]["Txt-Cor"]
        assert round(float(accuracy(counts)[3]), 3) == TABLE_3["LFM2.5-VL-1.6B"]["Both-Wr"]
        return float(mpb_image(counts))

    assert most(0) == pytest.approx(880 / 2278)
    assert round(most(23), 2) == 0.39
    assert round(most(391), 3) < TABLE_3["LFM2.5-VL-1.6B"]["MPB Img"] == round(most(392), 3)


def test_published_cells_are_complete_and_fit_our_tables() -> None:
    cells = json.loads(PUBLISHED.read_text("utf-8"))
    assert all(set(cell) >= {"paper", "table", "row", "column", "value"} for cell in cells)
    assert [list(row) for row in TABLE_3.values()] == [list(MAIN_METRICS)] * 4
    assert _published("Table 1")["Total"] == {"Examples": 942, "Instances": 3768}
    assert sum(row["Examples"] for name, row in _published("Table 1").items() if "(" in name) == 942
    assert {(cell["row"], cell.get("sd")) for cell in cells if "sd" in cell} == {("Passage length", 5.6)}
    ours = {table.name: table for table in CMCBench().tables({}, JUDGE, resamples=10, seed=0)}
    for cell in cells:
        if "ours" in cell:
            assert cell["column"] in ours[cell["ours"]].columns


# --- policies, by definition -----------------------------------------------------------------------------

POLICIES: dict[str, tuple[Mapping[str, Sequence[str]], tuple[float | None, ...]]] = {
    "always-image": (
        {"aligned": ("BOTH",)} | dict.fromkeys(CONFLICT_CONDITIONS, ("IMAGE",)),
        (1, 1, 0, 0, 1 / 3, 1, 0, 2 / 3, 0),
    ),
    "always-text": (
        {"aligned": ("BOTH",)} | dict.fromkeys(CONFLICT_CONDITIONS, ("TEXT",)),
        (1, 0, 1, 0, 1 / 3, 0, 0, 2 / 3, 0),
    ),
    "always-abstain": (dict.fromkeys(PAPER_CONDITIONS, ("ABSTAIN",)), (0, 0, 0, 1, 1 / 3, None, 1, -1 / 3, 1)),
    "random": (
        {"aligned": ("BOTH",)} | dict.fromkeys(CONFLICT_CONDITIONS, ("IMAGE", "TEXT")),
        (1, 0.5, 0.5, 0, 1 / 3, 0.5, 0, 2 / 3, 0),
    ),
    "uniform": (dict.fromkeys(PAPER_CONDITIONS, LABELS), (0.6, 0.4, 0.4, 0.4, 0.4, 0.5, 0.4, 0.2, 0.2)),
}
POLICY_COLUMNS = ("Aligned", "Img-Cor", "Txt-Cor", "Both-Wr", "MFR", "MPB Img", "HR", "ΔAcc", "CDR")


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_scores_follow_from_its_definition(policy: str) -> None:
    labels, expected = POLICIES[policy]
    records = [_record(f"g{i}", c, labels[c][i % len(labels[c])]) for i in range(20) for c in PAPER_CONDITIONS]
    values = _values(_tables(*records)["main"], "run")
    for column, value in zip(POLICY_COLUMNS, expected, strict=True):
        assert values[column] == (None if value is None else pytest.approx(value, abs=1e-8))


@given(
    st.lists(st.integers(0, 50), min_size=5, max_size=5).filter(any),
    st.lists(st.integers(0, 9), min_size=5, max_size=5),
)
def test_mfr_of_blind_policy_is_one_plus_both_over_three(blind: list[int], aligned: list[int]) -> None:
    counts = np.array([aligned, blind, blind, blind], dtype=float)
    both = blind[LABELS.index("BOTH")] / sum(blind)
    assert float(MAIN_METRICS["MFR"](counts)) == pytest.approx((1 + both) / 3)


label_counts = st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5), min_size=4, max_size=4)


@given(label_counts)
def test_equations_match_a_direct_implementation(rows: list[list[int]]) -> None:
    """Equations 1 to 7 read as the paper writes them, over a list of (condition, label)."""
    labels = [
        (c, LABELS[i]) for c, row in zip(PAPER_CONDITIONS, rows, strict=True) for i in range(5) for _ in range(row[i])
    ]
    conflict = [pair for pair in labels if pair[0] != "aligned"]
    right = [(c, label) for c, label in labels if CMCBench().correct(c, label)]

    def acc(condition: str) -> float:
        return _over(sum(c == condition for c, _ in right), sum(c == condition for c, _ in labels))

    total = len(conflict) if all(any(c == name for c, _ in conflict) for name in CONFLICT_CONDITIONS) else 0

    def share(*names: str) -> float:
        return _over(sum(label in names for _, label in conflict), total)

    committed = sum(label in ("IMAGE", "TEXT") for _, label in conflict) if total else 0
    mpb = _over(sum(label == "IMAGE" for _, label in conflict), committed)
    expected = {
        **dict(zip(MAIN_METRICS, map(acc, PAPER_CONDITIONS), strict=False)),
        "MPB Img": mpb,
        "MPB Txt": 1 - mpb,
        "MFR": _over(sum(c != "aligned" for c, _ in right), total),
        "ConfabR": share("NEITHER"),
        "CDR": share("ABSTAIN"),
        "HR": share("NEITHER", "ABSTAIN"),
        "ΔAcc": acc("aligned") - sum(map(acc, CONFLICT_CONDITIONS)) / 3,
    }
    counts = np.array(rows, dtype=float)
    assert {name: float(metric(counts)) for name, metric in MAIN_METRICS.items()} == pytest.approx(
        expected, nan_ok=True
    )


def _over(part: int, total: int) -> float:
    return part / total if total else math.nan


# --- tables ------------------------------------------------------------------------------------------------


def test_undefined_metrics_are_na_with_reasons() -> None:
    only = [_record(f"g{i}", "image-correct", "IMAGE") for i in range(5)]
    cells = _row(_tables(*only)["main"], "run")
    assert cells["Img-Cor"].value == 1
    for name in set(MAIN_METRICS) - {"Img-Cor"}:
        assert cells[name].value is None
        assert cells[name].low is None
    assert cells["Aligned"].reason == "no labelled answer under aligned"
    assert cells["MFR"].reason == "no labelled answer under text-correct, both-wrong"
    abstained = [_record(f"g{i}", c, "ABSTAIN") for i in range(5) for c in PAPER_CONDITIONS]
    assert _row(_tables(*abstained)["main"], "run")["MPB Img"].reason == "no conflict answer is labelled IMAGE or TEXT"


def test_run_without_answers_has_na_tables() -> None:
    tables = _tables(_record("g", "aligned", None, status=None, finish=None))
    assert all(cell.value is None for cell in _row(tables["main"], "run").values())
    assert dict(tables["failures"].rows)["run / aligned"] == (0, 0, 0, 0, 0, 0, 1, 0)


def test_only_labelled_answers_count_and_failures_are_listed_by_kind() -> None:
    records = [
        _record("a", "image-correct", "IMAGE", finish="length"),
        _record("b", "image-correct", "TEXT"),
        _record("c", "image-correct", None, status="unparsed"),
        _record("d", "image-correct", None, status="judge-failed"),
        _record("e", "image-correct", "IMAGE", finish="error"),
        _record("f", "image-correct", None, status=None),
        _record("g", "image-correct", None, status=None, finish=None),
        *(_record(f"h{number}", "image-correct", None, status="undecided") for number in range(3)),
    ]
    tables = _tables(*records)
    accuracy_cell = _row(tables["main"], "run")["Img-Cor"]
    assert (accuracy_cell.value, accuracy_cell.n) == (0.5, 2)
    failures = tables["failures"]
    assert failures.columns == (
        "answered",
        "labelled",
        "unparsed",
        "undecided",
        "judge-failed",
        "error",
        "pending",
        "cut at token limit",
    )
    assert failures.rows == (("run / image-correct", (8, 2, 1, 3, 1, 1, 2, 1)),)
    other_judge = CMCBench().tables({"run": Answers.of(records, CMCBench())}, "nobody@1", resamples=5, seed=0)
    assert _row(other_judge[0], "run")["Img-Cor"].value is None


def test_label_table_covers_every_condition_and_single_sources() -> None:
    labels = {
        "both-wrong": "ABSTAIN",
        "image-only/right": "IMAGE",
        "image-only/wrong": "NEITHER",
        "text-only/wrong": "TEXT",
    }
    table = _tables(*[_record(f"g{i}", view, label) for i in range(4) for view, label in labels.items()])["labels"]
    shares = {label: _values(table, label) for label, _ in table.rows}
    assert [name.removeprefix("run / ") for name in shares] == [
        *PAPER_CONDITIONS,
        "image-only, right image",
        "image-only, wrong image",
        "text-only, gold passage",
        "text-only, contradicting passage",
    ]
    assert shares["run / both-wrong"] == {"IMAGE": 0, "TEXT": 0, "BOTH": 0, "NEITHER": 0, "ABSTAIN": 1}
    assert shares["run / image-only, right image"]["IMAGE"] == 1
    assert shares["run / image-only, wrong image"]["NEITHER"] == 1
    assert shares["run / text-only, contradicting passage"]["TEXT"] == 1
    assert set(shares["run / text-only, gold passage"].values()) == {None}


def test_gap_is_text_correct_less_image_correct_and_the_papers_follows_from_table_3() -> None:
    labels = {"image-correct": "IMAGE TEXT TEXT TEXT", "text-correct": "TEXT TEXT TEXT IMAGE"}
    records = [_record(f"g{i}", view, label) for view, all_ in labels.items() for i, label in enumerate(all_.split())]
    (cell,) = _row(_tables(*records)["gap"], "run").values()
    assert (cell.value, cell.n) == (0.5, 8)
    assert cell.low is not None
    (undefined,) = _row(_tables(*records[:4])["gap"], "run").values()
    assert (undefined.value, undefined.reason) == (None, "no labelled answer under text-correct")
    for model, printed in _published("Section 5.2, RQ3").items():
        assert list(printed.values()) == [round(TABLE_3[model]["Txt-Cor"] - TABLE_3[model]["Img-Cor"], 3)]


def test_each_type_has_its_own_row() -> None:
    records = [
        _record(f"{k}{i}", "aligned", label, k)
        for k, label in (("factual", "BOTH"), ("entity", "NEITHER"))
        for i in "12"
    ]
    table = _tables(*records)["by-type"]
    assert [label for label, _ in table.rows] == ["run / factual", "run / entity"]
    assert [_row(table, label)["Aligned"].value for label, _ in table.rows] == [1, 0]


def test_arbitration_uses_examples_with_both_sources_read() -> None:
    def example(name: str, conflict: str, image: str | None, text: str | None) -> list[Record]:
        views = [("image-correct", conflict), ("image-only/right", image), ("text-only/wrong", text)]
        return [_record(name, view, label) for view, label in views if label is not None]

    records = [
        *example("able1", "IMAGE", "IMAGE", "TEXT"),
        *example("able2", "TEXT", "IMAGE", "TEXT"),
        *example("able3", "IMAGE", "IMAGE", "TEXT"),
        *example("blind", "TEXT", "NEITHER", "TEXT"),
        *example("unread", "IMAGE", "IMAGE", "ABSTAIN"),
        *example("unknown", "IMAGE", None, "TEXT"),
        _record("other", "image-only/wrong", "IMAGE"),
    ]
    table = _tables(*records)["arbitration"]
    cells = dict(table.rows)["run / image-correct"]
    assert cells[:2] == (5, 3)
    shares = _row(table, "run / image-correct")
    assert shares["IMAGE"].value == pytest.approx(2 / 3)
    assert shares["IMAGE"].n == 3
    assert dict(table.rows)["run / text-correct"][:2] == (0, 0)
    assert _row(table, "run / text-correct")["IMAGE"].reason.startswith("no example has labelled answers")


def test_arbitration_is_na_if_no_source_is_read() -> None:
    records = [_record("g", view, "NEITHER") for view in ("both-wrong", "image-only/wrong", "text-only/wrong")]
    cell = _row(_tables(*records)["arbitration"], "run / both-wrong")["TEXT"]
    assert (cell.value, cell.reason) == (None, "no example's two sources are both read correctly alone")


def test_both_labels_under_conflict_are_listed_for_audit() -> None:
    records = [
        _record("a", "image-correct", "BOTH", answer="<think>8?</think>It is 8\nor 9 " + "x" * 500),
        _record("b", "aligned", "BOTH"),
        _record("c", "both-wrong", "TEXT"),
    ]
    table = _tables(*records)["both-audit"]
    assert [label for label, _ in table.rows] == ["a/image-correct"]
    run, image, text, beginning = table.rows[0][1]
    assert (run, image, text) == ("run", "8", "9")
    assert str(beginning).startswith("It is 8 or 9 xxx")
    assert len(str(beginning)) == 200


def _random_records(examples: int, seed: int) -> list[Record]:
    drawn: NDArray[np.int64] = np.random.default_rng(seed).integers(0, 5, (examples, len(CORRECT)))
    kinds = ("factual", "temporal", "entity", "granularity")
    return [
        _record(f"g{i}", view, LABELS[drawn[i, v]], kinds[i % 4])
        for i in range(examples)
        for v, view in enumerate(CORRECT)
    ]


def test_tables_do_not_depend_on_record_order() -> None:
    records = _random_records(40, 0)
    first = _tables(*records, resamples=200)
    again = _tables(*records[::-1], resamples=200)
    assert {name: t.rows for name, t in first.items() if name != "both-audit"} == {
        name: t.rows for name, t in again.items() if name != "both-audit"
    }
    assert first["main"] != _tables(*records, resamples=200, seed=1)["main"]


def test_intervals_contain_their_values_and_narrow_with_n() -> None:
    few, many = (_row(_tables(*_random_records(n, 1), resamples=300)["main"], "run") for n in (50, 800))
    for name in MAIN_METRICS:
        for cell in (few[name], many[name]):
            assert cell.low is not None
            assert cell.value is not None
            assert cell.high is not None
            assert cell.low <= cell.value <= cell.high
        assert _width(many[name]) < _width(few[name])


def test_intervals_have_a_width_where_all_answers_agree_and_one_example_has_none() -> None:
    names = ("main", "by-type", "labels")
    agreeing = _tables(*[_record(f"g{i}", c, "IMAGE") for i in range(9) for c in PAPER_CONDITIONS])
    one_example = _tables(*[_record("g", c, "IMAGE") for c in PAPER_CONDITIONS])
    for name in names:
        for (row, cells), (_, of_one) in zip(agreeing[name].rows, one_example[name].rows, strict=True):
            for cell, alone in zip(cells, of_one, strict=True):
                if isinstance(cell, Estimate) and isinstance(alone, Estimate) and cell.value is not None:
                    assert _width(cell) > 0.2, (name, row)
                    assert (alone.value, alone.low, alone.high) == (cell.value, None, None)
    assert INTERVALS in agreeing["main"].notes
    assert INTERVALS not in agreeing["failures"].notes


def _width(cell: Estimate) -> float:
    assert cell.high is not None
    assert cell.low is not None
    return cell.high - cell.low


@pytest.mark.slow
def test_fifty_thousand_records_take_seconds_and_bounded_memory() -> None:
    records = _random_records(6250, 2)
    tracemalloc.start()
    started = time.process_time()
    CMCBench().tables({"run": Answers.of(records, CMCBench())}, JUDGE, resamples=1000, seed=0)
    taken, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 20
    assert peak < 300e6
