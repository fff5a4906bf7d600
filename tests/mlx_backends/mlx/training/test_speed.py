"""The work that a training saves, without a change of what it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from PIL import Image

from benchmarks.training.training_set import ChatRow
from benchmarks.vocabulary import Media, Message, Text
from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.training.training_layers import multiply_densely
from mlx_backends.mlx.training.training_loop import TrainingLoop
from mlx_backends.training_settings import TrainingSettings
from tests.support.demo import DEMO

SETTINGS = TrainingSettings(
    rank=4, alpha=8.0, dropout=0.0, batch_size=1, learning_rate=1e-3, schedule="constant", warmup=0, steps=2, max_length=512,
    max_pixels=None, gradient_checkpointing=False, seed=0, validate_every=2, save_every=3,
)  # fmt: skip


def rows(folder: Path, count: int) -> list[ChatRow]:
    written = []
    for number in range(count):
        file = folder / f"{number}.png"
        Image.new("RGB", (96, 96), (200, 60 * number, 90)).save(file)
        message = Message("user", (Media("0" * 64, ".png"), Text("What is the value of kale?")))
        written.append(ChatRow(f"train:{number}", (message,), f"kale: {10 + number}", (file,)))
    return written


@pytest.mark.slow
def test_an_image_is_encoded_once_however_often_its_row_is_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt = rows(tmp_path, 2)
    loop = TrainingLoop(
        tmp_path, "demo", load(DEMO / "model-4bit"), {"train": learnt, "validation": learnt}, SETTINGS, {}
    )
    encoder = type(loop._model.vision_tower)
    encode, calls = encoder.__call__, 0

    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        assert not self.training, "dropout of its own would end up in the stored features"
        return encode(self, *arguments, **options)

    monkeypatch.setattr(encoder, "__call__", counting)
    assert loop.run(loop.resume(), lambda report: None, lambda: 0, lambda: False)
    assert calls == len(learnt)


def test_dense_layers_give_the_logits_of_the_quantised_ones() -> None:
    model, _ = load(DEMO / "model-4bit")
    ids = mx.array([[5, 9, 120, 33, 7]])
    before = model.language_model(ids).logits
    assert multiply_densely(model)
    assert not any(isinstance(layer, nn.QuantizedLinear) for _, layer in model.language_model.named_modules())
    after = model.language_model(ids).logits
    assert mx.allclose(before, after, atol=1e-3 * float(mx.max(mx.abs(before))))


def test_layers_that_would_take_much_memory_stay_quantised(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = load(DEMO / "model-4bit")
    monkeypatch.setattr("mlx_backends.mlx.training.training_layers._MOST_BYTES", 1 << 20)
    assert not multiply_densely(model)
    assert any(isinstance(layer, nn.QuantizedLinear) for _, layer in model.language_model.named_modules())
