"""CLASH's tables: against the paper's own numbers and predictions, and by definition."""

from __future__ import annotations

import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.answers import Answers
from benchmarks.clash import Clash
from benchmarks.clash.clash_constants import CONDITIONS, CONFLICT_OPTION, CORRECT, LABELS, RELATIONS
from benchmarks.clash.clash_instances import instances
from benchmarks.clash.clash_metrics import label_metrics
from benchmarks.clash.clash_predictions import read_answers
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.clash_tables import tables
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.tables.missing_labels import MISSING
from benchmarks.vocabulary import (
    Decoding,
    Estimate,
    FinishReason,
    Generation,
    Instance,
    Record,
    Table,
    Verdict,
    VerdictStatus,
)
from judges.clash_string_match_judge import Relaxed, Strict
from mlx_backends.policy_engine import PolicyBackend

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL = ROOT.parent / "shared" / "data" / "clash" / "official"
CHOICES = OFFICIAL / "multiple_choice__gemini-2.5-flash-lite_predictions.json"
OPEN = OFFICIAL / "open_ended__llm_as_judge__internvl_chatv1.5_predictions.json"
JUDGE = "strict@1"

Cells = dict[str, dict[str, dict[str, Any]]]


def _cells(name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((ROOT / "assets" / "published" / f"{name}.json").read_text("utf-8"))
    return cells


def _published(table: str, name: str = "clash") -> Cells:
    rows: Cells = {}
    for cell in _cells(name):
        if cell["table"] == table:
            rows.setdefault(cell["row"], {})[cell["column"]] = cell
    return rows


def _record(
    sample: str,
    condition: str,
    label: str | None,
    *,
    flags: tuple[str, ...] = (),
    judge: str = JUDGE,
    status: VerdictStatus | None = "labelled",
    finish: FinishReason | None = "stop",
    **strata: str,
) -> Record:
    instance = Instance(f"{sample}/{condition}", sample, condition, "?", (), {}, {"change": "object", **strata})
    generations = () if finish is None else (Generation(f"{instance.id}#0", "x", finish),)
    verdict = None if status is None else Verdict(judge, status, label, flags=flags)
    return Record(instance, generations, {} if verdict is None else {judge: verdict})


def _also(record: Record, judge: str, label: str | None, status: VerdictStatus = "labelled") -> Record:
    return replace(record, verdicts={**record.verdicts, judge: Verdict(judge, status, label)})


def _tables(
    records: Iterable[Record], judge: str = JUDGE, *, resamples: int = 100, seed: int = 0, run: str = "run"
) -> dict[str, Table]:
    return {
        table.name: table
        for table in tables(Clash(), {run: Answers.of(list(records), Clash())}, judge, resamples=resamples, seed=seed)
    }


def _row(table: Table, label: str = "run") -> dict[str, Estimate]:
    cells = dict(table.rows)[label]
    return {name: cell for name, cell in zip(table.columns, cells, strict=True) if isinstance(cell, Estimate)}


def _values(table: Table, label: str = "run") -> dict[str, float | None]:
    return {name: None if cell.value is None else round(cell.value, 9) for name, cell in _row(table, label).items()}


# --- the published tables ------------------------------------------------------------------------------------

ROWS = {1: 16, 2: 13, 3: 6, 5: 8, 6: 14, 7: 3, 8: 12, 9: 12, 10: 8, 11: 16, 12: 8, 13: 8, 16: 3}
COLUMNS = {1: 5, 2: 2, 3: 4, 5: 5, 6: 3, 7: 5, 8: 6, 9: 6, 10: 4, 11: 4, 12: 6, 13: 6, 16: 4}


def test_published_rows_are_complete_and_unique() -> None:
    assert {n: len(_published(f"Table {n}")) for n in ROWS} == ROWS
    assert Counter(cell["table"] for cell in _cells("clash")) == {
        **{f"Table {n}": ROWS[n] * COLUMNS[n] for n in ROWS},
        "Table 4": 16,
        "Section 3.1": 2,
        "Appendix C.1": 4,
    }
    keys = [(cell["table"], cell["row"], cell["column"]) for cell in _cells("clash")]
    assert len(keys) == len(set(keys))


def test_published_values_are_fractions_with_deviations_unless_zero() -> None:
    for cell in (*_cells("clash"), *_cells("pope")):
        assert cell["paper"] == "CLASH"
        if cell["column"] == "Samples" or cell["table"] == "Table 4":
            continue
        assert cell["percent"]
        assert 0 <= cell["value"] <= 1
        assert ("sd" in cell) == (cell["value"] > 0)
        assert 0 < cell.get("sd", 0.01) < 0.16


KNOWN = [
    ("Table 1", "Gemini 2.5 Pro", "Conflict", 0.8848, 0.0089),
    ("Table 1", "GPT 4.1 Mini", "Incorrect", 0.0, None),
    ("Table 1", "Qwen3VL-instruct-30b", "Distractor", 0.0197, 0.0039),
    ("Table 2", "mPLUG-Owl-1", "Incorrect", 0.6161, 0.0135),
    ("Table 3", "LLaVa-1.5-7b-ft", "Overall", 0.8408, 0.0074),
    ("Table 5", "LRV-MiniGPT4-7b", "Text", 0.4277, 0.0124),
    ("Table 6", "InternVL1.5 / strict", "No conflict", 0.9251, 0.0073),
    ("Table 6", "InternVL1.5 / relaxed", "Conflict", 0.1671, 0.0099),
    ("Table 7", "GPT 5", "Distractor", 0.0, None),
    ("Table 8", "Gemini 2.5 Flash Lite", "Household", 0.1058, 0.026),
    ("Table 9", "GPT 5", "Environmental", 0.5788, 0.1419),
    ("Table 10", "mPLUG-Owl-2", "Text", 0.9703, 0.0048),
    ("Table 11", "LLaVa-1.5-7b / both", "Conflict", 0.0008, 0.0008),
    ("Table 11", "mPLUG-Owl-1 / at least one", "Incorrect", 0.6595, 0.014),
    ("Table 12", "InternVL1.5", "Vehicles", 0.3137, 0.0559),
    ("Table 13", "mPLUG-Owl-1", "Other", 0.0387, 0.0387),
    ("Table 16", "InstructBlip-T5xxl", "Text", 0.5898, 0.0297),
]


@pytest.mark.parametrize(("table", "row", "column", "value", "sd"), KNOWN)
def test_known_cells(table: str, row: str, column: str, value: float, sd: float | None) -> None:
    cell = _published(table)[row][column]
    assert (cell["value"], cell.get("sd")) == (value, sd)


def test_the_published_samples_are_the_paper_s() -> None:
    counted = {row: cells["Samples"]["value"] for row, cells in _published("Section 3.1").items()}
    assert sum(counted.values()) == 1289
    spatial = {row: cells["Samples"]["value"] for row, cells in _published("Appendix C.1").items()}
    assert spatial.pop("Spatial samples") == sum(spatial.values()) == 271
    if (path := OFFICIAL / "synthetic_captions_test_filtered.json").is_file():
        kinds = Counter(row["change_type"] for row in json.loads(path.read_text("utf-8"))["samples"])
        assert counted == {"Object samples": kinds["object"], "Attribute samples": kinds["attribute"]}


def test_published_cells_fit_our_tables() -> None:
    everything = [
        _also(_also(_record(f"{change}{c}", c, "TEXT", change=change), "a@1", "TEXT"), "b@1", "TEXT")
        for change in ("object", "attribute", "spatial")
        for c in CONDITIONS
    ]
    ours = _tables(everything)
    assert list(ours) == [
        *("main", "multiple-choice-relaxed", "open-ended", "open-ended-all", "no-conflict", "no-conflict-open"),
        *("spatial", "spatial-open", "objects", "attributes", "objects-open", "attributes-open"),
        *("modality-preference", "judges", "exclusive", "failures"),
    ]
    for cell in _cells("clash"):
        if "ours" in cell:
            assert cell["column"] in ours[cell["ours"]].columns
    for n, name in ((1, "main"), (8, "objects"), (9, "attributes"), (10, "open-ended-all"), (16, "spatial-open")):
        first = next(iter(_published(f"Table {n}").values()))
        assert tuple(first) == ours[name].columns
    assert [table.percent for table in ours.values()] == [True] * 15 + [False]


def test_pope_has_three_settings_and_table_15_two_benchmarks() -> None:
    table = _published("Table 14", "pope")
    assert {name: len(row) for name, row in table.items()} == dict.fromkeys(
        ("LLaVa-1.5-7b", "LLaVa-1.5-7b-ft", "mPLUG-Owl-1", "mPLUG-Owl-1-ft"), 3
    )
    assert (table["mPLUG-Owl-1-ft"]["Popular"]["value"], table["mPLUG-Owl-1-ft"]["Popular"]["sd"]) == (0.4691, 0.0084)
    for name in ("okvqa", "gqa"):
        rest = [cell for row in _published("Table 15", name).values() for cell in row.values()]
        assert [(cell["column"], cell["ours"]) for cell in rest] == [(name.upper(), "main")] * 4


# --- the published predictions -------------------------------------------------------------------------------


def _predictions(path: Path) -> list[Record]:
    """The answers of a file with their published verdicts and those of our two judges."""
    if not path.is_file():
        pytest.skip("needs the published predictions")
    records = []
    for prediction in read_answers(path):
        record = Record(prediction.instance, (Generation(f"{prediction.instance.id}#0", prediction.answer, "stop"),))
        verdicts = [*prediction.verdicts, Strict().judge(record), Relaxed().judge(record)]
        records.append(replace(record, verdicts={verdict.judge: verdict for verdict in verdicts}))
    return records


def _agrees(ours: dict[str, Estimate], paper: dict[str, dict[str, Any]], sds: float = 3.0) -> None:
    """Each cell within ``sds`` standard deviations of the paper's, which is itself a mean over resamples."""
    assert set(paper) <= set(ours)
    for column, cell in paper.items():
        mine = ours[column]
        assert mine.value is not None
        assert mine.sd is not None
        assert abs(mine.value - cell["value"]) <= sds * mine.sd, column
        assert mine.sd == pytest.approx(cell.get("sd", 0), rel=0.12, abs=0.0003), column


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["strict@1", "relaxed@1", "published@1"])
def test_table_1_from_the_published_answers_of_gemini_flash_lite(judge: str) -> None:
    ours = _row(_tables(_predictions(CHOICES), judge, resamples=1000)["main"])
    assert {column: (round(1281 * (cell.value or 0), 9), cell.n) for column, cell in ours.items()} == {
        "Conflict": (96, 1281),
        "Image": (960, 1281),
        "Text": (199, 1281),
        "Distractor": (26, 1281),
        "Incorrect": (0, 1281),
    }
    _agrees(ours, _published("Table 1")["Gemini 2.5 Flash Lite"], 0.2)


