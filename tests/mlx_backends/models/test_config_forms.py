"""``config.json`` as transformers 5 writes it says to mlx-vlm and mlx-lm what transformers 4's says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.config_forms import library_form

FILE = Path("model/config.json")


def text(config: dict[str, Any]) -> dict[str, Any]:
    translated: dict[str, Any] = library_form(config, FILE)["text_config"]
    return translated


def test_the_older_form_is_left_as_it_is() -> None:
    config = {
        "model_type": "llava",
        "text_config": {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        "vision_config": {"model_type": "clip_vision_model"},
    }
    assert library_form(config, FILE) == config


def test_base_and_scaling_of_rope_are_where_the_libraries_look() -> None:
    parameters = {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5, "partial_rotary_factor": 0.5}
    config = text({"model_type": "llava", "text_config": {"rope_parameters": parameters}})
    assert (config["rope_theta"], config["partial_rotary_factor"]) == (5e5, 0.5)
    assert config["rope_scaling"] == {"rope_type": "linear", "type": "linear", "factor": 4.0}


def test_unscaled_rope_gets_no_scaling() -> None:
    config = text({"text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}})
    assert "rope_scaling" not in config


def test_sections_of_mrope_are_kept() -> None:
    parameters = {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 5e6, "mrope_interleaved": True}
    config = text({"model_type": "qwen3_vl", "text_config": {"rope_parameters": parameters}})
    scaling = config["rope_scaling"]
    assert (scaling["type"], scaling["mrope_section"], scaling["mrope_interleaved"]) == ("default", [4, 2, 2], True)


def test_each_kind_of_layer_keeps_its_own_rope() -> None:
    parameters = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
    }
    config = text({"model_type": "gemma3", "text_config": {"rope_parameters": parameters}})
    assert (config["rope_global_base_freq"], config["rope_local_base_freq"]) == (2e6, 2e4)
    assert config["rope_scaling"]["factor"] == 8.0


def test_a_text_model_is_translated_at_the_top_level() -> None:
    parameters = {"rope_type": "llama3", "factor": 8.0, "rope_theta": 5e5}
    config = library_form({"model_type": "llama", "rope_parameters": parameters}, FILE)
    assert (config["rope_theta"], config["rope_scaling"]["type"]) == (5e5, "llama3")


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
def test_settings_of_the_language_model_are_lifted_where_the_library_reads_the_top_level(kind: str) -> None:
    section = {"model_type": f"{kind}_text", "hidden_size": 64, "rms_norm_eps": 1e-3, "eos_token_id": [310]}
    section |= {"rope_parameters": {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 5e6}}
    vision = {"model_type": f"{kind}_vision"}
    config = library_form({"model_type": kind, "text_config": section, "vision_config": vision}, FILE)
    assert (config["hidden_size"], config["rms_norm_eps"], config["eos_token_id"]) == (64, 1e-3, [310])
    assert (config["rope_theta"], config["rope_scaling"]["mrope_section"]) == (5e6, [4, 2, 2])
    assert (config["model_type"], config["vision_config"]["model_type"]) == (kind, kind)


def test_heads_of_full_attention_are_found_in_the_form_that_names_every_layer() -> None:
    section = {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]}
    own = section | {"per_layer_config": {"1": {"head_dim": 32, "num_key_value_heads": 1}}}
    config = text({"model_type": "gemma4", "text_config": own})
    assert (config["global_head_dim"], config["num_global_key_value_heads"]) == (32, 1)
    assert text({"model_type": "gemma4", "text_config": section | {"per_layer_config": {}}})["global_head_dim"] == 16


@pytest.mark.parametrize(
    ("tied", "has_head", "expected"),
    [(False, True, False), (True, False, True), (False, False, None), (True, True, None), (None, True, None)],
)
def test_tying_of_the_top_level_holds_where_the_weights_agree(tied: Any, has_head: bool, expected: Any) -> None:
    config = {"model_type": "lfm2_vl", "tie_word_embeddings": tied, "text_config": {"hidden_size": 64}}
    translated = library_form(config, FILE, has_head=has_head)
    assert translated["text_config"].get("tie_word_embeddings") is expected


@pytest.mark.parametrize(
    "section",
    [
        {"rope_theta": 1e4, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        {
            "rope_scaling": {"type": "linear", "factor": 2.0},
            "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6},
        },
    ],
)
def test_contradicting_values_are_refused_with_file_and_key(section: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"config\.json.*text_config\.rope_"):
        library_form({"model_type": "llava", "text_config": section}, FILE)


def test_levels_that_contradict_each_other_are_refused() -> None:
    config = {"model_type": "qwen2_vl", "hidden_size": 64, "text_config": {"hidden_size": 128}}
    with pytest.raises(ModelError, match="hidden_size"):
        library_form(config, FILE)


def test_the_same_value_in_both_forms_is_no_contradiction() -> None:
    scaling = {"type": "mrope", "mrope_section": [4, 2, 2]}
    parameters = {"rope_type": "default", "type": "mrope", "mrope_section": [4, 2, 2], "rope_theta": 5e6}
    config = text({"text_config": {"rope_theta": 5e6, "rope_scaling": scaling, "rope_parameters": parameters}})
    assert config["rope_scaling"] == scaling


@pytest.mark.parametrize("level", ["top", "text_config"])
@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"model_type": "qwen3_moe", "num_local_experts": 4}, {"num_experts": 4}),
        ({"model_type": "lfm2", "hidden_size": 128}, {"block_dim": 128, "conv_dim": 128, "conv_dim_out": 128}),
        ({"model_type": "lfm2", "hidden_size": 128, "block_dim": 64}, {"block_dim": 64}),
        ({"model_type": "qwen3", "hidden_size": 128}, {"hidden_size": 128}),
    ],
)
def test_renamed_settings_have_their_older_names_too(level: str, section: Any, expected: Any) -> None:
    config = section if level == "top" else {"model_type": "any", "text_config": section}
    translated = library_form(config, FILE)
    result = translated if level == "top" else translated["text_config"]
    assert expected.items() <= result.items()
    if section["model_type"] == "qwen3":
        assert translated == config
