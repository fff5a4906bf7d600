"""Adapters written for peft, without PyTorch: every number comes back, and what peft cannot carry out is refused."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import pytest

from benchmarks.errors import ModelError
from mlx_backends.mlx.adapters.from_peft import convert_from_peft
from mlx_backends.mlx.adapters.to_peft import convert_to_peft
from mlx_backends.models.adapter_folder import read_adapter
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.torch_layer_names import layer_name
from mlx_backends.models.weight_files import tensor_shapes
from tests.support import tiny_models
from tests.support.adapters import linear_names, make_adapter
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT

NAMES = {
    "qwen3_vl": ("model.language_model.layers.0.self_attn.q_proj", "model.visual.blocks.0.attn.qkv"),
    "lfm2_vl": (
        "model.language_model.layers.1.self_attn.q_proj",
        "model.vision_tower.encoder.layers.0.self_attn.q_proj",
    ),
    "llava": ("model.language_model.layers.0.self_attn.q_proj", "model.vision_tower.encoder.layers.0.self_attn.q_proj"),
    "idefics3": ("model.text_model.layers.0.self_attn.q_proj", "model.vision_model.encoder.layers.0.self_attn.q_proj"),
}
"""Layers of transformers' models, the language model's and the image encoder's, read in its source."""


def converted(model: Path, adapter: Path, target: Path) -> Path:
    target.mkdir()
    convert_to_peft(read_adapter(adapter), inspect(model), "org/model", target)
    return target


def refusal(model: Path, adapter: Path, target: Path) -> str:
    with pytest.raises(ModelError) as error:
        converted(model, adapter, target)
    assert not list(target.iterdir())
    return str(error.value)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.qwen3_vl(tmp_path_factory.mktemp("base") / "model")


def test_from_peft_to_mlx_and_back_every_byte_is_the_same(base: Path, tmp_path: Path) -> None:
    first = converted(base, make_adapter(base, tmp_path / "adapter"), tmp_path / "first")
    (tmp_path / "mlx").mkdir()
    convert_from_peft(first, inspect(base), tmp_path / "mlx")
    second = converted(base, tmp_path / "mlx", tmp_path / "second")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_settings_are_those_of_the_adapter(base: Path, tmp_path: Path) -> None:
    folder = converted(base, make_adapter(base, tmp_path / "adapter", rank=4), tmp_path / "peft")
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"], config["lora_dropout"]) == ("LORA", 4, 8.0, 0.1)
    layers = {name.split(".lora_")[0] for name in tensor_shapes(folder / "adapter_model.safetensors")}
    assert layers == {f"base_model.model.{layer}" for layer in config["target_modules"]}
    assert config["base_model_name_or_path"] == "org/model"


@pytest.mark.parametrize(
    "family", [name if name == "qwen3_vl" else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_layers_have_the_names_of_transformers(family: str, tmp_path: Path) -> None:
    """The image encoder's layers too, which peft adapts like any other."""
    model = getattr(tiny_models, family)(tmp_path / "model")
    layers = [*linear_names(model, "language_model"), *linear_names(model, "vision")]
    folder = converted(model, make_adapter(model, tmp_path / "adapter", targets=layers), tmp_path / "peft")
    names = {name for name in tensor_shapes(folder / "adapter_model.safetensors") if "lora_A" in name}
    assert {f"base_model.model.{name}.lora_A.weight" for name in NAMES[family]} <= names
    assert len(names) == len(set(layers))


def test_an_adapter_of_a_quantised_base_is_converted_with_a_note(tmp_path: Path) -> None:
    adapter = make_adapter(FOUR_BIT, tmp_path / "adapter")
    done = Rashomon(tmp_path).run("models", "adapter", adapter, "--model", FOUR_BIT, "--to-peft", tmp_path / "peft")
    assert "bit for bit the same" in done.stdout
    assert "was fitted to 4-bit g64 weights of MLX" in done.stdout
    assert sorted(path.name for path in (tmp_path / "peft").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


# --- refusals --------------------------------------------------------------------------------


def test_dora_is_refused(base: Path, tmp_path: Path) -> None:
    assert "is not of plain LoRA layers" in refusal(
        base, make_adapter(base, tmp_path / "adapter", dora=True), tmp_path / "peft"
    )


def test_a_choice_of_experts_is_refused(tmp_path: Path) -> None:
    model = tiny_models.qwen3_vl_moe(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    assert "chooses or is an expert" in refusal(model, adapter, tmp_path / "peft")
    attention = make_adapter(model, tmp_path / "attention", targets=["q_proj", "v_proj"])
    assert converted(model, attention, tmp_path / "converted")


def test_a_type_whose_names_are_not_known_is_refused(tmp_path: Path) -> None:
    model = tiny_models.internvl_chat(tmp_path / "model")
    assert "'internvl_chat' are not known" in refusal(
        model, make_adapter(model, tmp_path / "adapter"), tmp_path / "peft"
    )
    with pytest.raises(ModelError):
        layer_name(["qwen3_vl"], "x")


def test_an_adapter_of_another_model_is_refused(base: Path, tmp_path: Path) -> None:
    other = tiny_models.llava(tmp_path / "other")
    assert "another base model" in refusal(other, make_adapter(base, tmp_path / "adapter"), tmp_path / "peft")
    recorded = {"base model": "org/other", "base weights": "0" * 64}
    adapter = make_adapter(base, tmp_path / "recorded", base=recorded)
    assert "trained on org/other" in refusal(base, adapter, tmp_path / "second")


def test_a_diverged_adapter_is_refused(base: Path, tmp_path: Path) -> None:
    adapter = make_adapter(base, tmp_path / "adapter")
    tensors = mx.load(str(adapter / "adapters.safetensors"))
    assert isinstance(tensors, dict)
    name = next(iter(tensors))
    mx.save_safetensors(str(adapter / "adapters.safetensors"), {**tensors, name: tensors[name] * float("nan")})
    assert "no numbers" in refusal(base, adapter, tmp_path / "peft")


def test_refusals_leave_nothing(base: Path, tmp_path: Path) -> None:
    adapter = make_adapter(base, tmp_path / "adapter", dora=True)
    Rashomon(tmp_path).run("models", "adapter", adapter, "--model", base, "--to-peft", tmp_path / "peft", code=2)
    assert sorted(path.name for path in tmp_path.iterdir() if "peft" in path.name) == []
