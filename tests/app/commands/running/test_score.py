"""Runs by likelihood, and runs in PyTorch, by the real command in real processes."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from app.run_spec import load_spec
from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.data.clash import published_folder, published_row
from tests.support.fp32 import in_fp32
from tests.support.in_torch import needs_torch
from tests.support.scores import scores_of
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

LETTERS = ("(A)", "(B)", "(C)", "(D)")
CHOICES = ("--conditions", "mc-conflicting,mc-original")


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    home = tmp_path_factory.mktemp("score")
    source = published_folder(home / "source", [published_row(number) for number in range(1, 5)])
    rashomon = Rashomon(home, variables={"OMP_NUM_THREADS": "1"})
    rashomon.run("build", "clash", "--source", f"published={source}")
    in_fp32(build_tiny_vlm(home / "tiny", TEXTS, quantise=False))
    return rashomon


def batch(rashomon: Rashomon, model: str, *more: str, code: int = 0) -> str:
    asked = ("--batch", "--benchmark", "clash", "--model", model, "--max-tokens", "6", "--max-pixels", "4096")
    done = rashomon.run(*asked, "--display", "none", *more, code=code)
    return done.stdout + done.stderr


def answers(rashomon: Rashomon, run: str) -> dict[str, tuple[str, tuple[float, ...], tuple[int, ...]]]:
    values = {}
    with RunStore.read(rashomon.workspace / "runs" / run) as store:
        for record in store.records():
            assert record.answer is not None
            assert record.answer.error is None
            values[record.instance.id] = (record.answer.text, tuple(scores_of(record.answer)), record.answer.tokens)
    return values


@pytest.mark.slow
def test_the_likeliest_option_is_the_answer_and_all_scores_are_kept(rashomon: Rashomon) -> None:
    batch(rashomon, "./tiny", "--score", "likelihood", *CHOICES, "--name", "scored")
    result = answers(rashomon, "scored")
    assert len(result) == 8
    for text, scores, _ in result.values():
        assert len(scores) == 4
        assert text == LETTERS[scores.index(max(scores))]
        assert sum(map(math.exp, scores)) < 1
    with RunStore.read(rashomon.workspace / "runs" / "scored") as store:
        assert store.meta("spec")["score"] == "likelihood"
    assert len({scores for _, scores, _ in result.values()}) > len(result) / 2
    message = batch(rashomon, "./tiny", *CHOICES, "--name", "scored", code=2)
    assert "the likeliest option" in message, "a run that is asked otherwise is another run"


@pytest.mark.slow
def test_open_questions_are_answered_as_without_likelihoods_and_have_tables(rashomon: Rashomon) -> None:
    batch(rashomon, "./tiny", "--name", "all-scored", "--score", "likelihood")
    batch(rashomon, "./tiny", "--name", "plain", "--conditions", "open-conflicting,open-original")
    scored, plain = answers(rashomon, "all-scored"), answers(rashomon, "plain")
    assert len(scored) == 16
    for name, (text, _, tokens) in plain.items():
        assert (text, tokens) == (scored[name][0], scored[name][2])
    assert {len(scores) for _, scores, _ in scored.values()} == {4}
    (table,) = rashomon.json("show", "all-scored", "--table", "calibration")["tables"]
    assert table["rows"][0]["label"] == "tiny / all"
    message = rashomon.run("show", "plain", "--table", "calibration", code=2)
    assert "--score likelihood" in message.stderr


@pytest.mark.parametrize(
    ("model", "more", "why"),
    [
        ("openai:gpt-5-mini", CHOICES, "cannot score by likelihood"),
        ("./tiny", ("--conditions", "mc-original", "--score", "loud"), "loud"),
    ],
)
def test_what_cannot_be_scored_is_told_before_anything_is_made(
    model: str, more: tuple[str, ...], why: str, rashomon: Rashomon
) -> None:
    assert why in batch(rashomon, model, "--score", "likelihood", *more, code=2)


def test_a_relative_folder_behind_cuda_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    values = {"benchmark": "clash", "model": ["cuda:mine@fp32@cpu", "cuda:org/name", "mine"]}
    message = load_spec(None, values).model
    assert message == (f"cuda:{tmp_path}/mine@fp32@cpu", "cuda:org/name", f"{tmp_path}/mine")


@needs_torch
@pytest.mark.slow
def test_a_worker_on_pytorch_answers_as_mlx_does_and_never_imports_mlx(rashomon: Rashomon) -> None:
    blocked = rashomon.home / "blocked"
    blocked.mkdir()
    (blocked / "mlx.py").write_text('raise RuntimeError("MLX was imported")\n')
    batch(rashomon, "./tiny", "--name", "mlx", "--exact")
    batch(rashomon, "./tiny", "--name", "mlx-scored", "--score", "likelihood", *CHOICES)
    path = os.pathsep.join([str(blocked), rashomon.environment["PYTHONPATH"]])
    there = Rashomon(rashomon.home, variables={"OMP_NUM_THREADS": "1", "PYTHONPATH": path})
    batch(there, "cuda:./tiny", "--name", "torch")
    batch(there, "cuda:./tiny", "--name", "torch-scored", "--score", "likelihood", *CHOICES)
    first, other = answers(there, "mlx"), answers(there, "torch")
    assert len(first) == 16
    assert first == other
    scored, again = answers(there, "mlx-scored"), answers(there, "torch-scored")
    assert {name: text for name, (text, *_) in scored.items()} == {name: text for name, (text, *_) in again.items()}
    with RunStore.read(there.workspace / "runs" / "torch") as store:
        assert (store.meta("identity")["engine"], store.meta("identity")["device"]) == ("transformers", "cpu")
