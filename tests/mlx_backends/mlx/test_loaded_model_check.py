"""A loaded model computes with what its folder says, or the folder is refused with file and key."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Message, Request, Text
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.loaded_model_check import check_model, position_remarks
from mlx_backends.mlx.mlx_load import load, load_processor, load_text
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.weight_files import weights_digest
from tests.support.text_architectures import text_model
from tests.support.tiny_models import FAMILIES, TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

LINEAR = {"rope_type": "linear", "type": "linear", "factor": 8.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 64}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's tiny model, built once."""
    built: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in built:
            built[name] = FAMILIES[name](tmp_path_factory.mktemp("models") / name)
        return built[name]

    return folder


@pytest.fixture
def variant(family: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """A copy of a family's folder with other settings of the language model."""

    def copy(name: str, settings: Mapping[str, Any] | None = None) -> Path:
        folder = tmp_path / name
        shutil.copytree(family(name), folder)
        edit(folder / "config.json", lambda config: (config.get("text_config") or config).update(settings or {}))
        return folder

    return copy


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    settings = json.loads(file.read_text())
    change(settings)
    file.write_text(json.dumps(settings))


def edit_weights(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    import mlx.core as mx

    tensors: Any = mx.load(str(file))
    mx.save_safetensors(str(file), change(dict(tensors)), metadata={"format": "mlx"})


def save_as_transformers_5(folder: Path) -> None:
    from transformers import AutoConfig

    AutoConfig.from_pretrained(folder).save_pretrained(folder)
    assert "rope_parameters" in (folder / "config.json").read_text()


def answer(folder: Path) -> tuple[int, ...]:
    backend = load_backend(str(folder), lambda media: Path(media.name))
    request = Request("x", 0, (Message("user", (Text("What does the passage say? " * 20),)),), Decoding(max_tokens=12))
    try:
        backend.submit(request)
        generations: list[Any] = []
        while not generations:
            generations = list(backend.step())
    finally:
        backend.close()
    assert generations[0].error is None
    return tuple(generations[0].tokens)


@pytest.mark.parametrize(
    "name", ["qwen3_vl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("llava", "qwen2_5_vl", "mistral3"))]
)
def test_the_form_of_transformers_5_gives_the_same_answers(variant: Callable[..., Path], name: str) -> None:
    folder = variant(name)
    other = {"rope_theta": 54321.0, "rms_norm_eps": 0.01}
    edit(
        folder / "config.json",
        lambda config: (config if "hidden_size" in config else config["text_config"]).update(other),
    )
    before, digest = answer(folder), weights_digest(folder)
    save_as_transformers_5(folder)
    stated = (folder / "config.json").read_bytes()
    assert answer(folder) == before
    assert (folder / "config.json").read_bytes() == stated  # translated for the library, not in the user's folder
    assert weights_digest(folder) != digest  # that of the folder as it is


def test_weights_with_names_that_the_library_does_not_read_are_refused_in_one_sentence(
    variant: Callable[..., Path],
) -> None:
    folder = variant("llava")

    def rename(weights: dict[str, Any]) -> dict[str, Any]:
        return {name.replace("vision_tower.vision_model.", "vision_tower.new."): t for name, t in weights.items()}

    edit_weights(folder / "model.safetensors", rename)
    edit(folder / "config.json", lambda config: config.update(transformers_version="5.23.0"))
    with pytest.raises(ModelError, match=r"names or shapes .*5\.23\.0.*vision_tower\.new") as refusal:
        load(folder)
    assert str(refusal.value).count("vision_tower") == 1
    assert "cuda:MODEL@cpu" in str(refusal.value)


def test_a_text_model_with_a_missing_tensor_is_refused_with_its_name(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    edit_weights(
        folder / "model.safetensors",
        lambda weights: {n: t for n, t in weights.items() if not n.endswith("norm.weight")},
    )
    with pytest.raises(ModelError, match=r"names or shapes .*norm\.weight\)"):
        load_text(folder)


def test_a_text_model_in_the_form_of_transformers_5_computes_the_same(tmp_path: Path) -> None:
    """mlx-lm reads the newer form of some types, and of LLaMA only the older."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    folder = build_tiny_lm(tmp_path / "llama", TEXTS, quantise=False)
    edit(folder / "config.json", lambda config: config.update(model_type="llama", architectures=["LlamaForCausalLM"]))
    edit(folder / "config.json", lambda config: config.update(rope_theta=54321.0, rope_scaling=dict(LLAMA3)))
    config = json.loads((folder / "config.json").read_text())
    model = text_model("llama", config["vocab_size"])
    size = {"head_dim": None, "num_key_value_heads": model.args.num_key_value_heads}
    edit(folder / "config.json", lambda config: config.update({**asdict(model.args), **size, "rope_theta": 54321.0}))
    edit(folder / "config.json", lambda config: config.update(rope_scaling=dict(LLAMA3)))
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())))
    before = answer(folder)
    save_as_transformers_5(folder)
    assert answer(folder) == before
    assert load_text(folder)[0].args.rope_theta == 54321.0


def test_the_processor_alone_takes_the_form_of_transformers_5(variant: Callable[..., Path]) -> None:
    folder = variant("qwen3_vl")
    _, before = load_processor(folder)
    save_as_transformers_5(folder)
    _, config = load_processor(folder)
    assert config.image_token_id == before.image_token_id


def test_scaling_of_one_kind_of_layer_is_kept(variant: Callable[..., Path]) -> None:
    """Gemma 3 scales the positions of its full layers, and published files state no base."""
    folder = variant("gemma3", {"rope_scaling": {"rope_type": "linear", "factor": 8.0}})
    assert scales(folder) == {1.0, 1 / 8}
    save_as_transformers_5(folder)
    assert scales(folder) == {1.0, 1 / 8}


def scales(folder: Path) -> set[float]:
    model, _ = load(folder)
    return {layer.self_attn.rope.scale for layer in model.language_model.model.layers}


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("idefics3", "rope_scaling", LINEAR),
        ("smolvlm", "rope_scaling", LLAMA3),
        ("paligemma", "rope_scaling", LINEAR),
        ("lfm2_vl", "rope_scaling", LINEAR),
        ("mistral3", "rope_scaling", LLAMA3),
    ],
)
def test_a_setting_that_the_library_ignores_is_refused(
    variant: Callable[..., Path], name: str, key: str, value: Any
) -> None:
    folder = variant(name, {key: value})
    with pytest.raises(ModelError, match=rf"config\.json sets {key}"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "scaling"),
    [("llava", LINEAR), ("llava_onevision", LINEAR), ("internvl", LLAMA3), ("granite4_vision", LLAMA3)],
)
def test_a_setting_that_the_library_takes_is_not_refused(
    variant: Callable[..., Path], name: str, scaling: Mapping[str, Any]
) -> None:
    folder = variant(name, {"rope_scaling": dict(scaling)})
    edit(folder / "config.json", lambda config: config["text_config"].pop("rope_parameters", None))
    load(folder)


def test_a_base_that_is_not_used_is_refused(variant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = variant("llava", {"rope_theta": 54321.0})
    monkeypatch.setattr("mlx_backends.mlx.mlx_load.library_form", lambda config, file, **_: other_base(config))
    with pytest.raises(ModelError, match="rope_theta"):
        load(folder)


def other_base(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "text_config": {**config["text_config"], "rope_theta": 10_000.0}}


@pytest.mark.parametrize("part", ["vision_tower", "multi_modal_projector"])
def test_a_folder_without_weights_of_its_vision_encoder_is_refused(variant: Callable[..., Path], part: str) -> None:
    folder = variant("llava")
    edit_weights(folder / "model.safetensors", lambda tensors: {k: v for k, v in tensors.items() if part not in k})
    with pytest.raises(ModelError, match=part):
        load(folder)


def test_an_output_layer_that_is_not_used_is_refused(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    load_text(folder)
    edit(folder / "config.json", lambda config: config.update(tie_word_embeddings=True))
    with pytest.raises(ModelError, match="tie_word_embeddings"):
        load_text(folder)
    table = "model.embed_tokens.weight"
    edit_weights(folder / "model.safetensors", lambda tensors: {**tensors, "lm_head.weight": tensors[table]})
    load_text(folder)  # the same values are no contradiction


def test_a_stale_shard_is_refused(variant: Callable[..., Path]) -> None:
    folder = variant("qwen3_vl")
    shutil.copy(folder / "model.safetensors", folder / "model-old.safetensors")
    with pytest.raises(ModelError, match=r"model-old\.safetensors"):
        inspect(folder)


def test_a_tokenizer_of_another_model_is_refused(variant: Callable[..., Path], family: Callable[[str], Path]) -> None:
    folder = variant("qwen3_vl")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {f"another{number}": 400 + number for number in range(1000)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for use in (load, load_processor):
        with pytest.raises(ModelError, match=r"tokenizer\.json"):
            use(folder)


def test_every_place_that_names_an_end_counts(variant: Callable[..., Path]) -> None:
    folder = variant("llava")
    edit(folder / "config.json", lambda config: config.update(eos_token_id=[310]))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 311}))
    model, _ = load(folder)
    assert set(model.config.eos_token_id) == {310, 311}


def test_a_model_without_a_chat_template_says_so(variant: Callable[..., Path]) -> None:
    folder = variant("llava")
    assert not template_remarks(folder)
    edit(folder / "tokenizer_config.json", lambda settings: settings.pop("chat_template"))
    assert template_remarks(folder)


def test_a_model_whose_library_has_its_template_says_nothing(variant: Callable[..., Path]) -> None:
    folder = variant("internvl_chat")
    edit(folder / "tokenizer_config.json", lambda settings: settings.pop("chat_template", None))
    assert not template_remarks(folder)


def test_a_text_model_without_a_chat_template_says_so(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    assert not template_remarks(folder)
    edit(folder / "tokenizer_config.json", lambda settings: settings.pop("chat_template", None))
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    assert template_remarks(folder)


@pytest.mark.parametrize(("stated", "runs"), [("silu", True), ("swish", True), ("gelu", False), ("relu", False)])
def test_an_activation_that_the_library_ignores_is_refused(tmp_path: Path, stated: str, runs: bool) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    edit(folder / "config.json", lambda config: config.update(hidden_act=stated))
    if runs:
        load_text(folder)
        return
    with pytest.raises(ModelError, match="hidden_act"):
        load_text(folder)


@pytest.mark.parametrize(("short", "remarks"), [(1.0, 1), (2.0, 0)])
def test_positions_that_mlx_lm_scales_as_for_long_prompts_are_remarked(short: float, remarks: int) -> None:
    from mlx_lm.models.phi3 import Model, ModelArgs

    scaling = {"type": "longrope", "short_factor": [short] * 8, "long_factor": [2.0] * 8}
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 4}
    arguments = ModelArgs(
        **sizes, model_type="phi3", rms_norm_eps=1e-5, vocab_size=64, num_key_value_heads=4, rope_scaling=scaling
    )
    assert len(position_remarks(Model(arguments), "phi")) == remarks


@pytest.mark.parametrize("change", [{"bits": 8}, {"group_size": 32}, {"bits": 8, "group_size": 32}])
def test_tensors_of_another_quantisation_than_stated_are_refused(tmp_path: Path, change: dict[str, int]) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=True)
    load_text(folder)
    edit(folder / "config.json", lambda config: config["quantization"].update(change))
    edit(folder / "config.json", lambda config: config.pop("quantization_config", None))
    with pytest.raises(ModelError, match="quantization"):
        load_text(folder)


def test_a_mode_that_implies_its_group_agrees_with_the_tensors(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=True)
    model, _ = load_text(folder)
    edit(folder / "config.json", lambda config: config["quantization"].pop("group_size"))
    edit(folder / "config.json", lambda config: config.pop("quantization_config", None))
    check_model(model, folder)


def test_unquantised_tensors_that_are_stated_to_be_quantised_are_refused(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    edit(folder / "config.json", lambda config: config.update(quantization={"bits": 4, "group_size": 64}))
    with pytest.raises(ModelError, match="quantization"):
        load_text(folder)


@pytest.mark.parametrize("kind", ["lm", "vlm"])
@pytest.mark.parametrize(
    ("tensor", "value"),
    [("layers.1.mlp.down_proj", float("nan")), ("embed_tokens", 0.0), ("embed_tokens", float("inf"))],
)
def test_a_model_that_computes_nothing_is_refused(tmp_path: Path, kind: str, tensor: str, value: float) -> None:
    build = build_tiny_lm if kind == "lm" else build_tiny_vlm
    folder = build(tmp_path / "model", TEXTS, quantise=False)
    assert not template_remarks(folder)

    def fill(weights: dict[str, Any]) -> dict[str, Any]:
        part = tensor if kind == "lm" else f"language_model.{tensor}"
        return {n: t * 0 + value if part in n or (value == 0 and "lm_head" in n) else t for n, t in weights.items()}

    edit_weights(folder / "model.safetensors", fill)
    with pytest.raises(ModelError, match="logits"):
        template_remarks(folder)


def test_a_template_whose_control_tokens_the_tokenizer_lacks_is_refused(tmp_path: Path) -> None:
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    assert not template_remarks(folder)
    rewrite_template(folder, lambda text: text.replace("<|im_start|>", "<|start_header_id|>"))
    with pytest.raises(ModelError, match=r"start_header_id.*tokenizer\.json"):
        template_remarks(folder)


def test_a_template_may_write_what_its_tokenizer_reads_as_text(tmp_path: Path) -> None:
    """As those of Llama 2 and Zephyr do, and others in a branch for tools."""
    folder = build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)
    rewrite_template(
        folder,
        lambda text: "{% if tools %}<|start_of_tools|>{% endif %}[INST] <|user|>" + text,
    )
    assert not template_remarks(folder)


def rewrite_template(folder: Path, change: Callable[[str], str]) -> None:
    edit(
        folder / "tokenizer_config.json",
        lambda settings: settings.update(chat_template=change(settings["chat_template"])),
    )


def template_remarks(folder: Path) -> list[str]:
    backend = load_backend(str(folder), lambda media: Path(media.name))
    try:
        return [remark for remark in backend.remarks if "chat template" in remark]
    finally:
        backend.close()
