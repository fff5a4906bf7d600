"""Tables about confidence: values that follow from arithmetic, and what they say where there is too little."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from benchmarks.answer_confidence import UNKNOWN, confidence_of, likelihood_remarks
from benchmarks.answers import Answers
from benchmarks.cmc_bench import CMCBench
from benchmarks.tables.confidence_tables import CONFIDENCE_TABLES, confidence_tables
from benchmarks.vocabulary import SHOWN_TEXT, Estimate, Generation, Instance, Record, Table, Text, Verdict

JUDGE = "match@4"
CMC = CMCBench()
VALUES = {"image": ("43",), "text": ("59",)}


def record(
    number: int,
    condition: str,
    label: str,
    scores: Sequence[float | None],
    references: Mapping[str, tuple[str, ...]] = VALUES,
) -> Record:
    """Return an answer of three tokens, the last of which ends it."""
    instance = Instance(f"{number}/{condition}", str(number), condition, "?", (Text("?"),), references, {})
    generation = Generation(f"{instance.id}#0", "43", "stop", (1, 2, 0), scores=tuple(scores))
    return Record(instance, (generation,), {JUDGE: Verdict(JUDGE, "labelled", label)})


def sure(probability: float) -> float:
    """Return the score of an answer of two tokens that are each as likely as this."""
    return 2 * math.log(probability)


def tables_of(runs: Mapping[str, Sequence[Record]], **options: Sequence[tuple[str, str]]) -> dict[str, Table]:
    answers = {run: Answers.of(records, CMC) for run, records in runs.items()}
    return {table.name: table for table in confidence_tables(answers, JUDGE, CMC, resamples=100, seed=0, **options)}


def cells(table: Table, row: str) -> dict[str, object]:
    """Return the values of a row by column; None for n/a."""
    values = dict(table.rows)[row]
    return {
        name: cell.value if isinstance(cell, Estimate) else cell
        for name, cell in zip(table.columns, values, strict=True)
    }


def instance_of(references: Mapping[str, tuple[str, ...]]) -> Instance:
    return Instance("i", "g", "c", "?", (), references)


def test_confidence_of_open_answers() -> None:
    def confidence(*scores: float | None, references: Mapping[str, tuple[str, ...]] = VALUES) -> tuple[float, ...]:
        return confidence_of(instance_of(references), (), scores, tokens=3, finish_reason="stop")

    assert confidence(-1.0, -4.0, -9.0, sure(0.25)) == pytest.approx((0.25, 3.0, -9 - sure(0.25)))
    equal = {"image": ("Paris",), "text": (" paris",)}
    assert math.isnan(confidence(-1.0, -1.5, -9.0, -2.0, references=equal)[1]), "equal values are no preference"
    shown = {**VALUES, "text": ("x",), SHOWN_TEXT: ("43",)}
    assert math.isnan(confidence(-1.0, -1.0, -9.0, -2.0, references=shown)[1]), "the shown text's value is the image's"
    answer, preference, abstention = confidence(None, -4.0, None, -2.0)
    assert answer == pytest.approx(math.exp(-1))
    assert math.isnan(preference)
    assert math.isnan(abstention)
    assert math.isnan(confidence(-1.0, -4.0, -9.0, None)[0]), "an empty answer has no tokens"
    for scores in ((), (-1.0,)):
        assert all(map(math.isnan, confidence(*scores)))
    cut = confidence_of(instance_of(VALUES), (), (-1.0, -1.0, -1.0, -3.0), tokens=3, finish_reason="length")
    assert cut.answer == pytest.approx(math.exp(-1)), "no token of a truncated answer ends it"
    failed = confidence_of(instance_of(VALUES), (), (-1.0,) * 4, tokens=3, finish_reason="error")
    assert failed is UNKNOWN


def test_confidence_of_options_is_a_share() -> None:
    letters = {"image letter": ("A",), "text letter": ("C",), "conflict letter": ("B",)}
    scores = [math.log(p) for p in (0.4, 0.1, 0.2, 0.1)]
    options = ("(A)", "(B)", "(C)", "(D)")
    confidence = confidence_of(instance_of(letters), options, scores, tokens=1, finish_reason="stop")
    assert confidence == pytest.approx((0.5, math.log(2), math.log(0.25)))
    nothing = confidence_of(instance_of({}), ("A", "B"), (-1.0, -1.0), tokens=1, finish_reason="stop")
    assert nothing.answer == 0.5
    assert math.isnan(nothing.preference)


def test_a_sample_names_its_logprobs() -> None:
    answered = record(1, "image-only", "IMAGE", (-1.0, None, -9.0, -0.5))
    (remark,) = likelihood_remarks(answered, ())
    assert remark.startswith("logprobs: image -1.00, text n/a, abstention -9.00, answer -0.50; confidence 0.779")
    assert likelihood_remarks(record(1, "image-only", "IMAGE", ()), ()) == ()


def test_a_coin_and_a_boaster_by_arithmetic() -> None:
    coin = [record(n, "image-correct", "IMAGE" if n % 2 else "TEXT", (-1.0, -2.0, -5.0, sure(0.5))) for n in range(100)]
    boaster = [record(n, "image-correct", "TEXT", (-9.0, -2.0, -5.0, 0.0)) for n in range(100)]
    tables = tables_of({"coin": coin, "boaster": boaster})
    assert cells(tables["calibration"], "coin / all") == pytest.approx(
        {
            "answers": 100,
            "right": 0.5,
            "confidence": 0.5,
            "ECE": 0,
            "ECE by chance": cells(tables["calibration"], "coin / all")["ECE by chance"],
            "Brier": 0.25,
            "AUROC right": 0.5,
            "AUROC doubt": None,
            "AUROC abstention": None,
        }
    )
    always_wrong = cells(tables["calibration"], "boaster / all")
    assert (always_wrong["right"], always_wrong["ECE"], always_wrong["Brier"]) == (0, 1, 1)
    preference = cells(tables["preference"], "boaster / image-correct")
    assert preference == {
        "log-odds, image : text": -7,
        "prefers the image": 0,
        "labelled IMAGE": 0,
        "labelled TEXT": 1,
        "answers": 100,
    }
    # No threshold lets a boaster's answers through, since all are wrong and equally sure.
    assert cells(tables["selective"], "boaster / at most 10% wrong")["answered"] == 0
    assert len(tables["reliability"].rows) == 2, "equal confidences are one bin"


def test_doubt_and_abstention_tell_conflicts() -> None:
    records = [
        made
        for n in range(40)
        for made in (
            record(n, "aligned", "BOTH", (-1.0, -1.0, -20.0 - n, sure(0.9)), {"image": ("4",), "text": ("4",)}),
            record(n, "image-correct", "IMAGE", (-1.0, -2.0, -3.0, sure(0.6 + n / 1000))),
            record(n, "both-wrong", "IMAGE", (-1.0, -2.0, -3.0, sure(0.5 + n / 1000))),
        )
    ]
    tables = tables_of({"m": records})
    row = cells(tables["calibration"], "m / all")
    assert row["AUROC doubt"] == row["AUROC abstention"] == 1
    assert row["AUROC right"] == 1
    assert [name for name, _ in tables["preference"].rows] == ["m / image-correct", "m / both-wrong"]
    # The 40 wrong answers of 120 are the least sure: the 80 others are safe.
    safe = cells(tables["selective"], "m / at most 5% wrong")
    assert safe["answered"] == pytest.approx(83 / 120), (
        "of 40 examples, 5% allow for 1.05 wrong ones, 3 of 3 answers each"
    )
    confidence = cells(tables["confidence"], "m")
    assert confidence["aligned"] == pytest.approx(0.9)


def test_fewer_than_thirty_examples_have_no_curve() -> None:
    few = [record(n, "image-correct", "IMAGE" if n % 3 else "TEXT", (-1.0, -2.0, -3.0, -n / 10)) for n in range(29)]
    tables = tables_of({"few": few})
    (row,) = tables["reliability"].rows
    assert isinstance(row[1][0], Estimate)
    assert "needs 30" in row[1][0].reason
    calibration = cells(tables["calibration"], "few / all")
    assert calibration["ECE"] is None
    assert isinstance(calibration["Brier"], float)
    enough = tables_of({"enough": [*few, record(29, "image-correct", "IMAGE", (-1.0, -2.0, -3.0, -3.0))]})
    assert cells(enough["calibration"], "enough / all")["ECE"] is not None


def test_runs_without_likelihoods_are_named_or_have_no_tables() -> None:
    plain = [record(n, "image-correct", "IMAGE", ()) for n in range(40)]
    scored = [record(n, "image-correct", "IMAGE", (-1.0, -2.0, -3.0, -n / 10)) for n in range(40)]
    assert tables_of({"plain": plain}) == {}
    tables = tables_of({"plain": plain, "scored": scored})
    assert set(tables) == set(CONFIDENCE_TABLES) - {"quantisation"}
    for table in tables.values():
        assert any(note.startswith("plain: no likelihoods") for note in table.notes)
        assert not [name for name, _ in table.rows if name.startswith("plain")]


def test_quantisation_compares_the_same_instances() -> None:
    more = [record(n, "image-correct", "IMAGE", (-1.0, -3.0, -9.0, sure(0.8))) for n in range(40)]
    less = [record(n, "image-correct", "IMAGE", (-2.0, -3.0, -9.0, sure(0.6))) for n in range(40)]
    pair = [("bf16", "4bit")]
    table = tables_of({"bf16": more, "4bit": less}, quantisations=pair)["quantisation"]
    assert cells(table, "bf16 to 4bit / image-correct") == pytest.approx(
        {
            "confidence before": 0.8,
            "after": 0.6,
            "change": -0.2,
            "answers": 40,
            "change of log-odds, image : text": -1,
        }
    )
    other = [record(n, "both-wrong", "IMAGE", (-2.0, -3.0, -9.0, sure(0.6))) for n in range(40)]
    assert "quantisation" not in tables_of({"bf16": more, "4bit": other}, quantisations=pair)
