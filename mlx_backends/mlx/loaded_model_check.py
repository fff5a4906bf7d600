"""Check that a loaded model computes with what its folder says.

Libraries ignore settings that they do not know and take defaults of their own. So the model object is asked, not the library's
reading of the file. What cannot be read off the object is not judged.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Message, Request, Text
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault, out_of_memory
from mlx_backends.models.broken_file_advice import fetch_again
from mlx_backends.models.config_forms import UNSCALED, library_form, scaling_kind
from mlx_backends.models.model_discovery import model_name, read_config
from mlx_backends.models.model_folder_check import HEAD
from mlx_backends.models.request_memory import text_config
from mlx_backends.models.weight_files import tensor_shapes, weight_files

_log = logging.getLogger("rashomon.models")

_CLOSE = 1e-3
_EMBEDDING = re.compile(r"^(?!.*(vision|visual|audio)).*(^|\.)(embed_tokens|wte)\.weight$")
_SOUND = re.compile(r"audio|sound|speech")


def check_model(model: Any, path: Path) -> None:
    """Raise ModelError where ``model``, loaded from the folder ``path``, does not compute with what the folder says.

    Compared are the base and the scaling of RoPE, the epsilon of its norms, the sliding window, the activation, the
    output layer, the quantisation, and for a vision-language model whether it has all its parts.
    """
    file = path / "config.json"
    config = read_config(path)
    settings = text_config(library_form(config, file), with_defaults=False)
    language = getattr(model, "language_model", model)
    if language is not model:
        _check_parts(model, path)
    _check_rope(language, settings, file)
    _check_epsilon(language, settings, file)
    _check_window(language, settings, file)
    _check_activation(language, settings, file)
    _check_output_layer(model, path)
    _check_quantisation(model, config, file)


def check_output(logits: Callable[[Request], Any], model: str) -> None:
    """Raise ModelError where ``model`` computes nothing: logits that are not numbers, or are the same for every token.

    ``logits`` returns those after the prompt of a request, as a NumPy array; for one that cannot be asked nothing is judged.
    """
    request = Request("output", 0, (Message("user", (Text("How many apples were sold?"),)),), Decoding(max_tokens=1))
    try:
        values = logits(request)
    except Exception as error:
        if metal_fault(error) is not None or out_of_memory(error):
            raise
        _log.warning("the output of %s could not be checked: %s", model, one_line(error))
        return
    if not np.isfinite(values.max()) or values.max() == values.min():
        what = "are the same for every token" if np.isfinite(values.max()) else "are not numbers"
        raise ModelError(
            f"{model} computes nothing: its logits {what}, so its weights are damaged or were converted wrongly; fetch the "
            "model again, or choose another version of it."
        )


def position_remarks(model: Any, name: str) -> tuple[str, ...]:
    """Return a sentence for readers of the answers of ``name`` where mlx-lm scales positions otherwise than LongRoPE does.

    transformers takes ``short_factor`` for prompts up to the original length, ``long_factor`` beyond; mlx-lm always the latter.
    """
    scaling = getattr(getattr(model, "args", None), "rope_scaling", None) or {}
    for _, module in model.named_modules():
        if type(module).__name__ == "SuScaledRoPE" and scaling.get("short_factor") != scaling.get("long_factor"):
            return (
                f"mlx-lm scales the positions of {name} as for prompts beyond {module.original_max_position_embeddings:,} "
                "tokens at every length (LongRoPE), so its answers to shorter ones are not quite the model's own.",
            )
    return ()


def _check_parts(model: Any, path: Path) -> None:
    """Raise ModelError for parts that mlx-vlm removed for want of weights; without sounds a model still sees."""
    try:
        whole = type(model)(model.config)  # lazy: no memory is taken for its weights
    except Exception:  # a constructor may change its configuration
        return
    missing = [name for name in whole.children() if name not in model.children() and not _SOUND.search(name)]
    if missing:
        raise ModelError(
            f"{path} holds no weights for {missing[0]!r}, although config.json describes it, so the model cannot see; fetch "
            "the whole model."
        )


# --- RoPE -------------------------------------------------------------------------------------------


def _check_rope(language: Any, settings: Mapping[str, Any], file: Path) -> None:
    """Raise ModelError where the scaling, or the base of RoPE that is unscaled or scaled linearly, is nowhere in use."""
    angles = [angles for part in _parts(language) if (angles := _angles(part)) is not None and len(angles) > 1]
    scaling = settings.get("rope_scaling")
    scaling = scaling if isinstance(scaling, Mapping) else {}
    kind, factor = scaling_kind(scaling), scaling.get("factor")
    if not angles:
        return
    if kind in ("linear", "llama3", "yarn") and isinstance(factor, int | float) and factor != 1:
        used = {"linear": lambda turn: _is_close(turn[0], 1 / factor)}.get(kind, lambda turn: not _is_plain(turn))
        _require(any(map(used, angles)), file, "rope_scaling", dict(scaling))
    base = settings.get("rope_theta") or settings.get("rope_global_base_freq")
    if isinstance(base, int | float) and (kind == "linear" or kind in UNSCALED):
        _require(any(_has_base(turn, base) for turn in angles), file, "rope_theta", base)


def _parts(language: Any) -> Iterator[Any]:
    """Yield every module of ``language``, and what the libraries hold in them besides."""
    for _, module in language.named_modules():
        yield module
        yield from (value for value in vars(module).values() if type(value).__module__.startswith("mlx_"))


def _angles(part: Any) -> Any:
    """Return the angle by which a position turns each pair of numbers, in float64s; None for a part that turns none."""
    for name in ("_inv_freq", "inv_freq"):
        if hasattr(getattr(part, name, None), "shape"):
            return np.array(getattr(part, name), np.float64).ravel()
    if hasattr(getattr(part, "_freqs", None), "shape"):
        return 1 / np.array(part._freqs, np.float64).ravel()
    base, dims = getattr(part, "base", None), getattr(part, "dims", None)
    if type(part).__name__ == "RoPE" and isinstance(base, int | float) and isinstance(dims, int):
        return base ** (-np.arange(0, dims, 2) / dims) * part.scale
    return None


def _has_base(angles: Any, base: float) -> bool:
    """Return whether ``angles`` are those of RoPE with this base; those of pairs that are not turned are 0."""
    turned = np.flatnonzero(angles)
    return _is_close(angles[turned] / angles[0], float(base) ** (-turned / len(angles)))


def _is_plain(angles: Any) -> bool:
    """Return whether ``angles`` are those of RoPE with any base and no scaling: a geometric series from 1."""
    return _is_close(angles, angles[1] ** np.arange(len(angles)))


def _is_close(value: Any, other: Any) -> bool:
    return bool(np.allclose(value, other, rtol=_CLOSE, atol=0))


# --- other settings ---------------------------------------------------------------------------------


def _check_epsilon(language: Any, settings: Mapping[str, Any], file: Path) -> None:
    """Compare the epsilon of norms, by the name that the library has for it: a file may hold that of another family too."""
    used = {module.eps for _, module in language.named_modules() if isinstance(getattr(module, "eps", None), float)}
    for key in ("rms_norm_eps", "norm_eps"):
        stated = settings.get(key)
        if isinstance(stated, float) and used and list(_read(language, key)):
            _require(any(math.isclose(stated, value, rel_tol=_CLOSE) for value in used), file, key, stated)


def _check_activation(language: Any, settings: Mapping[str, Any], file: Path) -> None:
    """Raise ModelError for an activation of another kind than the type's own where the library does not read the key.

    The forms of GELU are not told apart: published folders of Gemma name one and were trained with another.
    """
    from transformers import CONFIG_MAPPING

    stated, kind = settings.get("hidden_act"), settings.get("model_type")
    if not isinstance(stated, str) or kind not in CONFIG_MAPPING or list(_read(language, "hidden_act")):
        return
    usual = getattr(CONFIG_MAPPING[kind](), "hidden_act", None)
    if isinstance(usual, str):
        _require(_activation(stated) == _activation(usual), file, "hidden_act", stated)


def _activation(name: str) -> str:
    return "gelu" if "gelu" in name else {"swish": "silu"}.get(name, name)


def _check_window(language: Any, settings: Mapping[str, Any], file: Path) -> None:
    stated = settings.get("sliding_window")
    if isinstance(stated, int) and settings.get("use_sliding_window") is not False:
        used = [value for value in _read(language, "sliding_window") if value is not None]
        _require(all(value == stated for value in used), file, "sliding_window", stated)


def _read(language: Any, key: str) -> Iterator[Any]:
    """Yield the value of ``key`` in each configuration that the library made of the file."""
    for name in ("config", "args"):
        read = text_config(getattr(language, name, None))
        if hasattr(read, key):
            yield getattr(read, key)


def _check_output_layer(model: Any, path: Path) -> None:
    """Raise ModelError where the files hold an output layer of their own, and the model uses the embedding instead."""
    from mlx.utils import tree_flatten

    if any(HEAD.search(name) for name, _ in tree_flatten(model.parameters())):
        return
    holders = {name: file for file in weight_files(path) for name in tensor_shapes(file)}
    head = next(filter(HEAD.search, holders), None)
    embedding = next(filter(_EMBEDDING.search, holders), None)
    if head is None or embedding is None:
        return
    import mlx.core as mx

    output, table = (_tensor(holders[name], name) for name in (head, embedding))
    if output.shape == table.shape and output.dtype == table.dtype and not mx.array_equal(output, table):
        raise ModelError(
            f"by {path / 'config.json'} (tie_word_embeddings) the embedding is the output layer too, and {holders[head].name} "
            f"holds another one, {head!r}; correct the file, or {fetch_again(path / 'config.json')}."
        )


def _check_quantisation(model: Any, config: Mapping[str, Any], file: Path) -> None:
    """Raise ModelError where the tensors have other bits or groups than the file says; mlx-lm goes by the tensors."""
    stated = config.get("quantization") or config.get("quantization_config")
    if not isinstance(stated, Mapping) or not isinstance(stated.get("bits"), int) or "quant_method" in stated:
        return
    entries = [stated, *({**stated, **layer} for layer in stated.values() if isinstance(layer, Mapping))]
    modules = [
        module for _, module in model.named_modules() if hasattr(module, "bits") and hasattr(module, "group_size")
    ]
    used = {(module.bits, module.group_size) for module in modules}
    stated_sizes = {(entry.get("bits"), entry.get("group_size")) for entry in entries}
    # A mode such as mxfp4 implies its group.
    if not used or any(not {(bits, group), (bits, None)} & stated_sizes for bits, group in used):
        held = (
            " and ".join(f"{bits} bits in groups of {group}" for bits, group in sorted(used)) or "unquantised tensors"
        )
        raise ModelError(
            f"{file} says that the weights have {stated['bits']} bits in groups of {str(stated.get('group_size'))[:20]} "
            f"(quantization), and they are {held}; correct the file, or {fetch_again(file)}."
        )


def _tensor(file: Path, name: str) -> Any:
    import mlx.core as mx

    tensors: Any = mx.load(str(file))
    return tensors[name]


def _require(holds: bool, file: Path, key: str, stated: Any) -> None:
    if not holds:
        raise ModelError(
            f"{file} sets {key} to {str(stated)[:100]}, and the library that computes {model_name(file.parent)} ignores it; "
            "its answers would be wrong, so choose another model, or cuda:MODEL@cpu for PyTorch."
        )
