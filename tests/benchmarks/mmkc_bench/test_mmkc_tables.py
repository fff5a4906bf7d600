"""MMKC-Bench's metrics: by hand, against the published values, and the answers they leave out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.answers import Answers
from benchmarks.mmkc_bench.mmkc_constants import CONDITIONS, FACT_TYPES, ROW_TYPES, dataset_of
from benchmarks.mmkc_bench.mmkc_tables import DETECTION_COLUMNS
from benchmarks.protocols.repeats import RepeatedInstances
from benchmarks.registry import get_benchmark
from benchmarks.tables.missing_labels import MISSING
from benchmarks.vocabulary import Estimate, Generation, Instance, Record, Table, Verdict
from judges.judge_registry import get_judge
from tests.support.data.mmkc_bench import PAPER, ROOT

MMKC = get_benchmark("mmkc-bench")
JUDGE = get_judge("own-answer")
CELLS: list[dict[str, Any]] = json.loads((ROOT / "assets" / "published" / "mmkc-bench.json").read_text("utf-8"))
SETTINGS = ("Context-Memory", "Inter-Context")
RATES = ("OAR", "CAR", "IAR")
AAAI = 2 * 24 + 36 + 13
"""The cells of Gemini-2.5-Pro, which only the version of AAAI 2026 has."""
MODELS = ("Qwen2.5-VL-7B", "InternVL3-8B", "GPT-4o mini")

REFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "mc": {"text letter": ("B", "C"), "text": ("red", "blue")},
    "open": {"text": ("red", "blue")},
}


def answer(kind: str, name: str, condition: str, text: str | None, error: bool = False) -> Record:
    """An answer to a question whose own option is A, and whose counter options are B and, between contexts, C."""
    form = condition.rpartition("-")[2]
    references = REFERENCES.get(form, {})
    if condition.startswith("context"):
        references = {key: values[:1] for key, values in references.items()}
    if form == "conflict":
        references = {"answer": ("Yes" if "non" in condition else "No",)}
    strata = {"dataset": dataset_of(kind), "type": kind, "instance": name}
    instance = Instance(f"{kind}-{name}/{condition}", f"{kind}-{name}", condition, "?", (), references, strata)
    if text is None:
        return Record(instance)
    return Record(instance, (Generation("x", text, "error" if error else "stop", error="broke" if error else None),))


def joined(records: Iterable[Record], judge: bool = True) -> list[Record]:
    """Return the records with their bases and, by default, with the verdicts of ``own-answer``."""
    built = list(records)
    answers = {(r.instance.group, r.instance.condition): r.answer for r in built}
    done = []
    for record in built:
        basis = MMKC.basis(record.instance.condition)
        with_basis = replace(record, basis=answers.get((record.instance.group, basis)) if basis else None)
        if judge and with_basis.answer is not None and with_basis.answer.finish_reason != "error":
            with_basis = replace(with_basis, verdicts={JUDGE.id: JUDGE.judge(with_basis)})
        done.append(with_basis)
    return done


def tables(records: Sequence[Record], judge: str = JUDGE.id) -> dict[str, Table]:
    return {table.name: table for table in MMKC.tables({"m": Answers.of(records, MMKC)}, judge, resamples=200, seed=0)}


def value(table: Table, row: str, column: str) -> float | None:
    cell = dict(table.rows)[row][table.columns.index(column)]
    assert isinstance(cell, Estimate)
    assert cell.value is not None or cell.reason
    return None if cell.value is None else round(cell.value, 6)


def rates(table: Table, setting: str, column: str, row: str = "m") -> tuple[float | None, ...]:
    return tuple(value(table, f"{row} / {setting} / {rate}", column) for rate in RATES)


def pairs(kind: str, answers: Sequence[tuple[str, str, str]], form: str = "mc") -> list[Record]:
    """Per triple (own, after one text, after two) the three answers to a question of ``kind``."""
    conditions = (f"original-{form}", f"context-memory-{form}", f"inter-context-{form}")
    return [
        answer(kind, f"n{number}", condition, text)
        for number, triple in enumerate(answers)
        for condition, text in zip(conditions, triple, strict=True)
    ]


# --- the rates -------------------------------------------------------------------------------------------------

# Strictly, context-memory: kept, kept, counter, neither, (left out: own is B), (own unparsed), (unparsed): 2/4, 1/4, 1/4.
# Inter-context: kept, counter, counter, counter, (left out), (own unparsed), neither (D): 1/5, 3/5, 1/5.
# Officially: row 5 is "(B)", which its filter lets pass: own B, answers A and B. Row 6 reads "According" as A and has A both
# times. Row 7 says "The cat", read as C: own A, C is neither of one counter answer, so irrelevant.
BY_HAND = [
    ("A", "A", "A"),
    ("(A)", "A.", "(B)"),
    ("A", "B", "C"),
    ("A", "C", "B"),
    ("(B)", "A", "B"),
    ("According to it, red", "A", "A"),
    ("A", "The cat", "D"),
]


def test_rates_match_manual_computation() -> None:
    main = tables(joined(pairs("ER", BY_HAND)))["main"]
    assert rates(main, "Context-Memory", "ER") == (0.5, 0.25, 0.25)
    assert rates(main, "Inter-Context", "ER") == (0.2, 0.6, 0.2)
    # Seven pairs: kept 1, 2, 6; counter 3; neither 4, 5 (B to A), 7.
    assert rates(main, "Context-Memory", "ER", "m (official)") == tuple(round(n / 7, 6) for n in (3, 1, 3))
    # Kept 1, 5, 6; counter 2, 3, 4; neither 7.
    assert rates(main, "Inter-Context", "ER", "m (official)") == tuple(round(n / 7, 6) for n in (3, 3, 1))
    assert [note for note in main.notes if note.startswith("Left out of all answers:")] == [
        "Left out of all answers: already the counter answer (m: 2), own answer unparsed (m: 2), "
        f"{MISSING['unparsed']} (m: 1)."
    ]


def test_excluded_answers_are_counted_by_reason() -> None:
    records = [
        *pairs("ER", [("A", "A", "A"), ("B", "A", "A"), ("?", "A", "A"), ("A", "?", "A")]),
        answer("ER", "own-error", "original-mc", "", error=True),
        answer("ER", "own-error", "context-memory-mc", "A"),
        answer("ER", "own-missing", "context-memory-mc", "A"),
        answer("ER", "error", "original-mc", "A"),
        answer("ER", "error", "context-memory-mc", "", error=True),
        answer("ER", "pending", "original-mc", "A"),
        answer("ER", "pending", "context-memory-mc", None),
    ]
    table = tables(joined(records))["left-out"]
    row = dict(zip(table.columns, dict(table.rows)["m / context-memory-mc"], strict=True))
    assert row == {
        "counted": 1,
        "already the counter answer": 1,
        "own answer not there": 1,
        "own answer in error": 1,
        "own answer unparsed": 1,
        "unparsed": 1,
        "undecided": 0,
        "judge-failed": 0,
        "error": 1,
        "pending": 1,
    }


def test_label_of_detection_under_conflict_is_excluded() -> None:
    (own, kept, other) = joined(pairs("ER", [("A", "A", "A")]))
    named = replace(kept, verdicts={JUDGE.id: Verdict(JUDGE.id, "labelled", "CORRECT")})
    table = tables([own, named, other])["left-out"]
    row = dict(zip(table.columns, dict(table.rows)["m / context-memory-mc"], strict=True))
    assert {reason: number for reason, number in row.items() if number} == {"judge-failed": 1}


def test_facts_of_an_entity_are_drawn_together() -> None:
    """An entity alone has no interval, however many facts it has; of several, facts that agree do not narrow it."""

    def interval(table: str, kinds: Iterable[str], entities: int) -> tuple[float | None, float | None]:
        answers = [("A", "A", "B"), ("A", "B", "B")] * (entities // 2) or [("A", "A", "B")]
        shown = tables(joined(record for kind in kinds for record in pairs(kind, answers)))[table]
        cell = dict(shown.rows)["m / Context-Memory / OAR"][shown.columns.index("EK" if table == "main" else "PT")]
        assert isinstance(cell, Estimate)
        return cell.low, cell.high

    assert interval("subtypes-mc", ("PT", "PL", "PC"), 1) == (None, None)
    assert interval("main", FACT_TYPES, 1) == (None, None)
    for entities in (2, 6, 20):
        of_fact, of_all = interval("subtypes-mc", ("PT",), entities), interval("main", FACT_TYPES, entities)
        assert of_fact[0] is not None
        assert of_fact[1] is not None
        assert of_fact[0] < 0.5 < of_fact[1]
        assert of_all == pytest.approx(of_fact, abs=0.02), "the facts of an entity are all right or all wrong"


def test_second_counter_answer_is_excluded_only_between_contexts() -> None:
    table = tables(joined(pairs("VS", [("C", "C", "C"), ("A", "B", "B")])))["main"]
    assert rates(table, "Context-Memory", "VS") == (0.5, 0.5, 0)
    assert rates(table, "Inter-Context", "VS") == (0, 1, 0)


def test_rates_without_answers_are_na_with_a_reason() -> None:
    cells = tables(joined(pairs("ER", [("B", "A", "A")])))
    assert rates(cells["main"], "Context-Memory", "ER") == (None, None, None)
    assert tables([])["main"].rows == ()
    only_judged_elsewhere = tables(joined(pairs("ER", [("A", "A", "A")]), judge=False))
    assert rates(only_judged_elsewhere["main"], "Inter-Context", "ER") == (None, None, None)
    assert "Left out of all answers: pending (m: 2)." in only_judged_elsewhere["main"].notes


def test_entity_knowledge_averages_facts_and_total_is_weighted() -> None:
    cell, both, none = [("A", "A", "A")], [("A", "A", "B"), ("A", "B", "A")], [("A", "B", "B")]
    of = {"ER": both, "VS": cell, "PT": cell, "PL": none, "PC": cell * 5, "LT": both, "LC": none, "LO": cell}
    main = tables(joined(record for kind, answers in of.items() for record in pairs(kind, answers)))["main"]
    knowledge = (1 + 0 + 1 + 0.5 + 0 + 1) / 6
    assert rates(main, "Context-Memory", "EK")[0] == round(knowledge, 6)
    average = (757 * 0.5 + 669 * knowledge + 147 * 1) / 1573
    assert rates(main, "Context-Memory", "Avg.")[0] == round(average, 6)
    subtypes = tables(joined(record for kind, answers in of.items() for record in pairs(kind, answers)))["subtypes-mc"]
    assert [value(subtypes, "m / Context-Memory / OAR", kind) for kind in FACT_TYPES] == [1, 0, 1, 0.5, 0, 1]
    without = tables(joined(record for kind in of if kind != "LO" for record in pairs(kind, of[kind])))["main"]
    assert rates(without, "Context-Memory", "EK") == rates(without, "Context-Memory", "Avg.") == (None, None, None)


def test_official_rows_count_the_last_row_of_a_name() -> None:
    first, last = pairs("PT", [("A", "A", "A")]), pairs("PT", [("A", "B", "B")])
    renamed = [replace(r, instance=replace(r.instance, group="g2", id=r.instance.id + "2")) for r in last]
    table = tables(joined([*first, *renamed]))["subtypes-mc"]
    assert value(table, "m / Context-Memory / CAR", "PT") == 0.5
    assert value(table, "m (official) / Context-Memory / CAR", "PT") == 1


def test_official_rows_pair_the_answers_of_a_repeat() -> None:
    instances = RepeatedInstances([record.instance for record in pairs("PT", [("A", "A", "A")])], 2)
    texts = ("A", "A", "A", "A", "B", "B")  # of the first repeat, then of the second
    records = [
        Record(instance, (Generation("x", text, "stop"),)) for instance, text in zip(instances, texts, strict=True)
    ]
    table = tables(joined(records))["subtypes-mc"]
    for row in ("m", "m (official)"):
        assert value(table, f"{row} / Context-Memory / CAR", "PT") == 0.5
        assert value(table, f"{row} / Context-Memory / OAR", "PT") == 0.5


def test_open_answers_use_the_selected_judge() -> None:
    records = joined(pairs("ER", [("gold", "red", "blue"), ("gold", "in gold", "green")], "open"))
    by_rule = tables(records)["open"]
    assert rates(by_rule, "Context-Memory", "ER") == (0.5, 0.5, 0)
    assert rates(by_rule, "Inter-Context", "ER") == (0, 0.5, 0.5)
    model = "gpt@mmkc-bench-2"
    judged = [
        replace(r, verdicts={**r.verdicts, model: Verdict(model, "labelled", "IRRELEVANT")}) if r.basis else r
        for r in records
    ]
    assert rates(tables(judged, model)["open"], "Context-Memory", "ER") == (0, 0, 1)
    choices = [*judged, *joined(pairs("ER", [("A", "A", "A")]))]
    both = tables(choices, model)
    assert rates(both["main"], "Context-Memory", "ER") == (1, 0, 0)
    assert both["main"].judges == (JUDGE.id,)
    assert both["open"].judges is None


@given(st.lists(st.tuples(*[st.sampled_from(["A", "B", "C", "D", "?", "(B)", ""])] * 3), min_size=1, max_size=12))
def test_the_three_rates_sum_to_one_or_are_all_undefined(answers: list[tuple[str, str, str]]) -> None:
    main = tables(joined(pairs("ER", answers)))["main"]
    for setting in SETTINGS:
        for row in ("m", "m (official)"):
            cells = rates(main, setting, "ER", row)
            assert cells == (None, None, None) or sum(filter(None, cells)) == pytest.approx(1, abs=1e-5)


# --- detection -------------------------------------------------------------------------------------------------


def test_detection_accuracy_matches_manual_computation() -> None:
    text = {"coarse-conflict": ["No", "No", "Yes", "Yes"], "coarse-non-conflict": ["Yes", "Yes", "Yes", "hm"]}
    records = [
        answer(kind, f"n{number}", condition, words)
        for kind in ("ER", "VS", *FACT_TYPES)
        for condition, answers in text.items()
        for number, words in enumerate(answers)
        if kind in ("ER", "VS", "PT", "LT") or condition == "coarse-conflict"
    ]
    records += [answer(kind, "n0", "fine-conflict", "No") for kind in FACT_TYPES]
    records += [answer(kind, "n0", "fine-non-conflict", "No" if kind == "PL" else "Yes") for kind in FACT_TYPES]
    records += [answer("ER", "empty", "coarse-conflict", ""), answer("ER", "later", "coarse-conflict", None)]
    table = tables(joined(records))["detection"]
    expected = [0.75, 0.5, 0.625] * 3 + [0.625, 5 / 6, 1, 11 / 12]
    assert [value(table, "m", column) for column in DETECTION_COLUMNS] == [round(row, 6) for row in expected]
    cells = dict(zip(table.columns, table.rows[0][1], strict=True))
    ns = [cell.n for cell in cells.values() if isinstance(cell, Estimate)]
    assert ns == [4, 4, 8, 8, 24, 32, 4, 4, 8, 48, 6, 6, 12]
    assert f"Left out of all answers: {MISSING['unparsed']} (1), pending (1)." in table.notes


def test_the_change_of_car_is_paired_and_has_an_interval() -> None:
    records = []
    for name in ("a", "b", "c", "d"):
        for kind in ROW_TYPES:
            second = "C" if name in "ab" else "A"
            records += [
                answer(kind, name, "original-mc", "A"),
                answer(kind, name, "context-memory-mc", "B" if name == "a" else "A"),
                answer(kind, name, "inter-context-mc", second),
            ]
    change = tables(joined(records))["second-text"]
    cells = dict(change.rows)["m / multiple choice"]
    for cell in cells:
        assert isinstance(cell, Estimate)
        assert cell.value == pytest.approx(2 / 4 - 1 / 4)
        assert cell.low is not None
        assert cell.high is not None
        assert -1 <= cell.low < 0.25 < cell.high <= 1
    assert [label for label, _ in change.rows] == ["m / multiple choice", "m (official) / multiple choice"]


def test_an_unknown_type_is_weighted_by_the_instances_of_the_data() -> None:
    def asked(kind: str, name: str, taken: bool) -> list[Record]:
        return [
            answer(kind, name, "original-mc", "A"),
            answer(kind, name, "context-memory-mc", "B" if taken else "A"),
        ]

    records = [record for n in range(3) for record in asked("ER", f"e{n}", False)] + asked("ED", "d", True)
    everything = tables(joined(records))
    table = everything["all-types"]
    row = dict(table.rows)["m / context-memory-mc / CAR"]
    values = dict(zip(table.columns, [cell.value if isinstance(cell, Estimate) else cell for cell in row], strict=True))
    assert values == {"ER": 0.0, "EK": None, "VS": None, "ED": 1.0, "Avg.": 0.25}
    assert "Unknown types, which the paper does not name: ED." in table.notes[0]
    assert everything["main"].columns == ("ER", "EK", "VS", "Avg.")
    assert "all-types" not in tables(joined(asked("ER", "e", True)))


# --- the published figures -------------------------------------------------------------------------------------


def test_published_cells_fit_our_tables_in_the_papers_order() -> None:
    everything = joined(
        answer(kind, "n", condition, "No" if condition.endswith("conflict") else "A")
        for kind in ROW_TYPES
        for condition in CONDITIONS
    )
    ours = tables(everything)
    assert list(ours) == [
        *("main", "open", "detection", "subtypes-open", "subtypes-mc", "second-text", "left-out", "failures"),
    ]
    for name, table in (("main", 2), ("open", 3), ("subtypes-open", 5), ("subtypes-mc", 6), ("detection", 4)):
        published = [cell for cell in CELLS if cell["table"] == f"Table {table}"]
        assert {cell["ours"] for cell in published} == {name}
        assert tuple(dict.fromkeys(cell["column"] for cell in published)) == ours[name].columns
        rows = [row.removeprefix("m") for row, _ in ours[name].rows if "official" not in row]
        for model in MODELS:
            of = dict.fromkeys(cell["row"] for cell in published if cell["row"].startswith(model))
            assert [row.removeprefix(model) for row in of] == rows
    assert len(CELLS) == 9 + 2 * 72 + 39 + 2 * 108 + AAAI


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not beside the project")
def test_every_published_value_is_in_the_paper() -> None:
    text = PAPER.read_text("utf-8")
    for number in (2, 3, 4, 5, 6):
        table = text.split(f"Table {number}: ")[1].split("\n\n", 2)[1]
        printed = [figure for line in table.splitlines() for figure in re.findall(r"\d\.\d\d(?!\d)", line)]
        ours = [cell["value"] for cell in CELLS if cell["table"] == f"Table {number}"]
        assert sorted(map(float, printed)) == sorted(ours), number


def test_published_rows_follow_our_rows(tmp_path: Path) -> None:
    from app.papers.published_results import published_rows

    cells = dict(published_rows(tables(joined(pairs("ER", [("A", "A", "A")])))["main"], "mmkc-bench"))
    row = cells["GPT-4o mini / Inter-Context / IAR (paper)"]
    assert [cell.value if cell else None for cell in row] == [0.05, 0.03, 0.03, 0.04]
    assert len(cells) == 18 + 6
