"""CLASH and its POPE tables: figures are means over 1,000 bootstrap resamples, so each has noise of sd / sqrt(1000)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.assets.identities.base import Check, Claim, Identity, Results, count

R = Results("clash", half=0.00005, scale=100, digits=2)
P = Results("pope", half=0.00005, scale=100, digits=2)
VQA = {name: Results(name.lower(), half=0.00005, scale=100, digits=2) for name in ("OKVQA", "GQA")}
RESAMPLES = 1000
SAMPLES = 1289
LEFT_OUT = 18 / 1281
"""The share of samples that fit two categories and stand in no category table (docs/clash.md)."""

SIZES = {
    "Animals": 145,
    "Vehicles": 66,
    "Food": 87,
    "Sports": 93,
    "Household": 142,
    "object Other": 100,
    "Colors": 308,
    "Numbers": 204,
    "Materials": 57,
    "Physical": 19,
    "Environmental": 16,
    "attribute Other": 26,
}
"""Samples of each category among the published predictions (docs/clash.md)."""
JUDGED = ("InternVL1.5", "mPLUG-Owl-1", "mPLUG-Owl-2", "LLaVa-1.5-7b")
LABELS = ("Conflict", "Image", "Text", "Incorrect")
SPELLED = {
    "InternVL1.5": "InternVL 1.5",
    "InstructBlip-T5xxl": "InstructBlip-T5-xxl",
    "LLaVa1.5-7b": "LLaVa-1.5-7b",
    "MiniGPT4-7b-LRV": "LRV-MiniGPT4-7b",
    "Qwen2vl-7b": "Qwen2VL-instruct-7b",
    "Qwen2vl-instruct-7b": "Qwen2VL-instruct-7b",
}
"""A model's name as Table 1 has it, by its name elsewhere."""
IN_TABLE_5 = {"InstructBlip-T5-xxl": "InstructBlip-T5xxl", "Qwen2VL-instruct-7b": "Qwen2vl-instruct-7b"}


def noise(table: int, row: str, column: str, of: Results = R) -> float:
    """Three standard errors of a printed mean over resamples."""
    return 3 * of.sd(table, row, column) / math.sqrt(RESAMPLES)


def same(table: int, row: str, column: str, other: int, there: str, column_there: str | None = None) -> Check:
    """Check a cell against the cell of another table with the same meaning."""
    column_there = column_there or column
    room = noise(table, row, column) + noise(other, there, column_there)
    return R.check(table, row, column, R(other, there, column_there), 1, room)


def row_total(table: int, row: str) -> Check:
    columns = R.columns(table, row)
    room = sum(noise(table, row, column) for column in columns)
    return R.total(f"Table {table}, {row}, all columns", 1, sum(R(table, row, c) for c in columns), len(columns), room)


def overall(table: int) -> Iterator[Check]:
    for row in R.rows(table):
        both = ("Conflict", "No conflict")
        room = noise(table, row, "Overall") + sum(noise(table, row, column) for column in both) / 2
        yield R.check(table, row, "Overall", sum(R(table, row, column) for column in both) / 2, 1, room)


def judges() -> Iterator[Check]:
    """Return the checks that "at least one" and "both" sum to the two judges."""
    for model in JUDGED:
        for column in LABELS:
            cells = [(11, f"{model} / {j}", column) for j in ("Gemini 2.5 Pro", "GPT-5", "at least one", "both")]
            gemini, gpt, _, both = (R(*cell) for cell in cells)
            room = sum(noise(*cell) for cell in cells)
            yield R.check(*cells[2], gemini + gpt - both, 3, room)


def order_of_judges() -> Iterator[Check]:
    """Return the checks that "at least one" is no less than either judge, and "both" no more."""
    for model in JUDGED:
        for column in LABELS:
            for judge in ("Gemini 2.5 Pro", "GPT-5"):
                alone = R(11, f"{model} / {judge}", column)
                least, both = (f"{model} / {of}" for of in ("at least one", "both"))
                room = noise(11, f"{model} / {judge}", column)
                yield R.check(11, least, column, max(alone, R(11, least, column)), 1, room + noise(11, least, column))
                yield R.check(11, both, column, min(alone, R(11, both, column)), 1, room + noise(11, both, column))