def test_tables_8_and_9_from_the_published_answers_of_gemini_flash_lite() -> None:
    ours = _tables(_predictions(CHOICES), resamples=1000)
    for n, name in ((8, "objects"), (9, "attributes")):
        for column, cell in _published(f"Table {n}")["Gemini 2.5 Flash Lite"].items():
            mine = _row(ours[name])[column]
            assert mine.value is not None
            assert abs(mine.value - cell["value"]) <= 3 * cell["sd"], column
    assert "In no column: answers whose changed words belong to several categories (18)." in ours["objects"].notes


@pytest.mark.parametrize("judge", ["strict@1", "relaxed@1", "published@1"])
def test_tables_2_and_10_from_the_published_answers_of_internvl(judge: str) -> None:
    ours = _tables(_predictions(OPEN), judge, resamples=1000)
    counts = {column: round(1281 * (cell.value or 0)) for column, cell in _row(ours["open-ended-all"]).items()}
    assert counts == {"Conflict": 240, "Image": 290, "Text": 711, "Incorrect": 81}
    _agrees(_row(ours["open-ended-all"]), _published("Table 10")["InternVL1.5"], 0.2)
    _agrees(_row(ours["open-ended"]), _published("Table 2")["InternVL 1.5"], 0.2)
    both = dict(ours["exclusive"].rows)
    assert (both["run / every match"][-1], both["run / one label"][-1]) == (37, 0)
    totals = {
        column: round(1281 * (cell.value or 0)) for column, cell in _row(ours["exclusive"], "run / one label").items()
    }
    assert totals == {"Conflict": 240, "Image": 286, "Text": 674, "Incorrect": 81}


