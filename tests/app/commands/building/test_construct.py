"""`rashomon build clash --source coco=...`: a model behind a server writes, is killed in between, and is paid once."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.clash.construction.caption_checks import ANSWER_CHECKS, CAPTION_CHECKS
from tests.support.command import Rashomon, kill_all
from tests.support.scripted_writer import ScriptedWriter

DATA = Path(__file__).resolve().parents[5] / "shared" / "data" / "clash" / "coco"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real captions are not beside the project")


def arguments(server: ScriptedWriter, out: Path) -> list[str | Path]:
    model = f"endpoint:writer@{server.url}"
    return [
        "build",
        "clash",
        "--source",
        f"coco={DATA}",
        "--writer",
        model,
        "--per-stratum",
        "40",
        "--out",
        out,
        "--json",
        "--allow-address",
        server.url,
    ]


@pytest.mark.slow
def test_a_construction_that_is_killed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    with ScriptedWriter() as server:
        for wanted in (20, 60):
            process = rashomon.start(*arguments(server, tmp_path / "out"))
            until = time.monotonic() + 60
            while len(server.prompts) < wanted:
                assert time.monotonic() < until, process.communicate()
                time.sleep(0.01)
            kill_all(process)
            assert not (tmp_path / "out").exists()
        rashomon.run(*arguments(server, tmp_path / "out"))
        asked = len(server.prompts)
        first = (tmp_path / "out" / "instances.jsonl").read_bytes()
        rashomon.run(*arguments(server, tmp_path / "out"))
        rashomon.run(*arguments(server, tmp_path / "elsewhere"))
        assert len(server.prompts) <= asked + 12, "only an error, here a reply without text, is not kept"
        assert first == (tmp_path / "elsewhere" / "instances.jsonl").read_bytes()
    with ScriptedWriter() as server:
        undisturbed = Rashomon(tmp_path / "other")
        undisturbed.home.mkdir()
        undisturbed.run(*arguments(server, tmp_path / "undisturbed"))
        # Of each kill, only what was under way is asked once more.
        assert len(server.prompts) <= asked <= len(server.prompts) + 3 * 16
    assert first == (tmp_path / "out" / "instances.jsonl").read_bytes()
    assert first == (tmp_path / "undisturbed" / "instances.jsonl").read_bytes()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["instances"] >= 6
    reasons = Counter(
        json.loads(line)["reason"].partition(":")[0] for line in (tmp_path / "out" / "skipped.jsonl").open()
    )
    named = {*CAPTION_CHECKS, *ANSWER_CHECKS}
    assert len(named & set(reasons)) >= len(named) // 2, reasons


def test_without_a_model_that_writes_it_says_what_to_give(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    asked = ["build", "clash", "--source", f"coco={DATA}"]
    assert "--writer MODEL" in rashomon.run(*asked, code=2).stderr
    assert "cannot write" in rashomon.run(*asked, "--writer", "policy:random", code=2).stderr
    assert "cost_ceiling needs" in rashomon.run(*asked, "--writer", "openai:x", "--cost-ceiling", "1", code=2).stderr
    assert "OPENAI_API_KEY" in rashomon.run(*asked, "--writer", "openai:x", code=2).stderr


@pytest.mark.slow
def test_a_ceiling_ends_the_build_and_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    with ScriptedWriter() as server:
        result = rashomon.run(*arguments(server, tmp_path / "out"), "--token-ceiling", "10000", code=3)
        assert "ceiling of 10,000 tokens" in result.stderr
        assert not (tmp_path / "out").exists()
        rashomon.run(*arguments(server, tmp_path / "out"))
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.slow
def test_the_training_split_is_written_from_a_build(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    with ScriptedWriter() as server:
        rashomon.run(*arguments(server, tmp_path / "out"))
    stdout = rashomon.run("training", "clash", "--data", tmp_path / "out", "--out", tmp_path / "train").stdout
    assert "rows for train" in stdout
    rows = [json.loads(line) for line in (tmp_path / "train" / "train.jsonl").open()]
    assert all((tmp_path / "train" / image).is_file() for row in rows for image in row["images"])
    conflicts = sum("Conflicting information" in json.dumps(row["messages"][-1]) for row in rows)
    assert 0.25 < conflicts / len(rows) < 0.75
    rashomon.run("training", "cmc-bench", "--data", tmp_path / "out", "--out", "x", code=2)