def pooled(tables: tuple[int, int], main: int) -> Iterator[Check]:
    """Conflict of all samples from the category tables."""
    for row in R.rows(tables[0]):
        there = SPELLED.get(row, row) if main == 1 else row
        if not R.has(main, there, "Conflict"):
            continue
        value = room = 0.0
        for table, change in zip(tables, ("object", "attribute"), strict=True):
            for column in R.columns(table, row):
                share = SIZES.get(column) or SIZES[f"{change} {column}"]
                value += share * R(table, row, column) / sum(SIZES.values())
                room += share * noise(table, row, column) / sum(SIZES.values())
        check = R.check(main, there, "Conflict", value, 1, room + noise(main, there, "Conflict") + LEFT_OUT)
        yield replace(check, where=f"{check.where}, from Tables {tables[0]} and {tables[1]}")


def deviations(tables: Sequence[int], of: Results = R, n: dict[str, int] | None = None) -> Iterator[Check]:
    """A deviation is sqrt(p (1 - p) / n) within three standard errors of a deviation over 1,000 resamples."""
    for table in tables:
        for row in of.rows(table):
            for column in of.columns(table, row):
                if column == "Overall" or not (sd := of.sd(table, row, column)):
                    continue
                p, size = of(table, row, column), (n or {}).get(column, SAMPLES)
                expected = math.sqrt(p * (1 - p) / size)
                room = 3 * expected / math.sqrt(2 * RESAMPLES) + of.half
                yield Check(f"Table {table}, {row}, {column}, ±", sd, expected, room, of.half, 100, 2)


def identities() -> list[Identity]:
    spelled = {"InternVL1.5": "InternVL 1.5"}
    spatial = [row for row in R.rows("Appendix C.1") if ":" in row]
    strict, relaxed = ([row for row in R.rows(6) if row.endswith(how)] for how in ("strict", "relaxed"))
    return [
        Identity(
            "Section 3.1, appendix C.1",
            "object and attribute samples make 1,289, the three relations 271",
            [
                count("Section 3.1", SAMPLES, sum(R("Section 3.1", row, "Samples") for row in R.rows("Section 3.1"))),
                count(
                    "Appendix C.1",
                    R("Appendix C.1", "Spatial samples", "Samples"),
                    sum(R("Appendix C.1", row, "Samples") for row in spatial),
                ),
            ],
        ),
        Identity("Tables 1, 7", "a row sums to 100", [row_total(t, row) for t in (1, 7) for row in R.rows(t)]),
        Identity(
            "Tables 5, 10, 16",
            "a row sums to 100, as four exclusive categories would (appendix A.2)",
            [row_total(t, row) for t in (5, 10, 16) for row in R.rows(t)],
        ),
        Identity(
            "Table 11",
            "a judge's row sums to 100",
            [row_total(11, f"{model} / {judge}") for model in JUDGED for judge in ("Gemini 2.5 Pro", "GPT-5")],
        ),
        Identity("Tables 3, 6", "Overall is the mean of both captions", [*overall(3), *overall(6)]),
        Identity("Table 11", "at least one + both = Gemini + GPT-5", [*judges()]),
        Identity("Table 11", "at least one is no less than a judge's, both no more", [*order_of_judges()]),
        Identity(
            "Tables 2, 10",
            "Table 10's Conflict and Incorrect are Table 2's",
            [same(10, m, c, 2, spelled.get(m, m)) for m in R.rows(10) for c in ("Conflict", "Incorrect")],
        ),
        Identity(
            "Tables 2, 3",
            "Table 3's models that are not fine-tuned are Table 2's",
            [same(3, m, c, 2, m) for m in ("LLaVa-1.5-7b", "mPLUG-Owl-1") for c in ("Conflict", "Incorrect")],
        ),
        Identity(
            "Tables 1, 6",
            "Table 6's strict Conflict is Table 1's",
            [same(6, row, "Conflict", 1, _in_table_1(row)) for row in strict],
        ),
        Identity(
            "Tables 5, 6",
            "Table 6's relaxed Conflict is Table 5's",
            [same(6, row, "Conflict", 5, IN_TABLE_5.get(m := _in_table_1(row), m)) for row in relaxed],
        ),
        Identity("Tables 8, 9, 1", "Conflict pools from the category tables by their samples", [*pooled((8, 9), 1)]),
        Identity("Tables 12, 13, 10", "the same of open questions", [*pooled((12, 13), 10)]),
        Identity("Table 1", "deviations are those of 1,289 samples", [*deviations((1,))], listed=False),
        Identity("Table 5", "deviations are those of 1,289 samples", [*deviations((5,))], listed=False),
        Identity(
            "Tables 2, 3, 6, 10, 11",
            "deviations are those of 1,289 samples",
            [*deviations((2, 3, 6, 10, 11))],
            listed=False,
        ),
        Identity(
            "Table 14",
            "deviations are those of 3,000 questions",
            [*deviations((14,), P, dict.fromkeys(P.columns(14), 3000))],
            listed=False,
        ),
        Identity("Table 15", "deviations are those of 5,000 and 12,000 questions", [*_vqa()], listed=False),
    ]