def test_all_four_rows_of_table_11_from_the_published_answers_of_internvl() -> None:
    table = _tables(_predictions(OPEN), resamples=1000)["judges"]
    counts = {
        label.removeprefix("run / "): [round(1281 * (cell.value or 0)) for cell in _row(table, label).values()]
        for label, _ in table.rows
    }
    assert counts == {
        "gemini-2.5-pro@published": [263, 305, 669, 44],
        "gpt-5@published": [263, 298, 666, 54],
        "at least one": [273, 311, 669, 57],
        "both": [253, 292, 666, 41],
    }
    names = {"gemini-2.5-pro@published": "Gemini 2.5 Pro", "gpt-5@published": "GPT-5"}
    for label in counts:
        _agrees(_row(table, f"run / {label}"), _published("Table 11")[f"InternVL1.5 / {names.get(label, label)}"], 0.2)


# --- policies, through the judges ------------------------------------------------------------------------------


def _answers(policy: dict[str, str], samples: int = 12) -> list[Record]:
    """Return the records of a model that gives one kind of answer under each condition, for every order of the options."""
    words = {"image": "polar bear", "text": "brown bear", "distractor": "fox", "conflict": CONFLICT_OPTION}
    records = []
    for i in range(samples):
        order = random.Random(i).sample(list(words), 4)
        for condition in CONDITIONS:
            references = {role: (answer,) for role, answer in words.items()}
            if condition.startswith("mc"):
                references |= {f"{role} letter": (letter,) for role, letter in zip(order, "ABCD", strict=True)}
                answer = f"({'ABCD'[order.index(policy[condition])]})" if policy[condition] in order else "?"
            else:
                answer = words.get(policy[condition], "?")
            instance = Instance(f"{i}/{condition}", str(i), condition, "?", (), references, {"change": "object"})
            record = Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),))
            verdicts = {judge.id: judge.judge(record) for judge in (Strict(), Relaxed())}
            records.append(replace(record, verdicts=verdicts))
    return records


