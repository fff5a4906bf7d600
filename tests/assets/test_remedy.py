"""Fine-tuning of the demo model: what its training never shows, and the whole way from charts to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assets.demo.recipe.remedy import NEW, TRAINED, in_model_words, remedy, write_charts
from benchmarks.clash.constants import CONFLICT_OPTION
from tests.support.command import Rashomon


def test_training_charts_share_nothing_with_new_ones(tmp_path: Path) -> None:
    for name, kind in (("trained", TRAINED), ("new", NEW)):
        write_charts(tmp_path / name, kind, 12)
    trained, new = (
        [json.loads(line) for line in (tmp_path / name / "rows.jsonl").read_text().splitlines()]
        for name in ("trained", "new")
    )
    for column in ("answer", "group"):
        assert not {row[column] for row in trained} & {row[column] for row in new}
    assert not set(TRAINED.questions) & set(NEW.questions)
    assert not set(TRAINED.bars) & set(NEW.bars)


def test_training_rows_get_answers_that_the_model_can_write(tmp_path: Path) -> None:
    write_charts(tmp_path / "charts", TRAINED, 20)
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--source", f"rows={tmp_path / 'charts'}", "--out", tmp_path / "build")
    data = ("--data", tmp_path / "build", "--target", "compare")
    rashomon.run("training", "cmc-bench", *data, "--out", tmp_path / "set")
    in_model_words(tmp_path / "set")
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    conditions = set()
    for row in rows:
        *readings, last = row["messages"][-1]["content"][0]["text"].splitlines()
        if row["kind"] == "conflict":
            assert last == CONFLICT_OPTION
        else:
            readings.append(last)
        names, values = zip(*(reading.split(": ") for reading in readings), strict=True)
        assert set(names) <= set(TRAINED.names)
        assert len(set(names)) == 1
        assert {int(value) for value in values} <= set(TRAINED.values)
        expected = {"image-only": (1, 1), "text-only": (1, 1), "aligned": (2, 1)}
        assert (len(values), len(set(values))) == expected.get(row["condition"], (2, 2))
        conditions.add(row["condition"])
    assert conditions >= {"aligned", "image-only", "text-only"}


@pytest.mark.slow
def test_one_command_leads_from_charts_to_a_verdict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    remedy(tmp_path, examples=20, new=4, steps=2, limit=2)
    assert capfd.readouterr().out.count("model-4bit+remedy") >= 4
    assert {run.name for run in (tmp_path / "workspace" / "runs").iterdir()} >= {
        f"{test}-{part}" for test in ("held-out", "new") for part in ("base", "tuned")
    }