def _in_table_1(row: str) -> str:
    model = row.split(" / ")[0]
    return SPELLED.get(model, model)


def _vqa() -> Iterator[Check]:
    for name, size in (("OKVQA", 5000), ("GQA", 12000)):
        yield from deviations((15,), VQA[name], {name: size})


def claims() -> list[Claim]:
    def worst(table: int, row: str) -> str:
        return min(R.columns(table, row), key=lambda column: R(table, row, column))

    def percent(table: int, row: str, column: str) -> float:
        return round(100 * R(table, row, column), 2)

    def is_printed(text: str, *cells: tuple[int, str, str, float]) -> Claim:
        return Claim(text, all(percent(t, r, c) == value for t, r, c, value in cells))

    gpt, mini, pro, lite = "GPT 5", "GPT 4.1 Mini", "Gemini 2.5 Pro", "Gemini 2.5 Flash Lite"
    blip, llava, owl = "InstructBlip-T5xxl", "LLaVa-1.5-7b", "mPLUG-Owl-1"
    four = (gpt, pro, blip, "InternVL1.5")
    hardest = {row: worst(9, row) for row in four}
    apart = [abs(R(11, f"{m} / Gemini 2.5 Pro", c) - R(11, f"{m} / GPT-5", c)) for m in JUDGED for c in LABELS]
    matched = [abs(R(10, m, c) - R(11, f"{m} / Gemini 2.5 Pro", c)) for m in JUDGED for c in LABELS]
    by_object = [R(8, blip, column) for column in R.columns(8)]
    checked = ((14, P), *((15, results) for results in VQA.values()))
    return [
        is_printed("86.78% and 88.48% of conflicts seen", (1, gpt, "Conflict", 86.78), (1, pro, "Conflict", 88.48)),
        is_printed("InstructBLIP 63.87%", (1, "InstructBlip-T5-xxl", "Conflict", 63.87)),
        Claim(
            "InstructBLIP is the best open model",
            max(R.rows(1)[4:], key=lambda row: R(1, row, "Conflict")) == "InstructBlip-T5-xxl",
        ),
        is_printed("image bias 69.57%, 74.98%", (1, mini, "Image", 69.57), (1, lite, "Image", 74.98)),
        is_printed(
            "image bias 75.42 to 81.45%",
            (1, "LLaVa-OneVision-7b", "Image", 75.42),
            (1, "Qwen3VL-instruct-30b", "Image", 81.45),
        ),
        is_printed("text bias 52.40%, 44.68%", (1, "InternVL 1.5", "Text", 52.4), (1, llava, "Text", 44.68)),
        is_printed(
            "Qwen2.5VL 16.10% and 7.79%, Qwen3VL 3.81% and 7.13%",
            (1, "Qwen2.5VL-instruct-32b", "Conflict", 16.1),
            (1, "Qwen2.5VL-instruct-7b", "Conflict", 7.79),
            (1, "Qwen3VL-instruct-30b", "Conflict", 3.81),
            (1, "Qwen3VL-instruct-8b", "Conflict", 7.13),
        ),
        is_printed(
            "Incorrect 59.63%, 52.30%",
            (1, "Phi3-vision-128k", "Incorrect", 59.63),
            (1, "MiniGPT4-7b", "Incorrect", 52.3),
        ),
        is_printed(
            "newer models have no incorrect answers",
            *(
                (1, m, "Incorrect", 0.0)
                for m in ("Qwen2.5VL-instruct-32b", "Qwen3VL-instruct-8b", "Qwen3VL-instruct-30b", "LLaVa-OneVision-7b")
            ),
        ),
        is_printed("Animals 97.32%, 98.65%", (8, gpt, "Animals", 97.32), (8, pro, "Animals", 98.65)),
        is_printed("Numbers 85.83% and 75.70%", (9, pro, "Numbers", 85.83), (9, gpt, "Numbers", 75.7)),
        is_printed(
            "open: 91.59%, 81.16%, 39.93%",
            (2, pro, "Conflict", 91.59),
            (2, gpt, "Conflict", 81.16),
            (2, mini, "Conflict", 39.93),
        ),
        is_printed(
            "open: 20.49%, 19.80%, 18.76%, 17.13%",
            (2, "Qwen3VL-instruct-8b", "Conflict", 20.49),
            (2, "Qwen3VL-instruct-30b", "Conflict", 19.8),
            (2, "InternVL 1.5", "Conflict", 18.76),
            (2, "Qwen2.5VL-instruct-7b", "Conflict", 17.13),
        ),
        is_printed("61.61% and 0.94% incorrect", (2, owl, "Incorrect", 61.61), (2, "mPLUG-Owl-2", "Incorrect", 0.94)),
        is_printed(
            "Figure 6: 97.03%, 55.51%, 62.10%",
            (10, "mPLUG-Owl-2", "Text", 97.03),
            (10, "InternVL1.5", "Text", 55.51),
            (10, llava, "Text", 62.1),
        ),
        is_printed("Figure 6: 40.39%, 49.73%", (10, mini, "Image", 40.39), (10, lite, "Image", 49.73)),
        is_printed(
            "fine-tuned LLaVa 76.86%, 91.21%; errors 5.00% to 0.47%",
            (3, f"{llava}-ft", "Conflict", 76.86),
            (3, f"{llava}-ft", "No conflict", 91.21),
            (3, llava, "Incorrect", 5.0),
            (3, f"{llava}-ft", "Incorrect", 0.47),
        ),
        is_printed(
            "fine-tuned mPLUG 57.45%; errors 61.63% to 7.09%; 75.12% and 63.13%",
            (3, f"{owl}-ft", "Conflict", 57.45),
            (3, owl, "Incorrect", 61.63),
            (3, f"{owl}-ft", "Incorrect", 7.09),
            (3, f"{owl}-ft-30k", "No conflict", 75.12),
            (3, f"{owl}-ft", "No conflict", 63.13),
        ),
        is_printed(
            "spatial: 68.24%, 31.23%, 4.42%",
            (7, gpt, "Conflict", 68.24),
            (7, blip, "Conflict", 31.23),
            (7, "InternVL1.5", "Conflict", 4.42),
        ),
        is_printed(
            "spatial, open: 56.20%, 9.58%, 0.36%",
            (16, gpt, "Conflict", 56.2),
            (16, "InternVL1.5", "Conflict", 9.58),
            (16, blip, "Conflict", 0.36),
        ),
        Claim("string matching and Gemini differ by 1.79 for InternVL", round(matched[0], 4) == 0.0179),
        Claim("mPLUG-Owl-1 improves on POPE", all(P(14, f"{owl}-ft", c) > P(14, owl, c) for c in P.columns(14))),
        Claim(
            '"88.45% in multiple-choice" (Gemini 2.5 Pro, section 4.3)',
            percent(1, pro, "Conflict") == 88.45,
            f"Table 1 and section 4.2 have {percent(1, pro, 'Conflict'):.2f}",
        ),
        Claim(
            'top models are "weakest on Household items (~78%)"',
            worst(8, gpt) == worst(8, pro) == "Household",
            f"GPT 5's weakest is {worst(8, gpt)}, {percent(8, gpt, worst(8, gpt)):.2f}; Household has "
            f"{percent(8, gpt, 'Household'):.2f}",
        ),
        Claim("InstructBLIP has 60 to 77% in every object category", 0.595 <= min(by_object) <= max(by_object) <= 0.77),
        Claim(
            '"Environmental attributes prove most challenging for all models" (of Figure 5)',
            all(hardest[row] == "Environmental" for row in four),
            "; ".join(
                f"{row}'s lowest is {hardest[row]}, {percent(9, row, hardest[row]):.2f}; Environmental has "
                f"{percent(9, row, 'Environmental'):.2f}"
                for row in four
                if hardest[row] != "Environmental"
            ),
        ),
        Claim("judges differ by less than 1% across most metrics", sum(d < 0.01 for d in apart) > len(apart) / 2),
        Claim(
            "string matching and judges are typically within 1 to 3 points",
            sum(d <= 0.03 for d in matched) > len(matched) / 2,
        ),
        Claim(
            "fine-tuning makes LLaVa-1.5-7b worse on most other tasks",
            sum(of(t, f"{llava}-ft", c) < of(t, llava, c) for t, of in checked for c in of.columns(t)) >= 3,
        ),
    ]