@pytest.mark.parametrize(
    ("policy", "seen", "unseen"),
    [("conflict", 1, 0), ("image", 0, 1), ("text", 0, 0), ("distractor", 0, 0), ("mumble", 0, 0)],
)
def test_policy_scores_follow_from_its_definition(policy: str, seen: int, unseen: int) -> None:
    results = _tables(_answers(dict.fromkeys(CONDITIONS, policy)))
    column = {"mumble": "Incorrect"}.get(policy, policy.capitalize())
    choice = {name: float(name == column) for name in ("Conflict", "Image", "Text", "Distractor", "Incorrect")}
    assert _values(results["main"]) == _values(results["multiple-choice-relaxed"]) == choice
    opened = {name: value for name, value in choice.items() if name != "Distractor"}
    if policy == "distractor":  # open questions show none
        opened["Incorrect"] = 1
    assert _values(results["open-ended-all"]) == opened
    expected = {"Conflict": seen, "No conflict": unseen, "Overall": (seen + unseen) / 2}
    for judge in ("strict", "relaxed"):
        assert _values(results["no-conflict"], f"run / {judge}") == expected
    assert _values(results["no-conflict-open"]) == expected | {"Incorrect": opened["Incorrect"]}
    if policy == "conflict":
        assert set(_values(results["modality-preference"], "run / multiple choice").values()) == {None}


def test_correct_answers_score_one_overall() -> None:
    right = {condition: label.lower() for condition, label in CORRECT.items()}
    results = _tables(_answers(right))
    for row in (_values(results["no-conflict"], "run / strict"), _values(results["no-conflict-open"])):
        assert [row[name] for name in ("Conflict", "No conflict", "Overall")] == [1, 1, 1]


def _answered_by(policy: str, samples: int = 40) -> list[Record]:
    """Return a policy's answers to CLASH's instances, judged by string matching."""
    backend = PolicyBackend(policy)
    records = []
    for i in range(samples):
        sample = replace(SAMPLE, image_id=str(i))
        for instance in instances(sample, "official", 0):
            request = DirectProtocol(Decoding()).next(instance, ())
            assert request is not None
            backend.submit(request)
            (answer,) = backend.step()
            record = Record(instance, (answer,))
            records.append(replace(record, verdicts={judge.id: judge.judge(record) for judge in (Strict(), Relaxed())}))
    return records


SAMPLE = ClashSample(
    image_id="1",
    image=None,
    original_caption="A polar bear.",
    conflicting_caption="A brown bear.",
    question="Which bear is it?",
    change_type="object",
    image_only="polar bear",
    text_only="brown bear",
    distractor="fox",
    changed_original="polar",
    changed_conflicting="brown",
    category="animals",
    source="rows",
)


@pytest.mark.parametrize(
    ("policy", "seen", "unseen", "overall"),
    [("always-image", 0, 1, 0.5), ("always-text", 0, 1, 0.5), ("always-abstain", 1, 0, 0.5), ("random", 0, 1, 0.5)],
)
def test_the_policies_rows_of_tables_3_and_6(policy: str, seen: int, unseen: int, overall: float) -> None:
    results = _tables(_answered_by(f"policy:{policy}"))
    expected = {"Conflict": seen, "No conflict": unseen, "Overall": overall}
    for judge in ("strict", "relaxed"):
        assert _values(results["no-conflict"], f"run / {judge}") == expected
    assert _values(results["no-conflict-open"]) == expected | {"Incorrect": 0}
    followed = _values(results["main"])
    assert (followed["Image"] or 0) + (followed["Text"] or 0) == 1 - seen
    if policy == "always-text":
        assert followed["Text"] == 1
    if policy == "random":
        assert 0.2 < (followed["Text"] or 0) < 0.8


