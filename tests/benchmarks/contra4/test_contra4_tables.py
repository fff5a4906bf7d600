"""Contra4's tables: figures worked out by hand, by the judge and officially; captions; the paper's rows beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.papers.published_results import published_rows
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.answers import Answers
from benchmarks.contra4.construction.meteor import meteor
from benchmarks.contra4.contra4_balanced import balanced_test
from benchmarks.contra4.contra4_constants import COMBINATIONS
from benchmarks.contra4.contra4_tables import CAPTION_COLUMNS, MAIN_COLUMNS, label_metrics
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate, Generation, Instance, Record, Table
from judges.judge_registry import get_judge
from tests.support.command import Rashomon
from tests.support.json_output import cells_of
from tests.support.runs import make_run

CONTRA4 = get_benchmark("contra4")
CHOICE = get_judge("choice")


def record(
    number: int,
    reply: str | None,
    *,
    size: int = 2,
    negatives: str = "random",
    modalities: str = "audio+image",
    category: str = "Other",
    condition: str = "media",
    captions: Sequence[tuple[str, str, str]] = (),
) -> Record:
    """A question whose answer is A; ``captions`` are modality, predicted and gold."""
    references = {"answer": ("A",), "gold": ("A",), "options": tuple("ABCD"[:size])}
    if captions:
        columns = list(zip(*captions, strict=True))
        references |= dict(zip(("modalities", "predicted captions", "gold captions"), columns, strict=True))
    strata = {"kind": f"{size}-{negatives}", "negatives": negatives, "modalities": modalities, "category": category}
    instance = Instance(f"q{number}/{condition}", f"q{number}", condition, "Which?", (), references, strata)
    if reply is None:
        return Record(instance, (Generation(f"{instance.id}#0", "", "error", error="it broke"),))
    unjudged = Record(instance, (Generation(f"{instance.id}#0", reply, "stop"),))
    return Record(instance, unjudged.generations, {CHOICE.id: CHOICE.judge(unjudged)})


def tables(*records: Record, judge: str = CHOICE.id) -> dict[str, Table]:
    return {
        table.name: table for table in CONTRA4.tables({"m": Answers.of(records, CONTRA4)}, judge, resamples=200, seed=0)
    }


def cell(table: Table, row: str, column: str) -> Estimate:
    value = dict(table.rows)[row][table.columns.index(column)]
    assert isinstance(value, Estimate)
    return value


def test_table_2_matches_manual_computation() -> None:
    records = [
        record(1, "Scene A"),
        record(2, "Scene B"),
        record(3, "Scene A", negatives="similar"),
        record(4, "Scene A or B", negatives="similar"),  # no choice; officially right
        record(5, "", size=3),
        record(6, "Answer: it depends", size=3),  # no choice; officially right by the A of "Answer"
        record(7, None, size=3),
    ]
    results = tables(*records)
    main = results["main"]
    assert main.columns == tuple(MAIN_COLUMNS)
    values = {column: cell(main, "m", column).value for column in main.columns}
    assert values == {
        "2 Modalities / Rand.": 0.5,
        "2 Modalities / Sim.": 0.5,
        "2 Modalities / All": 0.5,
        "3 Modalities / Rand.": 0.0,
        "3 Modalities / Sim.": None,
        "3 Modalities / All": 0.0,
        "4 Modalities / Rand.": None,
        "4 Modalities / Sim.": None,
        "4 Modalities / All": None,
        "All / Rand.": 0.25,
        "All / Sim.": 0.5,
        "All / All": pytest.approx(2 / 6),
    }
    official = {column: cell(main, "m (official)", column).value for column in main.columns}
    assert (official["2 Modalities / Sim."], official["3 Modalities / All"]) == (1.0, 0.5)
    assert official["All / All"] == pytest.approx(4 / 6)
    total = cell(main, "m", "All / All")
    assert total.n == 6
    assert total.low is not None
    assert total.high is not None
    assert 0 <= total.low < 2 / 6 < total.high <= 1
    (failures,) = results["failures"].rows
    assert failures == ("m / media", (6, 3, 3, 0, 0, 1, 0, 0))
    assert main.notes[:2] == ("Counted as INCORRECT: without an answer (3).", "Left out of all answers: in error (1).")


def test_balanced_subset_has_a_row_of_its_own() -> None:
    balanced, other = record(1, "A"), record(2, "B")
    balanced = replace(balanced, instance=replace(balanced.instance, group=min(balanced_test())))
    main = tables(balanced, other)["main"]
    assert [row for row, _ in main.rows] == ["m", "m (official)", "m (balanced, ours)"]
    assert [cell(main, row, "All / All").value for row in ("m", "m (balanced, ours)")] == [0.5, 1.0]
    assert [row for row, _ in tables(other)["main"].rows] == ["m", "m (official)"]
    assert "1,133" in "".join(main.notes)
    assert "1,133" not in "".join(tables(other)["main"].notes)


def test_an_official_judge_has_one_row_a_run() -> None:
    official = get_judge("official")
    assert [row for row, _ in tables(record(1, "A"), judge=official.id)["main"].rows] == ["m (official)"]


def test_combinations_and_categories() -> None:
    records = [
        record(1, "A", modalities="audio+image", category="Other"),
        record(2, "B", modalities="3d+image", category="Threats, Risks & Safety"),
        record(3, "A", modalities="3d+image", category="My own"),
        record(4, "A", size=3, modalities="3d+image+image", category="Other"),
    ]
    results = tables(*records)
    assert results["combinations"].columns == COMBINATIONS
    assert len(COMBINATIONS) == 11
    assert cell(results["combinations"], "m", "3d+image").value == 0.5
    assert cell(results["combinations"], "m", "audio+video").value is None
    assert results["combinations"].notes[0] == "Left out: samples in which a modality occurs twice (1)."
    assert results["categories"].columns == ("Other", "Threats, Risks & Safety", "My own")
    assert [cell(results["categories"], "m", name).n for name in results["categories"].columns] == [2, 1, 1]


def test_every_condition_has_rows() -> None:
    records = [record(1, "A"), record(1, "B", condition="gold-captions"), record(1, "A", condition="captions")]
    rows = [row for row, _ in tables(*records)["main"].rows]
    assert rows == [f"m{part}{how}" for part in ("", " / captions", " / gold-captions") for how in ("", " (official)")]


def test_table_6_counts_every_medium_once() -> None:
    dog = ("audio", "A dog barks", "A dog is barking")
    records = [
        record(1, "A", condition="captions", captions=[dog, ("image", "A red car", "A red car")]),
        record(2, "A", condition="captions", captions=[dog, ("image", "Nothing", "Two men")]),
    ]
    table = tables(*records)["captions"]
    assert table.columns == ("Image", "Video", "Audio", "3D") == tuple(CAPTION_COLUMNS)
    assert cell(table, "m", "Image").value == pytest.approx(meteor("A red car", "A red car") / 2)
    assert cell(table, "m", "Audio").value == pytest.approx(meteor("A dog barks", "A dog is barking"))
    assert (cell(table, "m", "Image").n, cell(table, "m", "Audio").n) == (2, 1)
    assert cell(table, "m", "Video").reason == "no caption of it was predicted"
    assert "METEOR (exact, stem)" in table.notes[0]
    assert table.judges == ()
    assert "captions" not in tables(record(1, "A"))


def test_metrics_are_na_without_answers() -> None:
    results = tables(record(1, None))
    assert cell(results["main"], "m", "All / All").reason == "no such question is answered"
    assert tables()["main"].rows == ()


def test_metrics_for_correction_are_accuracies() -> None:
    import numpy as np

    counts = np.zeros((4, 2))
    counts[0] = (3, 1)
    assert label_metrics().of["Accuracy, media"](counts) == 0.75
    assert np.isnan(label_metrics().of["Accuracy, captions"](counts))


def test_published_rows_follow_ours() -> None:
    results = tables(record(1, "A"))
    rows = dict(published_rows(results["main"], "contra4"))
    assert len(rows) == 5
    crema = dict(zip(results["main"].columns, rows["CREMA (paper)"], strict=True))
    assert crema["2 Modalities / Rand."] == Estimate(0.71)
    assert sum(cell is not None for row in rows.values() for cell in row) == 53, (
        "the text of the paper has lost 17 of 60, of which the project page has ten"
    )


def test_each_training_set_s_adapter_is_a_row_beside_its_base(tmp_path: Path) -> None:
    """Figures 4 and 8: one model fine-tuned on subsets of several filters, by number of modalities and by category."""
    rashomon = Rashomon(tmp_path)
    items = [
        record(number, "", size=2 + number % 2, category=("Other", "Instruments")[number % 2]).instance
        for number in range(12)
    ]
    right = {"base": 4, "puf": 10, "mf": 8}
    for name, count in right.items():

        def answer(instance: Instance, count: int = count) -> Generation:
            number = int(instance.group[1:])
            return Generation(f"{instance.id}#0", "Scene A" if number < count else "Scene B", "stop")

        model = "org/m" if name == "base" else f"org/m+/adapters/{name}"
        make_run(Workspace(rashomon.workspace), name, items, answer, model=model, benchmark=CONTRA4)
        adapter = {} if name == "base" else {"adapter digest": name * 8}
        with RunStore.open(rashomon.workspace / "runs" / name) as store:
            store.set_meta("identity", {**store.meta("identity"), **adapter})
    labels = ("m", "m+puf", "m+mf")

    def values(table: str, column: str) -> list[float]:
        (shown,) = rashomon.json("show", "base", "puf", "mf", "--table", table)["tables"]
        cells = {row["label"]: cells_of(shown, number)[column] for number, row in enumerate(shown["rows"])}
        return [cells[label]["value"] for label in labels]

    assert values("main", "All / All") == pytest.approx([4 / 12, 10 / 12, 8 / 12])
    assert values("categories", "Instruments") == pytest.approx([2 / 6, 5 / 6, 4 / 6])
    verdicts = rashomon.json("compare", "base", "puf", "mf")["verdicts"]
    assert [any(f" {label} " in f" {verdict}" for verdict in verdicts) for label in labels] == [False, True, True]
    rashomon.run("export", "base", "puf", "mf", "--format", "svg", "--out", tmp_path / "out")
    assert {"main.svg", "categories.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}
    rashomon.run("export", "base", "--format", "svg", "--out", tmp_path / "alone")
    assert "main.svg" not in {path.name for path in (tmp_path / "alone").iterdir()}
