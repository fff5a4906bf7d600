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
    data = ("--data", tmp_path / "build", "--target", "abstain")
    rashomon.run("training", "cmc-bench", *data, "--out", tmp_path / "set")
    in_model_words(tmp_path / "set")
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    answers = {(row["kind"], row["messages"][-1]["content"][0]["text"]) for row in rows}
    assert {kind for kind, _ in answers} == {"conflict", "no conflict"}
    for kind, text in answers:
        name, _, value = text.partition(": ")
        assert (
            text == CONFLICT_OPTION if kind == "conflict" else (name in TRAINED.names and int(value) in TRAINED.values)
        )


@pytest.mark.slow
def test_one_command_leads_from_charts_to_a_verdict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    remedy(tmp_path, examples=20, new=4, steps=2, limit=2)
    assert capfd.readouterr().out.count("model-4bit+remedy") >= 4
    assert {run.name for run in (tmp_path / "workspace" / "runs").iterdir()} >= {
        f"{test}-{part}" for test in ("held-out", "new") for part in ("base", "tuned")
    }
