"""The switches for Macs: what they read, and that they change no answer."""

from __future__ import annotations

import pytest

from mlx_backends.mlx.metal import metal_switches


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), (" OFF ", False)])
def test_a_switch_is_on_unless_it_says_off(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(metal_switches.SERIAL_IMAGES, value)
    assert metal_switches.is_on(metal_switches.SERIAL_IMAGES) is expected


def test_full_fp32_leaves_what_the_user_says() -> None:
    assert metal_switches.with_full_fp32({"A": "b"}) == {"A": "b", "MLX_ENABLE_TF32": "0"}
    assert metal_switches.with_full_fp32({"MLX_ENABLE_TF32": "1"}) == {"MLX_ENABLE_TF32": "1"}


def test_the_precision_of_fp32_is_a_fact_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLX_ENABLE_TF32", raising=False)
    assert metal_switches.float_facts("mlx-vlm", "cpu") == metal_switches.float_facts("openai", "remote") == {}
    assert metal_switches.float_facts("mlx-vlm", "metal") == {"environment": {"MLX_ENABLE_TF32": "not set"}}
    monkeypatch.setenv("MLX_ENABLE_TF32", "0")
    assert metal_switches.float_facts("mlx-lm", "cuda") == {"environment": {"MLX_ENABLE_TF32": "0"}}


def test_a_function_that_fails_inline_is_a_failed_future() -> None:
    executor = metal_switches.InlineExecutor()
    assert executor.submit(pow, 2, exp=3).result() == 8
    assert isinstance(executor.submit(int, "x").exception(), ValueError)