def test_uniform_uses_the_displayed_text() -> None:
    results = _tables(_answered_by("policy:uniform", 200))
    for row in (_values(results["no-conflict"], "run / strict"), _values(results["no-conflict-open"])):
        # IMAGE and TEXT both give the image's answer under an original caption, and BOTH gives it twice.
        assert 0.5 < (row["No conflict"] or 0) < 0.7


# --- by definition -----------------------------------------------------------------------------------------------


def test_flags_count_in_every_column_and_labels_in_one() -> None:
    records = [
        _record("a", "open-conflicting", "CONFLICT", flags=("CONFLICT", "TEXT")),
        _record("b", "open-conflicting", "IMAGE", flags=("IMAGE", "TEXT")),
        _record("c", "open-conflicting", "TEXT"),
        _record("d", "open-conflicting", "INCORRECT"),
    ]
    results = _tables(records)
    assert _values(results["open-ended-all"]) == {"Conflict": 0.25, "Image": 0.25, "Text": 0.75, "Incorrect": 0.25}
    assert _values(results["exclusive"], "run / every match") == _values(results["open-ended-all"])
    assert set(_values(results["exclusive"], "run / one label").values()) == {0.25}
    assert [cells[-1] for _, cells in results["exclusive"].rows] == [2, 0]
    preference = _values(results["modality-preference"], "run / open-ended")
    assert preference == {"Image": pytest.approx(1 / 3), "Text": pytest.approx(2 / 3)}
    of_all = _values(results["modality-preference"], "run / open-ended, of all")
    assert of_all == {name: _values(results["open-ended-all"])[name] for name in ("Image", "Text")}


def test_human_distractor_label_on_open_answer_is_incorrect() -> None:
    results = _tables([_record("a", "open-conflicting", "DISTRACTOR"), _record("b", "mc-conflicting", "DISTRACTOR")])
    assert _values(results["open-ended-all"])["Incorrect"] == 1
    assert _values(results["main"])["Distractor"] == 1


def test_panel_flags_may_combine_and_panel_has_no_row() -> None:
    panel = "any(a@1, b@1)"
    record = _also(_also(_record("x", "open-conflicting", "TEXT"), "a@1", "IMAGE"), "b@1", "INCORRECT")
    verdict = Verdict(panel, "labelled", "IMAGE", flags=("IMAGE", "INCORRECT"))
    results = _tables([replace(record, verdicts={**record.verdicts, panel: verdict})], panel)
    every = {"Conflict": 0, "Image": 1, "Text": 0, "Incorrect": 1}
    assert _values(results["open-ended-all"]) == _values(results["judges"], "run / at least one") == every
    assert not any(panel in label for label, _ in results["judges"].rows)
    named = _record("y", "open-conflicting", "IMAGE", flags=("IMAGE", "DISTRACTOR"))
    assert _values(_tables([named])["open-ended-all"])["Incorrect"] == 0


def test_empty_answers_are_incorrect_and_other_failures_excluded() -> None:
    for condition, name in (("mc-conflicting", "main"), ("open-conflicting", "open-ended-all")):
        records = [
            _record("a", condition, "CONFLICT", finish="length"),
            _record("b", condition, "IMAGE"),
            _record("c", condition, None, status="unparsed"),
            _record("d", condition, None, status="judge-failed"),
            _record("e", condition, "IMAGE", finish="error"),
            _record("f", condition, None, status=None),
            _record("g", condition, None, status=None, finish=None),
            _record("h", condition, None, status="undecided"),
        ]
        results = _tables(records)
        row = _row(results[name])
        third = pytest.approx(1 / 3)
        assert [row[column].value for column in ("Conflict", "Image", "Incorrect")] == [third, third, third]
        assert row["Conflict"].n == 3
        assert f"Counted as INCORRECT: {MISSING['unparsed']} (1)." in results[name].notes
        left_out = "undecided by the judge (1), not labelled by the judge (1), in error (1), pending (2)"
        assert f"Left out of all answers: {left_out}." in results[name].notes
        failures = results["failures"]
        assert dict(zip(failures.columns, dict(failures.rows)[f"run / {condition}"], strict=True)) == {
            "answered": 6,
            "labelled": 2,
            "unparsed": 1,
            "undecided": 1,
            "judge-failed": 1,
            "error": 1,
            "pending": 2,
            "cut at token limit": 1,
        }


