"""Loading of vision-language models into PyTorch through transformers, from their folders alone, without running code in them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.models.broken_file_advice import fetch_again
from mlx_backends.models.config_forms import library_form
from mlx_backends.models.model_discovery import model_name, read_config
from mlx_backends.models.model_folder_check import check_tokens
from mlx_backends.models.tokenizer_limits import check_tokenizer
from mlx_backends.pytorch.torch_weights import compute_dtype, convert_weights, is_mlx_format, mlx_quantisation

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
NF4 = "nf4"


def load(path: Path, device: str, precision: str | None = None) -> tuple[Any, Any]:
    """Return the model and the processor of folder ``path``, on ``device`` ("cuda", "mps" or "cpu").

    ``precision`` is "bf16", "fp16", "fp32", or "nf4" (bitsandbytes, on CUDA); None is the type that the weights are stored
    in, or are scaled by where MLX quantised them. Nothing is fetched. Raises ModelError where it cannot be loaded.
    """
    if "mlx_vlm" in sys.modules:
        raise ModelError(
            "mlx-vlm is loaded already, and it changes transformers for the whole process; "
            "use the PyTorch model in a separate run or judgement."
        )
    config = read_config(path)
    check_supported(path, config)
    library_form(config, path / "config.json")  # transformers reads both forms, and nothing of contradictions
    check_tokens(path, config, check_tokenizer(path))
    try:
        with contained():
            from transformers.utils import logging

            logging.set_verbosity_error()
            logging.disable_progress_bar()
            return _model(path, config, device, precision), load_processor(path, config["model_type"])
    except ModelError as error:
        raise ModelError(f"{model_name(path)}: {error}") from error
    except Exception as error:  # a malformed folder can make these libraries raise anything
        raise ModelError(f"{model_name(path)} could not be loaded into PyTorch: {one_line(error)}") from error


def check_supported(path: Path, config: Mapping[str, Any]) -> None:
    """Raise ModelError where transformers has no vision-language model of that type without code from a model's folder."""
    with contained():
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN
        from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in KNOWN or not PROCESSOR_MAPPING_NAMES.get(kind):
        raise ModelError(
            f"{model_name(path)} is of type {kind!r}, which transformers {version('transformers')} does not know by itself; "
            "name a version of the model that it knows (often ORG/NAME-hf), or run it through mlx-vlm."
        )


def _model(path: Path, config_json: Mapping[str, Any], device: str, precision: str | None) -> Any:
    import torch

    torch.backends.cudnn.allow_tf32 = False  # fp32 must mean fp32
    mlx = is_mlx_format(path, config_json)
    kind, config = _class(config_json)
    dtype = getattr(torch, DTYPES.get(precision or "", compute_dtype(path)))
    settings: dict[str, Any] = {"dtype": dtype, "output_loading_info": True}
    if precision == NF4:
        settings |= _nf4(device, mlx)
    if mlx:
        shapes = {name: value.shape for name, value in empty_model(config_json).state_dict().items()}
        settings["state_dict"] = convert_weights(path, config_json, shapes)
    model, report = kind.from_pretrained(
        None if mlx else str(path), config=config, local_files_only=True, use_safetensors=True, **settings
    )
    problems = [*report["missing_keys"], *report["mismatched_keys"], *report["error_msgs"]]
    if problems:
        raise ModelError(
            f"its folder lacks weights that PyTorch needs ({str(problems[0])[:120]}); fetch the whole model."
        )
    if (scale := getattr(config.get_text_config(), "logit_scale", None)) and kind.__name__.startswith("AyaVision"):
        # transformers leaves out what Cohere's language model multiplies its logits by
        model.lm_head.register_forward_hook(lambda _, __, logits: logits * scale)
    return (model if precision == NF4 else model.to(device)).eval()


def empty_model(config_json: Mapping[str, Any]) -> Any:
    """Return the model that a folder's configuration describes, with the shapes of its weights and no memory for them."""
    import torch

    kind, config = _class(config_json)
    with torch.device("meta"):
        return kind(config)


