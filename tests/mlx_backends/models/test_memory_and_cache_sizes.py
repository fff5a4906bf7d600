"""Memory estimates, and the refusal of models that do not fit before they are loaded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Text
from mlx_backends.engine_registry import load_backend
from mlx_backends.models import memory_and_cache_sizes
from mlx_backends.models.memory_and_cache_sizes import (
    device_info,
    memory_fit,
    peak_memory,
    required_memory,
    suggested_max_pixels,
)
from mlx_backends.models.metal_working_set import GIB, estimated_working_set
from mlx_backends.models.request_memory import feature_bytes
from tests.mlx_backends.conftest import Pictures, answer, request_of


@given(st.integers(0, 10**13))
def test_memory_need_is_weights_plus_allowance(weights: int) -> None:
    assert required_memory(weights) == weights + weights // 8 + GIB


def test_metal_limit_makes_the_estimate_exact() -> None:
    device = {"device_name": "Apple M2 Pro", "max_recommended_working_set_size": 11 * GIB, "memory_size": 16 * GIB}
    good, bad = memory_fit(8 * GIB, device), memory_fit(9 * GIB, device)
    assert (good.need, good.available, good.ok) == (10 * GIB, 11 * GIB, True)
    assert not bad.ok
    assert bad.source == "Metal's recommended working set"
    assert bad.sentence == (
        "it needs about 11.9 GB (9.7 GB of weights and working memory) and does not fit in the 11.8 GB of "
        "Metal's recommended working set"
    )


@pytest.mark.parametrize(("total", "gibibytes"), [(8, 5.33), (16, 11.84), (36, 27.0), (64, 51.84), (128, 107.5)])
def test_a_mac_without_metal_is_estimated_from_published_values(
    total: int, gibibytes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sysctl(command: list[str], **_: object) -> Any:
        assert command[-1] == "hw.memsize"
        return SimpleNamespace(returncode=0, stdout=f"{total * GIB}\n")

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", sysctl)
    monkeypatch.setattr(memory_and_cache_sizes, "metal_working_set", lambda: None)
    fit = memory_fit(GIB)
    assert fit.available == pytest.approx(gibibytes * GIB)
    assert f"estimated for a Mac with {total} GB" in fit.source


def test_what_metal_recommends_is_used_for_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(memory_and_cache_sizes, "metal_working_set", lambda: 7 * GIB)
    fit = memory_fit(0)
    assert (fit.available, fit.source) == (7 * GIB, "Metal's recommended working set")


@given(st.integers(0, 600), st.integers(0, 600))
def test_more_memory_never_has_a_smaller_working_set(one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert 0 <= estimated_working_set(less * GIB) <= estimated_working_set(more * GIB) <= more * GIB


CONFIG = {
    "text_config": {
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 9728,
        "vocab_size": 151936,
    },
    "vision_config": {"hidden_size": 1024, "patch_size": 16, "spatial_merge_size": 2},
}


def test_a_peak_grows_with_the_image_the_prompt_and_the_width() -> None:
    weights = 3_100_000_000

    def peak(image_tokens: int, width: int, text_tokens: int = 1500) -> int:
        return peak_memory(
            CONFIG,
            weights,
            prompt_tokens=text_tokens + image_tokens,
            image_tokens=image_tokens,
            max_tokens=256,
            width=width,
        )

    assert peak(0, 1) == required_memory(weights), "small requests are covered by the allowance"
    assert required_memory(weights) < peak(8000, 1) < peak(16000, 1)
    assert peak(16000, 2) - peak(16000, 1) >= 16000 * 144 * 1024, "the cache of another request"
    assert peak_memory({}, weights, prompt_tokens=10**6, image_tokens=10**6, max_tokens=1) == required_memory(weights)


@pytest.mark.parametrize(
    ("config", "tokens", "expected"),
    [
        ({"model_type": "llava", "vision_config": {"hidden_size": 1024}, "vision_feature_layer": -2}, 576, 576 * 1024),
        (
            {"model_type": "llava", "vision_config": {"hidden_size": 1024}, "vision_feature_layer": [-2, -5]},
            576,
            2 * 576 * 1024,
        ),
        (
            {
                "model_type": "gemma3",
                "mm_tokens_per_image": 256,
                "vision_config": {"hidden_size": 1152, "image_size": 896, "patch_size": 14},
            },
            256,
            64 * 64 * 1152,
        ),
        (
            {"model_type": "smolvlm", "scale_factor": 3, "vision_config": {"hidden_size": 1152}},
            17 * 81,
            17 * 729 * 1152,
        ),
        ({"model_type": "lfm2_vl", "downsample_factor": 2, "vision_config": {"hidden_size": 1152}}, 256, 1024 * 1152),
        (
            {"model_type": "internvl_chat", "downsample_ratio": 0.5, "vision_config": {"hidden_size": 1024}},
            256,
            1024**2,
        ),
        (
            {
                "model_type": "deepseek_vl_v2",
                "projector_config": {"downsample_ratio": 2},
                "vision_config": {"width": 1152},
            },
            196,
            784 * 1152,
        ),
        (
            {
                "model_type": "granite4_vision",
                "downsample_rate": "4/8",
                "deepstack_layer_map": [[-19, 9], [-13, 6], [-7, 3], [-1, 0]],
                "use_spatial_sampling": True,
                "spatial_vision_layer": -1,
                "vision_config": {"hidden_size": 1152},
            },
            144,
            4 * 576 * 1152,
        ),
        (
            {
                "model_type": "qwen3_vl",
                "vision_config": {
                    "hidden_size": 1024,
                    "out_hidden_size": 2560,
                    "spatial_merge_size": 2,
                    "deepstack_visual_indexes": [5, 11, 17],
                },
            },
            100,
            4 * 100 * 2560,
        ),
        ({"model_type": "mistral3", "spatial_merge_size": 2, "vision_config": {"hidden_size": 1024}}, 50, 200 * 1024),
        ({"model_type": "unknown", "text_config": {"hidden_size": 2048, "num_hidden_layers": 2}}, 10, 10 * 2048),
        ({"model_type": "unknown", "downsample_rate": "x/0", "vision_feature_layer": [[1], {}]}, 10, 10 * 1024),
        ({"downsample_ratio": 0, "vision_config": {"deepstack_visual_indexes": 3}}, 10, 10 * 1024),
    ],
    ids=lambda value: str(value.get("model_type")) if isinstance(value, dict) else "",
)
def test_an_images_features_take_what_its_model_uses_of_them(
    config: dict[str, Any], tokens: int, expected: int
) -> None:
    assert feature_bytes(config, tokens) == 2 * expected


def test_only_a_small_mac_limits_its_images() -> None:
    weights = 3_100_000_000
    pixels = {size: suggested_max_pixels(CONFIG, weights, estimated_working_set(size * GIB)) for size in (4, 8, 16)}
    assert pixels == {4: None, 8: 3_400_000, 16: None}, "on the smallest no image fits, on the largest any"


def test_elsewhere_a_margin_of_the_machines_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for total, have in ((8, 6), (64, 56), (1, 0)):
        monkeypatch.setattr(memory_and_cache_sizes, "_total", lambda total=total: total * GIB)
        assert memory_fit(0).available == have * GIB


@pytest.mark.parametrize("figure", [None, 0, -1, "12", 1.5])
def test_unusable_device_value_is_ignored(figure: object) -> None:
    assert memory_fit(0, {"max_recommended_working_set_size": figure}) == memory_fit(0)


def test_host_memory_is_positive() -> None:
    assert isinstance(device_info(), dict)
    assert memory_fit(0, device_info()).available > GIB


@pytest.mark.parametrize("kind", ["function", "metal", "neither", "fails"])
def test_device_information_is_found_in_any_mlx_version(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlx.core as mx

    def fail() -> dict[str, object]:
        raise RuntimeError("[metal::device_info] no Metal back-end")

    info = {"max_recommended_working_set_size": 5}
    metal = SimpleNamespace(device_info=lambda: info) if kind == "metal" else SimpleNamespace()
    monkeypatch.setattr(mx, "device_info", {"function": lambda: info, "fails": fail}.get(kind), raising=False)
    monkeypatch.setattr(mx, "metal", metal, raising=False)
    assert device_info() == (info if kind in ("function", "metal") else {})


def test_too_large_model_is_refused_with_numbers_before_loading(
    tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_and_cache_sizes, "device_info", lambda: {"max_recommended_working_set_size": GIB // 2})
    with monkeypatch.context() as patch:
        patch.setattr("mlx_backends.mlx.mlx_load.load", lambda path: pytest.fail("it was loaded"))
        with pytest.raises(ModelError, match=r"needs about 1\.1 GB .* does not fit in the 0\.5 GB .* --force"):
            load_backend(str(tiny), pictures.path)
    forced = load_backend(str(tiny), pictures.path, force=True)
    assert answer(forced, request_of(Text("Hello."))).error is None