def test_open_answer_judge_leaves_multiple_choice_to_strict() -> None:
    model = "openai:gpt-5@clash-1"
    records = [
        _record("a", "mc-conflicting", "TEXT"),
        _also(_record("a", "open-conflicting", "TEXT"), model, "IMAGE"),
    ]
    results = _tables(records, model)
    assert _values(results["main"])["Text"] == 1
    assert results["main"].judges == ("strict@1",)
    assert not any("strict" in note for note in results["main"].notes)
    assert _values(results["open-ended-all"])["Image"] == 1
    assert not any("strict" in note for note in results["open-ended-all"].notes)
    assert results["open-ended-all"].judges is None
    assert [label for label, _ in results["no-conflict"].rows] == ["run / strict", "run / relaxed"]
    assert results["failures"].judges == ("strict@1", model)
    assert "Labelled by strict@1: run / mc-conflicting." in results["failures"].notes


def test_table_names_its_judges_if_not_the_selected_one() -> None:
    records = [
        _also(_also(_record("a", condition, "TEXT"), "relaxed@1", "TEXT"), "gpt@1", "IMAGE") for condition in CONDITIONS
    ]
    judges = {name: table.judges for name, table in _tables(records).items()}
    assert {name: ids for name, ids in judges.items() if ids is not None} == {
        "multiple-choice-relaxed": ("relaxed@1",),
        "no-conflict": ("strict@1", "relaxed@1"),
        "judges": ("gpt@1",),
    }
    assert judges["main"] is judges["failures"] is None
    by_model = {name: table.judges for name, table in _tables(records, "gpt@1").items()}
    assert by_model["no-conflict"] == ("gpt@1", "strict@1", "relaxed@1")
    assert by_model["judges"] is by_model["main"] is None


def test_note_names_runs_with_a_different_judge() -> None:
    plain = [_record("a", "mc-conflicting", "TEXT")]
    judged = [_also(_record("a", "mc-conflicting", "TEXT"), "gpt@1", "IMAGE")]
    results = {
        t.name: t
        for t in tables(
            Clash(),
            {"one": Answers.of(plain, Clash()), "two": Answers.of(judged, Clash())},
            "gpt@1",
            resamples=5,
            seed=0,
        )
    }
    assert set(results["main"].judges or ()) == {"strict@1", "gpt@1"}
    assert "Labelled by strict@1: one." in results["main"].notes
    assert "Labelled by strict@1: one / mc-conflicting." in results["failures"].notes


def test_human_labels_of_multiple_choice_are_used() -> None:
    records = [
        _also(_record("a", "mc-conflicting", "TEXT"), "human:anna@1", "IMAGE"),
        _record("b", "mc-conflicting", "TEXT"),
    ]
    results = _tables(records, "human:anna@1")
    assert (_values(results["main"])["Image"], _row(results["main"])["Image"].n) == (1, 1)
    assert "Left out of all answers: pending (1)." in results["main"].notes
    assert [label for label, _ in results["no-conflict"].rows] == [
        "run / human:anna@1",
        "run / strict",
        "run / relaxed",
    ]


def test_newest_version_of_a_string_judge_is_used() -> None:
    record = _also(_record("a", "mc-conflicting", "TEXT", judge="relaxed@9"), "relaxed@10", "IMAGE")
    results = _tables([record], "strict@1")
    assert _values(results["multiple-choice-relaxed"])["Image"] == 1


def test_undefined_metrics_are_na_with_reasons() -> None:
    results = _tables([_record(str(i), "mc-conflicting", "CONFLICT") for i in range(3)])
    cells = _row(results["no-conflict"], "run / strict")
    assert cells["Conflict"].value == 1
    assert (cells["Overall"].value, cells["Overall"].reason) == (None, "nothing was asked under mc-original")
    relaxed = _row(results["multiple-choice-relaxed"])["Image"]
    assert (relaxed.value, relaxed.reason) == (None, "relaxed has labelled no answer under mc-conflicting")
    assert relaxed.sd is relaxed.low is relaxed.high is None
    assert not {"open-ended", "judges", "spatial", "attributes"} & set(results)


def test_run_without_records_has_a_main_table() -> None:
    results = _tables([])
    assert set(_values(results["main"]).values()) == {None}
    assert results["failures"].rows == ()
    assert [table.name for table in tables(Clash(), {}, JUDGE, resamples=5, seed=0)] == ["main", "failures"]