def _class(config_json: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return transformers' class of model and its configuration, without MLX's quantisation."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN

    left_out = ("quantization", "quantization_config") if mlx_quantisation(config_json) else ()
    config = CONFIG_MAPPING[config_json["model_type"]].from_dict(
        {k: v for k, v in config_json.items() if k not in left_out}
    )
    return getattr(transformers, KNOWN[config_json["model_type"]]), config


def _nf4(device: str, mlx: bool) -> dict[str, Any]:
    """Return the settings with which transformers quantises to NF4 while loading. Raises ModelError where that is impossible."""
    import torch
    from transformers import BitsAndBytesConfig

    if device != "cuda":
        raise ModelError("nf4 is computed by bitsandbytes on an NVIDIA GPU, and PyTorch sees none; leave @nf4 out.")
    if mlx:
        raise ModelError("nf4 needs the original weights, and these were converted for MLX; name the original model.")
    for needed in ("bitsandbytes", "accelerate"):
        try:
            version(needed)
        except PackageNotFoundError as error:
            raise ModelError(f"nf4 needs {needed}; `pip install 'rashomon[nf4]'`, or leave @nf4 out.") from error
    settings = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.bfloat16}
    return {"quantization_config": BitsAndBytesConfig(**settings), "dtype": torch.bfloat16, "device_map": device}


def load_processor(path: Path, kind: str) -> Any:
    """Return transformers' own processor for models of type ``kind``, with images prepared by PIL, as mlx-vlm does it.

    Without torchvision there is no video processor, and a stand-in that takes no video replaces it.
    """
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    base: Any = getattr(transformers, PROCESSOR_MAPPING_NAMES[kind])

    def part(attribute: str) -> Any:
        if "tokenizer" in attribute:
            return transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        if "image_processor" in attribute:
            return _image_processor(path, kind)
        if "video" in attribute:
            return _NoVideo()
        return transformers.AutoFeatureExtractor.from_pretrained(path, local_files_only=True)

    class Processor(base):  # type: ignore[misc]
        @classmethod
        def _get_arguments_from_pretrained(cls, *_: Any, **__: Any) -> list[Any]:
            return [part(attribute) for attribute in base.get_attributes()]

        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            own = type(argument).__module__.startswith("mlx_backends.")
            return type(argument) if own else super().check_argument_for_proper_class(name, argument)

    Processor.__name__ = base.__name__
    return Processor.from_pretrained(path, local_files_only=True)


def _image_processor(path: Path, kind: str) -> Any:
    """Return the image processor with the folder's settings: transformers' class for PIL where there is one."""
    import transformers
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
    from transformers.utils import is_torchvision_available

    settings = _settings(path, "preprocessor_config.json")
    settings |= _settings(path, "processor_config.json").get("image_processor") or {}
    class_name = str(settings.pop("image_processor_type", "")).removesuffix("Fast").removesuffix("Pil")
    class_names = IMAGE_PROCESSOR_MAPPING_NAMES.get(kind) or {}
    settings = {key: value for key, value in settings.items() if key not in ("processor_class", "auto_map")}
    for name in (f"{class_name}Pil", class_names.get("pil")):
        if name and hasattr(transformers, name):
            return getattr(transformers, name)(**settings)
    if kind == "lfm2_vl":
        from mlx_backends.pytorch.lfm2_images import Lfm2VLImageProcessor

        return Lfm2VLImageProcessor(**settings)
    if not is_torchvision_available():
        raise ModelError("transformers needs torchvision for this model's images; `pip install torchvision`.")
    return getattr(transformers, class_names["torchvision"])(**settings)


def _settings(path: Path, name: str) -> dict[str, Any]:
    file = path / name
    try:
        settings = read_json_file(file) if file.is_file() else {}
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{file} cannot be read as JSON; {fetch_again(file)}.") from error
    return settings if isinstance(settings, dict) else {}


class _NoVideo(dict[str, Any]):
    """Stand-in for a video processor, which transformers has only with torchvision; as a dictionary it can be printed."""

    model_input_names: tuple[str, ...] = ()
    merge_size = temporal_patch_size = 2
    slice_mode, downsample_mode = False, ""
