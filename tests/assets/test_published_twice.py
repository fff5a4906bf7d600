"""Two independent transcriptions of the papers' results, which agree on every value.

The second transcription is in tests/fixtures/published, a CSV file a paper: table, row, column, value and deviation as printed,
and a mark. It names rows and columns in its own way, which ``_key`` turns into ours.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.papers.published_results import published_cells

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "published"
Key = tuple[str, str, str]

COUNTS = {
    "contra4": 375,
    "mmkc-bench": 408,
    "crosscheck-bench": 332,
    "clash": 621,
    "cmc-bench": 78,
    "words-or-vision": 40,
}
"""The number of values of the second transcription that are compared with a cell of ours."""

UNREADABLE = {
    # The text has "0.50", below both 0.60 and 0.53 that it is the mean of, and "0.3" with a digit cut off.
    ("Table 2", "CREMA", "All / All"): "0.50",
    ("Table 2", "Caption Baseline", "All / All"): "0.3",
    **{
        ("Table 2", row, f"4 Modalities / {column}"): ""
        for row in ("CREMA", "X-InstructBLIP", "OneLLM", "Gemini-2.0", "Caption Baseline")
        for column in ("Rand.", "Sim.", "All")
    },
}
"""Values of Contra4 that are illegible in the paper, with what is printed there; ten of them are on the project page."""

ELSEWHERE = {"Project page", *(f"Table {n} (AAAI 2026)" for n in (2, 3, 4, 5))}
"""The tables of our cells that are not those of the paper that was transcribed twice."""

TEXT: dict[str, dict[str, Key]] = {
    "contra4": {
        "training samples": ("Section 4", "Train", "Samples"),
        "test samples": ("Section 4", "Test", "Samples"),
        "relative improvement": ("Abstract", "OneLLM / fine-tuned", "Relative improvement"),
        "best model, full": ("Abstract", "best model", "All"),
        "best model, four": ("Abstract", "best model", "4 Modalities"),
        "OneLLM before": ("Section 6", "OneLLM / zero-shot", "All"),
        "OneLLM after": ("Section 6", "OneLLM / fine-tuned", "All"),
    },
    "crosscheck-bench": {
        "QA pairs (Figure 2": ("Figure 4", "All", "Samples"),
        "multimodal clue graphs": ("Data Collection", "Multimodal clue graphs", "Count"),
        "MCG audited sample": ("Data Collection", "Manual audit", "Share of the sample"),
        "MCG audit accuracy": ("Data Collection", "Manual audit", "Accuracy"),
        "clues per MCG": ("Data Collection", "Multimodal clue graphs", "Clues on average"),
        "MCG semantic": ("Data Collection", "Multimodal clue graphs", "Semantic consistency"),
        "model consensus": ("Quality Verification", "Difficulty by model consensus", "Agreement"),
        "experts override": ("Quality Verification", "Difficulty by model consensus", "Overridden by experts"),
        "adversarial": ("Quality Verification", "Adversarial validation", "Share of the samples"),
        "flagged": ("Quality Verification", "Adversarial validation", "Flagged for revision"),
        "IAA agreement": ("Appendix E", "Inter-annotator agreement", "Agreement"),
        "Cohen's kappa": ("Appendix E", "Inter-annotator agreement", "Cohen's kappa"),
    },
    "clash": {
        "object-level": ("Section 3.1", "Object samples", "Samples"),
        "attribute-level": ("Section 3.1", "Attribute samples", "Samples"),
        "spatial conflict examples": ("Appendix C.1", "Spatial samples", "Samples"),
        "spatial / left": ("Appendix C.1", "Spatial samples: left-right", "Samples"),
        "spatial / above": ("Appendix C.1", "Spatial samples: above-below", "Samples"),
        "spatial / in-front": ("Appendix C.1", "Spatial samples: front-behind", "Samples"),
    },
}
"""Figures of running text that are cells of ours, by how the second transcription's row begins."""

