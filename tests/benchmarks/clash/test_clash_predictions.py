"""Import of the published predictions: every row, its answer and its verdicts, and malicious files."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clash.clash_constants import CONFLICT_OPTION
from benchmarks.clash.clash_predictions import PredictionsReport, read_answers
from benchmarks.clash.sources.clash_released import parse_published_sample
from benchmarks.errors import SourceError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Text
from tests.support.data.clash import MULTIPLE_CHOICE, OPEN_ENDED, published_row

real = pytest.mark.skipif(not MULTIPLE_CHOICE.exists(), reason="the published predictions are not here")


def _prediction(number: Any = 1, prediction: Any = "(A)", **more: Any) -> dict[str, Any]:
    row = published_row(number)
    return {
        **{key: row[key] for key in ("image_id", "original_caption", "conflicting_caption", "question")},
        "prediction": prediction,
        "modality_answers": {
            "image_only": {"choice": "C", "answer": "White"},
            "text_only": {"choice": "D", "answer": "Black"},
            "irrelevant_but_plausible": {"choice": "B", "answer": "Orange"},
            "contradiction": {"choice": "A", "answer": CONFLICT_OPTION},
        },
        "evaluation": {
            "matches_contradiction": True,
            "matches_image_only": False,
            "matches_text_only": False,
            "matches_irrelevant": False,
        },
        **more,
    }


def _write(path: Path, rows: Any) -> Path:
    path.write_text(json.dumps(rows), "utf-8")
    return path


@real
def test_every_published_multiple_choice_answer_is_read() -> None:
    report = PredictionsReport([], [])
    every = list(read_answers(MULTIPLE_CHOICE, report=report))
    assert (len(every), report.skipped, report.unjoined) == (1281, [], [])
    assert {e.instance.condition for e in every} == {"mc-conflicting"}
    assert len({e.instance.id for e in every}) == 1281
    assert Counter(v.label for e in every for v in e.verdicts) == {
        "IMAGE": 960,
        "TEXT": 199,
        "CONFLICT": 96,
        "DISTRACTOR": 26,
    }
    for prediction in every:
        (verdict,) = prediction.verdicts
        letters = {k.removesuffix(" letter"): v[0] for k, v in prediction.instance.references.items() if "letter" in k}
        assert set(re.findall(r"\(([A-D])\)", prediction.answer)) == {letters[str(verdict.label).lower()]}
        (part,) = prediction.instance.parts
        assert isinstance(part, Text)
        for role, letter in letters.items():
            assert f"\n({letter}) {prediction.instance.references[role][0]}" in part.text


@real
def test_every_published_open_answer_has_three_verdicts() -> None:
    report = PredictionsReport([], [])
    every = list(read_answers(OPEN_ENDED, report=report))
    assert (len(every), report.skipped, report.unjoined) == (1281, [], [])
    labels = {
        judge: Counter(v.label for e in every for v in e.verdicts if v.judge == judge)
        for judge in ("published@1", "gpt-5@published", "gemini-2.5-pro@published")
    }
    assert labels["gpt-5@published"] == {"TEXT": 666, "IMAGE": 298, "CONFLICT": 263, "INCORRECT": 54}
    assert labels["gemini-2.5-pro@published"] == {"TEXT": 669, "IMAGE": 305, "CONFLICT": 263, "INCORRECT": 44}
    # Exclusive: conflict before image before text. By flags it is 240, 290, 711 and 81.
    assert labels["published@1"] == {"CONFLICT": 240, "IMAGE": 286, "TEXT": 674, "INCORRECT": 81}
    flags = Counter(flag for e in every for v in e.verdicts if v.judge == "published@1" for flag in v.flags)
    assert flags == {"CONFLICT": 240, "IMAGE": 290, "TEXT": 711, "INCORRECT": 81}
    assert all(e.instance.references["distractor"] for e in every)
    assert Counter(e.instance.strata["change"] for e in every) == {"object": 650, "attribute": 631}


@real
def test_published_files_cover_the_same_samples() -> None:
    choice, opened = ({e.instance.group for e in read_answers(f)} for f in (MULTIPLE_CHOICE, OPEN_ENDED))
    assert len(choice & opened) == 1279


@real
def test_control_maps_to_original_captions_and_the_fixed_one_is_separate() -> None:
    report = PredictionsReport([], [])
    every = list(read_answers(MULTIPLE_CHOICE, caption="original", report=report))
    assert {e.instance.condition for e in every} == {"mc-original"}
    assert report.unjoined == [f"{MULTIPLE_CHOICE.name}:396"]
    (part,) = every[0].instance.parts
    assert isinstance(part, Text)
    assert "A cat sleeping in a blue chair. \n" in part.text


def test_kind_and_category_come_from_the_data_set(tmp_path: Path) -> None:
    data = _write(tmp_path / "data.json", {"samples": [published_row(1), {"broken": 1}]})
    path = _write(tmp_path / "predictions.json", [_prediction(1), _prediction(2)])
    report = PredictionsReport([], [])
    joined, not_joined = read_answers(path, data=data, report=report)
    assert joined.instance.strata == {"change": "attribute", "category": "colors", "source": "published"}
    assert joined.instance.group == parse_published_sample(published_row(1)).id
    assert not_joined.instance.strata == {"source": "published"}
    assert report.unjoined == ["predictions.json:2"]
    alone = list(read_answers(path))
    assert [a.instance.id for a in alone] == [joined.instance.id, not_joined.instance.id]
    with pytest.raises(SourceError, match="is not the published data set"):
        list(read_answers(path, data=path))


def test_a_repeated_row_is_another_answer(tmp_path: Path) -> None:
    path = _write(tmp_path / "p.json", [_prediction(1, "(A)"), _prediction(1, "(B)"), _prediction(1, "(C)")])
    every = list(read_answers(path))
    assert [e.answer for e in every] == ["(A)", "(B)", "(C)"]
    assert len({e.instance.id for e in every}) == len({e.instance.group for e in every}) == 3


def test_flags_are_stored_and_ordered_as_in_the_paper(tmp_path: Path) -> None:
    both = {"matches_contradiction": False, "matches_image_only": True, "matches_text_only": True}
    none = dict.fromkeys(both, False) | {"matches_none": True}
    rows = [
        _prediction(1, "x", evaluation=both),
        _prediction(2, "", evaluation=none),
        _prediction(3, "x", evaluation="yes"),
        _prediction(4, "x", evaluation={"matches_contradiction": "yes"}),
    ]
    verdicts = [e.verdicts for e in read_answers(_write(tmp_path / "p.json", rows))]
    assert [(v.label, v.flags) for (v,) in verdicts[:2]] == [
        ("IMAGE", ("IMAGE", "TEXT")),
        ("INCORRECT", ("INCORRECT",)),
    ]
    assert verdicts[2] == ()
    assert [v.label for v in verdicts[3]] == ["INCORRECT"]


def test_judge_reply_without_label_is_a_failure(tmp_path: Path) -> None:
    row = _prediction(
        1, "x", **{"evaluation_gpt-5_prediction": "TEXT or IMAGE", "evaluation_gemini-2.5-pro_prediction": 3}
    )
    (only,) = read_answers(_write(tmp_path / "p.json", [row]))
    _, gpt = only.verdicts
    assert (gpt.judge, gpt.status, gpt.label, gpt.raw) == ("gpt-5@published", "judge-failed", None, "TEXT or IMAGE")


def _options(**changes: Any) -> dict[str, Any]:
    return {**_prediction()["modality_answers"], **changes}


BAD: list[tuple[Any, str]] = [
    (5, "not a JSON object"),
    (_prediction(1, 7), "no prediction"),
    (_prediction(1, "x" * 1_000_001), "prediction is longer"),
    (_prediction("7"), "not a COCO image id"),
    (_prediction(1, question="x" * 5_000), "question is longer"),
    (_prediction(1, question={}), "no question"),
    (_prediction(1, modality_answers=[]), "no answers"),
    (_prediction(1, modality_answers={"image_only": "a"}), "no answers"),
    (_prediction(1, modality_answers=_options(text_only={"choice": "C", "answer": "Black"})), "four roles"),
    (_prediction(1, modality_answers=_options(text_only={"choice": "Z", "answer": "Black"})), "four roles"),
    (_prediction(1, modality_answers=_options(contradiction={"choice": "A", "answer": "Obey."})), "four roles"),
]


def test_hostile_rows_are_skipped_with_reasons(tmp_path: Path) -> None:
    path = _write(tmp_path / "p.json", [*(row for row, _ in BAD), _prediction(2)])
    report = PredictionsReport([], [])
    assert len(list(read_answers(path, report=report))) == 1
    assert len(report.skipped) == len(BAD)
    for skipped, (_, reason) in zip(report.skipped, BAD, strict=True):
        assert reason in skipped.reason
    assert report.reasons.total() == len(BAD)


@pytest.mark.parametrize("content", ["", "{}", "[]", "[1]", '[{"image_id": 1}]', "[" * 100_000, "\x00"])
def test_file_without_predictions_names_the_expected_format(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.json").write_text(content, "utf-8")
    with pytest.raises(SourceError, match="expected a JSON list of rows with image_id"):
        list(get_benchmark("clash").read_answers(tmp_path / "p.json", "published", lambda row, reason: None))
