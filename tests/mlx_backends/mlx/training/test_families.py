"""Every family of models that can be trained: its loss falls, its adapter loads again, and its memory is as predicted."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.engine.training.plan import longest_row
from benchmarks.errors import ModelError
from benchmarks.training.training_set import ChatRow, TrainingSet
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request
from mlx_backends.mlx.load import load
from mlx_backends.mlx.training.inputs import TrainingInputs
from mlx_backends.mlx.training.loop import TrainingLoop
from mlx_backends.mlx.training.objective import answer_loss, embedded
from mlx_backends.models.discovery import inspect, read_config
from mlx_backends.models.training_memory import training_memory
from mlx_backends.registry import load_backend
from mlx_backends.training import UNTRAINABLE, StepReport, TrainingSettings
from tests.support.command import Rashomon
from tests.support.data.small import picture
from tests.support.demo import HeldOutSet
from tests.support.tiny_models import FAMILIES

SHRUNK = ("phi3_v", "fastvlm")
FAST = ("qwen3_vl", "llava")
TRAINABLE = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST)) for name in FAMILIES if name not in UNTRAINABLE
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[ChatRow]:
    """Rows with a picture between two texts."""
    folder = tmp_path_factory.mktemp("rows")
    lines = []
    for number in range(3):
        data = picture(number)
        name = f"{hashlib.sha256(data).hexdigest()}.png"
        (folder / name).write_bytes(data)
        content = [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": " What number?"}]
        messages = [{"role": "user", "content": content}, {"role": "assistant", "content": f"It is {number}."}]
        lines.append(json.dumps({"images": [name], "messages": messages}))
    (folder / "train.jsonl").write_text("\n".join(lines))
    return list(TrainingSet.open(folder).rows("train"))


def settings(**options: Any) -> TrainingSettings:
    defaults: dict[str, Any] = {
        "rank": 4, "alpha": 8.0, "dropout": 0.1, "batch_size": 2, "learning_rate": 5e-3, "schedule": "constant", "warmup": 0,
        "steps": 6, "max_length": 4096, "max_pixels": None, "gradient_checkpointing": False, "seed": 0, "validate_every": 3,
        "save_every": 3,
    }  # fmt: skip
    return TrainingSettings(**(defaults | options))


def trained(folder: Path, model: Path, rows: list[ChatRow], **options: Any) -> list[StepReport]:
    reports: list[Any] = []
    folder.mkdir()
    loop = TrainingLoop(folder, model.name, load(model), {"train": rows}, settings(**options), {})
    assert loop.run(loop.resume(), reports.append, lambda: 0, lambda: False)
    return reports


@pytest.mark.parametrize("family", TRAINABLE)
def test_loss_falls_and_adapter_loads_again(family: str, rows: list[ChatRow], tmp_path: Path) -> None:
    from mlx_vlm import load as load_vlm

    shrunk = import_module(f"tests.support.tiny_models.{family}").shrunk() if family in SHRUNK else nullcontext()
    with shrunk:
        model = FAMILIES[family](tmp_path / family)
        plain = trained(tmp_path / "plain", model, rows)
        assert sum(report.loss for report in plain[-2:]) < sum(report.loss for report in plain[:2])
        load_vlm(str(model), adapter_path=str(tmp_path / "plain" / "adapter"))
        saving = trained(tmp_path / "saving", model, rows, gradient_checkpointing=True)
        assert [report.loss for report in saving] == [report.loss for report in plain]


def test_orpo_prefers_the_answer_to_the_rejected_one(rows: list[ChatRow], tmp_path: Path) -> None:
    from mlx_vlm import load as load_vlm

    model = FAMILIES["qwen3_vl"](tmp_path / "model")
    pairs = [replace(row, rejected="No number.") for row in rows]
    reports = trained(tmp_path / "t", model, pairs, objective="orpo", beta=5.0, dropout=0.0, steps=8)
    assert reports[-1].loss < reports[0].loss
    margins = []
    for adapter in (None, str(tmp_path / "t" / "adapter")):
        loaded, processor = load_vlm(str(model), adapter_path=adapter)
        inputs = TrainingInputs(pairs, processor, loaded.config, max_length=4096, max_pixels=None)
        losses = [float(answer_loss(loaded, embedded(loaded, row), row)) / row.answer for row in inputs.pair(0)]
        margins.append(losses[1] - losses[0])
    assert margins[1] > margins[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAST)
def test_the_adapter_answers_what_it_learnt(family: str, rows: list[ChatRow], tmp_path: Path) -> None:
    model = FAMILIES[family](tmp_path / family)
    row = rows[0]
    trained(
        tmp_path / "training", model, [row], steps=40, batch_size=1, dropout=0.0, learning_rate=2e-2, validate_every=99
    )
    image = Media(hashlib.sha256(row.images[0].read_bytes()).hexdigest(), ".png")
    parts = tuple(image if isinstance(part, Media) else part for part in row.messages[0].parts)
    backend = load_backend(f"{model}+{tmp_path / 'training' / 'adapter'}", lambda media: row.images[0])
    backend.submit(Request("row", 0, (Message("user", parts),), Decoding(max_tokens=40)))
    answers: list[Generation] = []
    while not answers:
        answers.extend(backend.step())
    backend.close()
    assert (answers[0].text, answers[0].finish_reason) == (row.target, "stop")


@pytest.mark.parametrize("family", ["paligemma", "deepseek_vl_v2", "gemma4"])
@pytest.mark.slow
def test_families_listed_as_untrainable_are(family: str, rows: list[ChatRow], tmp_path: Path) -> None:
    model = FAMILIES[family](tmp_path / family)
    with pytest.raises((ModelError, ValueError)):
        trained(tmp_path / "training", model, rows)


@pytest.mark.parametrize("objective", ["answer", "orpo"])
@pytest.mark.parametrize(
    "family", [pytest.param("qwen3_vl"), *(pytest.param(n, marks=pytest.mark.slow) for n in ("llava", "lfm2_vl"))]
)
def test_memory_is_at_most_as_predicted(family: str, objective: str, rows: list[ChatRow], tmp_path: Path) -> None:
    model = FAMILIES[family](tmp_path / family)
    info, config = inspect(model), read_config(model)
    long = [
        ChatRow(row.where, (row.messages[0], *row.messages[:0]), row.target * 8, row.images, rejected=row.target * 8)
        for row in rows
    ]
    reports = trained(tmp_path / "training", model, long, steps=2, batch_size=1, objective=objective)
    measured = max(report.peak_memory for report in reports)
    memory = training_memory(
        config,
        info.weights_bytes,
        longest_row(model, long, None),
        rank=4,
        dropout=0.1,
        checkpointing=False,
        answers=2 if objective == "orpo" else 1,
    )
    predicted = memory.total - memory.runtime
    assert measured <= predicted * 1.1
    assert predicted <= measured * 4


@pytest.mark.parametrize("seed", [68_720, 2**32 - 1])
def test_gradient_checkpointing_takes_every_seed(seed: int, rows: list[ChatRow], tmp_path: Path) -> None:
    model = FAMILIES["qwen3_vl"](tmp_path / "model")
    (report,) = trained(tmp_path / "t", model, rows, seed=seed, steps=1, gradient_checkpointing=True)
    assert report.loss > 0


@pytest.fixture(scope="module")
def mixed_rows(tmp_path_factory: pytest.TempPathFactory) -> list[ChatRow]:
    """Rows without an image, with one and with two, and two that differ in the second image alone."""
    folder = tmp_path_factory.mktemp("mixed")
    names = []
    for number in range(3):
        data = picture(number)
        names.append(f"{hashlib.sha256(data).hexdigest()}.png")
        (folder / names[-1]).write_bytes(data)
    lines = []
    for images in ([], names[:1], names[:2], [names[0], names[2]]):
        parts = [[{"type": "image"}, {"type": "text", "text": " and "}] for _ in images]
        content = [*(part for pair in parts for part in pair), {"type": "text", "text": "what number?"}]
        messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "It is 7."}]
        lines.append(json.dumps({"images": images, "messages": messages}))
    (folder / "train.jsonl").write_text("\n".join(lines))
    return list(TrainingSet.open(folder).rows("train"))


@pytest.mark.parametrize("family", TRAINABLE)
def test_rows_without_an_image_and_with_two(family: str, mixed_rows: list[ChatRow], tmp_path: Path) -> None:
    shrunk = import_module(f"tests.support.tiny_models.{family}").shrunk() if family in SHRUNK else nullcontext()
    with shrunk:
        model = FAMILIES[family](tmp_path / family)
        loaded, processor = load(model)
        inputs = TrainingInputs(mixed_rows, processor, loaded.config, max_length=4096, max_pixels=None)
        losses = []
        for index in range(len(mixed_rows)):
            row = inputs[index]
            assert inputs.count_tokens(index, pair=False) == row.ids.shape[1]
            losses.append(float(answer_loss(loaded, embedded(loaded, row), row)))
        assert losses[2] != losses[3], "the second image is seen"
        reports = trained(tmp_path / "t", model, mixed_rows, batch_size=4, steps=3, gradient_checkpointing=True)
        assert reports[0].answer_tokens == 4 * row.answer
        assert reports[-1].loss < reports[0].loss


def test_row_of_ours_is_read_by_mlx_vlm_s_own_trainer(charts: HeldOutSet, tmp_path: Path) -> None:
    from mlx_vlm.trainer.datasets import load as load_rows
    from mlx_vlm.trainer.vlm.sft.dataset import VisionDataset

    Rashomon(tmp_path).run("training", "cmc-bench", "--data", charts.build.path, "--out", tmp_path / "set")
    split = load_rows(str(tmp_path / "set"))["train"]
    ours = list(TrainingSet.open(tmp_path / "set").rows("train"))
    loaded, processor = load(FAMILIES["qwen3_vl"](tmp_path / "model"))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    dataset = VisionDataset(split, config, processor, SimpleNamespace(train_on_completions=True))
    assert len(dataset) == len(ours)
    inputs = TrainingInputs(ours, processor, loaded.config, max_length=4096, max_pixels=None)
    for index in range(6):
        theirs, row = dataset[index], inputs[index]
        tokens, mask = theirs["input_ids"].tolist(), theirs["completion_mask"].tolist()
        learnt = [token for token, is_learnt in zip(tokens, mask, strict=True) if is_learnt]
        answer = row.ids[0, -row.answer :].tolist()
        assert learnt[: len(answer)] == answer
        assert ("image_grid_thw" in theirs) == bool(ours[index].images)
        if ours[index].images:
            assert theirs["image_grid_thw"].tolist() == row.tensors["image_grid_thw"].tolist()
    assert {bool(row.images) for row in ours[:6]} == {True, False}