CMC_TABLE_1: dict[tuple[str, str], tuple[str, str]] = {
    ("Total examples", "Value"): ("Total", "Examples"),
    ("Total instances", "Value"): ("Total", "Instances"),
    ("Passage length (mean ± sd, words)", "Value"): ("Passage length", "Words"),
    ("QC sample (instances)", "Value"): ("QC sample", "Share of instances"),
    ("Source: ChartQA ex. / MMMU ex.", "Value / ChartQA ex."): ("Source: ChartQA", "Examples"),
    ("Source: ChartQA ex. / MMMU ex.", "Value / MMMU ex."): ("Source: MMMU", "Examples"),
}
CMC_MODELS = {
    "LFM2.5": "LFM2.5-VL-1.6B",
    "DeepSeek": "DeepSeek-VL2-small",
    "Qwen3": "Qwen3-VL-4B",
    "Gemma": "Gemma-3n-E2B",
}
CLASH_TABLE_4 = {"LoRA-r": "LoRA r", "LoRA-α": "LoRA alpha", "sequ. length": "sequence length"}
JUDGES = {"Gemini": "Gemini 2.5 Pro", "GPT-5": "GPT-5", "≥1": "at least one", "Both": "both"}


def _keys(paper: str, table: str, row: str, column: str) -> Iterator[Key]:
    """The cells of ours that a figure of the second transcription belongs to; none for a remark of the running text."""
    if table == "Running text" and paper != "cmc-bench":
        yield from (key for begins, key in TEXT.get(paper, {}).items() if row.startswith(begins))
    elif paper == "contra4":
        row = re.sub(r"[*†]$| \([A-Z][^)]*\d{4}[a-z]?\)$", "", row)
        if table == "Table 7":
            panel, _, column = column.partition(" / ")
            row = f"{panel.split(' (')[0]} / {row}"
        if table == "Table 1" and column in ("Rand", "Sim", "All"):
            column = f"Generated / {column}"
        for part in row.removesuffix(" (one merged cell)").split(", "):
            yield table, part, column
    elif paper == "mmkc-bench":
        if table == "Table 1":
            column = column.removeprefix("#")
        elif table == "Table 4":
            column = column.replace("Non-conflict", "Non-Conflict")
            column = column.replace("Coarse-Grained Detection / Avg.", "Coarse Avg.")
            column = column.replace("Coarse-Grained Detection / ", "").replace("Fine-Grained Detection / ", "Fine ")
            column = column.replace(" / ", " ")
        else:
            rate, setting = row.removesuffix(" Conflict").split(" / ")
            model, column = column.split(" / ")
            row = f"{model} / {setting} / {rate}"
        yield table, row, column
    elif paper == "crosscheck-bench":
        if table == "Table 2":
            task, (model, _, change) = row.split(" (")[0], column.partition(" / ")
            row, column = model.removesuffix("(%)"), f"{task} drop" if change else task
        elif table == "Table 1":
            row, column = row.split(" / ")[0], column.split(" / ")[-1]
        yield table, row, column
    elif paper == "clash":
        row = row.removesuffix(" (second occurrence)")
        column = re.sub(r" \([↑↓]\)$", "", column)
        if table == "Table 1":
            row = row.split(" / ")[0]
        elif table == "Table 4":
            row = CLASH_TABLE_4.get(row, row)
        elif table == "Table 6":
            row = row.replace(" string matching", "").replace("/ Strict", "/ strict").replace("/ Relaxed", "/ relaxed")
        elif table == "Table 11":
            model, judge = row.split(" / ")
            row = f"{model} / {JUDGES[judge]}"
        yield table, row, column
    elif table == "Table 1":
        names = {"Value / ex.": "Examples", "Value / inst.": "Instances"}
        cell = CMC_TABLE_1.get((row, column)) or (row.removesuffix(" ex. / inst."), names[column])
        yield table, *cell
    elif table == "Table 3":
        name = {"MPB / Img": "MPB Img", "MPB / Txt": "MPB Txt"}.get(column) or column.split(" / ")[-1]
        yield table, row, name
    elif row.startswith("Figure 3 counts"):
        yield "Section 5.3", f"{CMC_MODELS[row.split(' / ')[-1]]} / image-correct", column
    elif column.startswith("text-correct minus image-correct"):
        yield "Section 5.2, RQ3", CMC_MODELS[row], "Txt-Cor less Img-Cor"
    elif row.startswith("Qwen3 CDR"):
        yield "Section 5.2, RQ4", f"Qwen3-VL-4B / {column}", "ABSTAIN"
    elif table != "Running text":
        yield table, row, column