def test_spatial_table_has_a_row_per_relation() -> None:
    records = [
        _record("o", "mc-conflicting", "CONFLICT"),
        *(
            _record(f"{r}{i}", "mc-conflicting", "TEXT", change="spatial", relation=r)
            for r in RELATIONS[:2]
            for i in "12"
        ),
        _record("s", "open-conflicting", "IMAGE", change="spatial", relation=RELATIONS[2]),
    ]
    results = _tables(records)
    assert _values(results["main"])["Conflict"] == 1
    assert [label for label, _ in results["spatial"].rows] == ["run", "run / left-right", "run / above-below"]
    assert _values(results["spatial"])["Text"] == 1
    assert _row(results["spatial"])["Text"].n == 4
    assert _values(results["spatial-open"], "run / front-behind")["Image"] == 1
    assert "open-ended" not in results


def test_multi_category_answers_are_in_no_column() -> None:
    labels = {"animals": "CONFLICT", "transportation": "TEXT", "several": "CONFLICT", "other": "CONFLICT"}
    records = [_record(name, "mc-conflicting", label, category=name) for name, label in labels.items()]
    records.append(_record("x", "mc-conflicting", "CONFLICT", change="attribute", category="other"))
    results = _tables(records)
    assert _values(results["objects"]) == {
        "Animals": 1,
        "Vehicles": 0,
        "Other": 1,
        **dict.fromkeys(("Food", "Sports", "Household")),
    }
    assert _row(results["objects"])["Other"].n == 1
    assert "In no column: answers whose changed words belong to several categories (1)." in results["objects"].notes
    assert _values(results["attributes"])["Other"] == 1


def test_judges_are_compared_on_answers_labelled_by_all() -> None:
    def answer(name: str, a: str | None, b: str | None) -> Record:
        record = _record(name, "open-conflicting", "TEXT")
        for judge, label in (("a@1", a), ("b@1", b)):
            record = _also(record, judge, label, "labelled" if label else "judge-failed")
        return record

    records = [answer("1", "IMAGE", "IMAGE"), answer("2", "IMAGE", "TEXT"), answer("3", "TEXT", None)]
    table = _tables(records)["judges"]
    assert [label for label, _ in table.rows] == ["run / a@1", "run / b@1", "run / at least one", "run / both"]
    assert _values(table, "run / a@1")["Image"] == pytest.approx(2 / 3)
    assert _values(table, "run / b@1")["Image"] == 0.5
    assert (_values(table, "run / at least one")["Text"], _values(table, "run / both")["Text"]) == (0.5, 0)
    assert _row(table, "run / both")["Image"].n == 2
    assert "Left out of all answers: not labelled by the judge (run / b@1: 1)." in table.notes
    alone = _tables([_also(_record("1", "open-conflicting", "TEXT"), "a@1", "TEXT")])["judges"]
    assert [label for label, _ in alone.rows] == ["run / a@1"]
    third = _tables([_also(record, "c@1", "IMAGE") for record in records])["judges"]
    assert third.rows[-1][0] == "run / all"


# --- spread, order, speed ------------------------------------------------------------------------------------------


def _random_records(samples: int, seed: int) -> list[Record]:
    drawn = np.random.default_rng(seed).integers(0, 5, (samples, 4))
    kinds = ("animals", "food", "several", "other")
    return [
        _record(f"g{i}", condition, LABELS[drawn[i, c]], category=kinds[i % 4])
        for i in range(samples)
        for c, condition in enumerate(CONDITIONS)
    ]


def test_the_deviation_is_that_of_a_proportion() -> None:
    row = _row(_tables(_random_records(600, 0), resamples=1000)["main"])
    for cell in row.values():
        assert cell.value is not None
        assert cell.low is not None
        assert cell.high is not None
        assert cell.sd is not None
        assert cell.sd == pytest.approx(math.sqrt(cell.value * (1 - cell.value) / 600), rel=0.12)
        assert cell.low < cell.value < cell.high
        assert cell.high - cell.low == pytest.approx(2 * 1.96 * cell.sd, rel=0.15)


def test_bootstrap_draws_both_captions_of_a_sample_together() -> None:
    """For a model that sees a conflict under both captions or under neither, exactly one of the two answers is right."""
    records = [
        _record(f"g{i}", condition, ("CONFLICT", "IMAGE")[i % 2])
        for i in range(50)
        for condition in ("mc-conflicting", "mc-original")
    ]
    row = _row(_tables(records)["no-conflict"], "run / strict")
    assert (row["Conflict"].value, row["Overall"].value) == (0.5, 0.5)
    assert row["Conflict"].sd == pytest.approx(0.07, abs=0.02)
    assert row["Overall"].sd == pytest.approx(0, abs=1e-12)


