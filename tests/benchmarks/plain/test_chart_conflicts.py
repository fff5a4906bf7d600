"""Chart conflicts: the artifact's prompt, its two forms, and the paper's metric beside the released outputs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from app.papers.published_results import published_rows
from benchmarks.build import BuildOptions
from benchmarks.vocabulary import Media, Text
from tests.support.data.plain import data_set_of, main_table, rows_of, write_rows_of
from tests.support.data.small import write_lines

CHARTS = data_set_of("chart-conflicts")
PROMPTS = {"A": "2272956bd4439602", "B": "945307da6011209f"}
"""The beginning of the sha256 of the artifact's own ``neutral_prompt`` for the first row, by the chart's label."""


@pytest.mark.parametrize("label", PROMPTS)
def test_prompts_are_the_artifacts(label: str, tmp_path: Path) -> None:
    write_rows_of("chart-conflicts", tmp_path, 1)
    row = {**rows_of("chart-conflicts", 1)[0], "chart_source_label": label}
    row["image_file"] = row.pop("chart_image")
    write_lines(tmp_path / "items.jsonl", [row])
    build = CHARTS.build([("published", str(tmp_path / "items.jsonl"))], tmp_path / "out", BuildOptions())
    both, image, text = CHARTS.instances(build, "paper")
    assert isinstance(both.parts[0], Media)
    assert isinstance(both.parts[1], Text)
    assert hashlib.sha256(both.parts[1].text.encode()).hexdigest()[:16] == PROMPTS[label]
    assert isinstance(image.parts[0], Media)
    (alone,) = text.parts
    assert isinstance(alone, Text)
    assert "Use the following report as the only evidence source:\nCrop 0 is 300.\n\nRespond with" in alone.text


def test_text_preference_is_over_answers_that_follow_a_source() -> None:
    main, values = main_table("chart-conflicts", ["IMAGE", *["TEXT"] * 3, "BOTH", "NEITHER", "ABSTAIN", "undecided"])
    assert values == {"Right": (2 / 7, 7), "Text preference": (0.75, 4)}
    published = dict(published_rows(main, "chart-conflicts"))
    assert len(published) == 9
    right, preference = published["Qwen2.5-VL-7B (paper)"]
    assert right is None
    assert preference is not None
    assert preference.value == pytest.approx(11 / 204, abs=1e-6)
    assert preference.n == 204