def _printed(text: str) -> Fraction:
    """A figure as it is printed: 3,768, 254k, .898, -2."""
    factor = 1000 if text.endswith("k") else 1
    return Fraction(text.replace(",", "").removesuffix("k")) * factor


def _as_printed(cell: dict[str, Any], paper: str, mark: str) -> tuple[Fraction, Fraction | None] | str:
    """A cell of ours in the paper's own unit."""
    value, sd = cell["value"], cell.get("sd")
    if isinstance(value, str):
        return value
    in_percent = "percent" in cell or mark == "percent random" or (paper, cell["table"]) in PROSE_IN_PERCENT
    scale = 100 if in_percent and isinstance(value, float) and cell["column"] not in ("Cohen's kappa", UNSCALED) else 1
    return Fraction(str(value)) * scale, None if sd is None else Fraction(str(sd)) * scale


PROSE_IN_PERCENT = {("crosscheck-bench", table) for table in ("Data Collection", "Quality Verification", "Appendix E")}
UNSCALED = "Clues on average"


def _second(paper: str) -> list[dict[str, str]]:
    with (FIXTURES / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _cells(paper: str) -> dict[Key, dict[str, Any]]:
    names = ("clash", "pope", "okvqa", "gqa") if paper == "clash" else (paper,)
    return {(c["table"], c["row"], c["column"]): c for name in names for c in published_cells(name)}


@pytest.mark.parametrize("paper", COUNTS)
def test_transcriptions_agree_on_every_value(paper: str) -> None:
    ours = _cells(paper)
    compared, differing, left_out = 0, [], {}
    seen: set[Key] = set()
    for row in _second(paper):
        for key in _keys(paper, row["table"], row["row"], row["column"]):
            if key not in ours or (paper == "contra4" and key in UNREADABLE):
                left_out[key] = row["value"]
                continue
            mine = _as_printed(ours[key], paper, row["mark"])
            if isinstance(mine, str):
                same = mine.split(" ")[0] == row["value"]
            else:
                sd = _printed(row["deviation"]) if row["deviation"] else None
                rises = "change in parentheses" in row["column"] and row["mark"] == "↑"  # ours are drops
                if row["column"].endswith("absolute)"):  # ours have the sign that follows from Table 3
                    mine = abs(mine[0]), mine[1]
                same = mine == (_printed(row["value"]) * (-1 if rises else 1), sd)
            if not same:
                differing.append((key, mine, row["value"], row["deviation"]))
            compared += 1
            seen.add(key)
    assert differing == []
    assert left_out == (UNREADABLE if paper == "contra4" else {})
    assert compared == COUNTS[paper]
    # Nothing of ours rests on one transcription alone but words, and what is drawn in a figure.
    printed = [cell for key, cell in ours.items() if key not in seen | left_out.keys()]
    alone = [cell for cell in printed if not isinstance(cell["value"], str)]
    assert {cell["table"] for cell in alone} <= {"Figure 4", *ELSEWHERE}


@pytest.mark.parametrize(
    ("text", "value"), [("3,768", 3768), ("2.3k", 2300), (".898", Fraction(898, 1000)), ("-2", -2)]
)
def test_printed_values_are_parsed(text: str, value: Fraction) -> None:
    assert _printed(text) == value
