"""Modalities of a model, read from its configuration and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlx_backends.engine_registry import describe, modalities
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.model_modalities import ALL_MODALITIES, describe_modalities, supported_modalities

VISION: dict[str, Any] = {"vision_config": {"depth": 2}, "image_token_id": 151655}
# As the published config.json have them, cut down to what speaks of media.
PUBLISHED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "Qwen3-VL-4B": ({"model_type": "qwen3_vl", **VISION, "video_token_id": 151656}, ("image", "video")),
    "Qwen2.5-VL-7B": ({"model_type": "qwen2_5_vl", **VISION, "video_token_id": 151656}, ("image", "video")),
    "LLaVA-OneVision": (
        {"vision_config": {"layers": 2}, "image_token_index": 151646, "video_token_index": 151647},
        ("image", "video"),
    ),
    "gemma-3n-E2B": (
        {
            "model_type": "gemma3n",
            "audio_config": {"conf_num_hidden_layers": 12},
            "audio_soft_tokens_per_image": 188,
            "audio_token_id": 262273,
            "vision_config": {"architecture": "mobilenetv5_300m_enc"},
            "image_token_id": 262145,
        },
        ("image", "audio"),
    ),
    "gemma-4 with audio": (
        {**VISION, "audio_config": {"hidden_size": 8}, "video_token_id": 258884},
        ALL_MODALITIES[:3],
    ),
    "gemma-4 without": (
        {**VISION, "audio_config": None, "audio_token_id": 258881, "video_token_id": 258884},
        ("image", "video"),
    ),
    "Qwen3-Omni": (
        {
            "model_type": "qwen3_omni_moe",
            "talker_config": {"audio_token_id": 151675},
            "thinker_config": {**VISION, "audio_config": {"d_model": 8}, "audio_token_id": 1, "video_token_id": 2},
        },
        ALL_MODALITIES[:3],
    ),
    "Phi-4-multimodal": (
        {
            "model_type": "phi4mm",
            "audio_processor": {"name": "cascades"},
            "img_processor": None,
            "vision_lora": {"r": 256},
            "speech_lora": {"r": 320},
        },
        ("image", "audio"),
    ),
    "MiniCPM-o": ({**VISION, "audio_config": {"d_model": 8}, "init_audio": True}, ("image", "audio")),
    "MiniCPM-o without its ears": ({**VISION, "audio_config": {"d_model": 8}, "init_audio": False}, ("image",)),
    "Nemotron-Omni": ({**VISION, "sound_config": {"n": 1}, "video_context_token_id": 3}, ALL_MODALITIES[:3]),
    "LFM2-VL": ({"model_type": "lfm2_vl", "image_token_id": 396, "vision_config": {"n": 1}}, ("image",)),
    "an unused video token": ({**VISION, "video_token_index": -1}, ("image",)),
    "Qwen3": ({"model_type": "qwen3", "hidden_size": 1024}, ()),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configurations(name: str) -> None:
    config, expected = PUBLISHED[name]
    assert supported_modalities(config) == expected
    assert (
        supported_modalities({**config, "model_type": "gemma3n-audio-video", "architectures": ["Qwen3OmniForAudio"]})
        == expected
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["audio_config", "video_token_id", "init_audio", "thinker_config", "vision_config"]) | st.text()


@given(st.dictionaries(_KEYS, _JSON, max_size=6))
def test_any_configuration_has_modalities(config: dict[str, Any]) -> None:
    modalities = supported_modalities(config)
    assert list(modalities) == [modality for modality in ALL_MODALITIES if modality in modalities]
    assert "point_cloud" not in modalities
    assert describe_modalities(modalities)


def test_nested_vision_config_is_not_text_only(tiny: Path, tmp_path: Path) -> None:
    for file in tiny.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED["Qwen3-Omni"][0]))
    model_info = inspect(tmp_path)
    assert (model_info.engine, model_info.takes) == ("mlx-vlm", ALL_MODALITIES[:3])


def test_engines_declare_their_modalities(tiny: Path) -> None:
    assert modalities(str(tiny)) == describe(str(tiny)).takes == ("image", "video")
    for name in ("openai:gpt", "anthropic:claude", "gemini:flash", "endpoint:x@http://localhost:1/v1"):
        assert modalities(name) == describe(name).takes == ("image",)
    assert modalities("policy:random") == modalities("imported:elsewhere") == ALL_MODALITIES