def test_single_sample_has_no_spread_and_full_agreement_has_a_note() -> None:
    alone = _tables([_record("a", "mc-conflicting", "IMAGE")])["main"]
    assert _row(alone)["Image"].sd is None
    assert not any(note.startswith("±") for note in alone.notes)
    agreeing = _tables([_record(name, "mc-conflicting", "IMAGE") for name in "abc"])["main"]
    assert _row(agreeing)["Image"].sd == 0
    assert "A deviation of 0 means that all answers agree, not that the metric is certain." in agreeing.notes


def test_tables_do_not_depend_on_record_order() -> None:
    records = _random_records(60, 1)
    shuffled = random.Random(0).sample(records, len(records))
    assert _tables(records) == _tables(shuffled)
    assert _tables(records)["main"] != _tables(records, seed=1)["main"]


open_flags = st.lists(
    st.lists(st.sampled_from(["CONFLICT", "IMAGE", "TEXT"]), unique=True, max_size=3).map(
        lambda flags: tuple(label for label in LABELS if label in flags)
    ),
    min_size=1,
    max_size=12,
)


@given(open_flags)
def test_one_label_sums_to_one_and_every_match_is_at_least_that(flag_sets: list[tuple[str, ...]]) -> None:
    records = [
        _record(str(i), "open-conflicting", flags[0] if flags else "INCORRECT", flags=flags)
        for i, flags in enumerate(flag_sets)
    ]
    table = _tables(records, resamples=5)["exclusive"]
    every, single = (_values(table, f"run / {name}") for name in ("every match", "one label"))
    assert math.fsum(value or 0 for value in single.values()) == pytest.approx(1, abs=1e-8)
    assert all((every[column] or 0) >= (single[column] or 0) for column in single)
    assert every["Conflict"] == single["Conflict"]
    assert every["Incorrect"] == single["Incorrect"]


label_counts = st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5), min_size=4, max_size=4)


@pytest.mark.slow
@given(label_counts)
def test_metrics_from_counts_match_the_tables(rows: Sequence[Sequence[int]]) -> None:
    records = [
        _record(f"{c}{i}{n}", condition, LABELS[i])
        for c, condition in enumerate(CONDITIONS)
        for i in range(5)
        for n in range(rows[c][i])
        if not (condition.startswith("open") and LABELS[i] == "DISTRACTOR")
    ]
    counts = np.array(rows, float)
    counts[2:, LABELS.index("DISTRACTOR")] = 0
    of = label_metrics().of
    results = _tables(records, resamples=2)
    expected: dict[str, float | None] = {}
    for task, names in {
        "multiple choice": {"main": "run", "no-conflict": "run / strict"},
        "open-ended": {"open-ended-all": "run", "no-conflict-open": "run"},
    }.items():
        for name, label in names.items():
            if name in results:
                expected |= {f"{column}, {task}": value for column, value in _values(results[name], label).items()}
    assert set(expected) <= set(of)
    for name, value in expected.items():
        figure = float(of[name](counts))
        assert (None if math.isnan(figure) else pytest.approx(figure, abs=1e-8)) == value


def test_metrics_accept_counts_of_any_leading_shape() -> None:
    counts = np.random.default_rng(0).random((3, 2, len(CONDITIONS), len(LABELS)))
    assert {figure(counts).shape for figure in label_metrics().of.values()} == {(3, 2)}
    assert list(label_metrics().of) == [
        *("Conflict, multiple choice", "Image, multiple choice", "Text, multiple choice"),
        *("Distractor, multiple choice", "Incorrect, multiple choice"),
        *("No conflict, multiple choice", "Overall, multiple choice"),
        *("Conflict, open-ended", "Image, open-ended", "Text, open-ended", "Incorrect, open-ended"),
        *("No conflict, open-ended", "Overall, open-ended"),
    ]


@pytest.mark.slow
def test_tables_of_twenty_full_runs_take_seconds() -> None:
    runs = {f"run {i}": Answers.of(_random_records(1289, i), Clash()) for i in range(4)}
    runs |= {f"again {i}": runs[f"run {i % 4}"] for i in range(16)}
    started = time.process_time()
    results = tables(Clash(), runs, JUDGE, resamples=1000, seed=0)
    assert time.process_time() - started < 20
    assert len(results[0].rows) == 20
