"""Fusing: a model's folder whose weights contain an adapter, so that any program loads it without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.mlx.adapters.fused_folder import write_record, write_settings
from mlx_backends.mlx.adapters.mlx_adapter import apply_adapter
from mlx_backends.mlx.adapters.requantise import Quantisation, changed_codes, requantise
from mlx_backends.mlx.mlx_load import check_supported, load
from mlx_backends.models.adapter_folder import Adapter, check_base, check_not_fused
from mlx_backends.models.model_discovery import ModelInfo, read_config
from mlx_backends.models.weight_files import weights_digest

GROUP_SIZE = 64
_SMALLEST_GROUP = 32
"""The smallest group of weights that MLX quantises with a scale and a zero point."""

CODES = "codes changed"
"""The key of a fused model's record with the number of codes that fusing changed, and the number of all."""
BITS, DEQUANTISED, LAYOUT = "bits", "dequantised", "layout"
"""The keys of a fused model's record with the options that it was made with."""


@dataclass(frozen=True, slots=True)
class FuseOptions:
    """Weights of a fused model: of ``bits`` bits, or unquantised if ``dequantise``; as the base's by default.

    The layout ``hf`` is Hugging Face's, in which weights are always unquantised.
    """

    bits: int | None = None
    dequantise: bool = False
    layout: Literal["mlx", "hf"] = "mlx"


def fuse_record(model: ModelInfo, adapter: Adapter, options: FuseOptions) -> dict[str, Any]:
    """Return what identifies a fused model in its record."""
    return {
        "model": model.name,
        "weights digest": weights_digest(model.path),
        "adapter": adapter.name,
        "adapter digest": adapter.digest,
        BITS: options.bits,
        DEQUANTISED: options.dequantise,
        LAYOUT: options.layout,
    }


def check_fusable(model: ModelInfo, adapter: Adapter) -> None:
    """Raise ModelError if ``adapter`` cannot be fused into ``model``, as far as the files tell without loading any weights.

    It may be of another model or of weights of other bits, be fused into these already, or have a format that is not fused.
    """
    check_not_fused(adapter, model.name, model.path)
    check_base(adapter, model.name, weights_digest(model.path))
    if adapter.is_legacy:
        raise ModelError(f"the adapter {adapter.name} is in the format of mlx-vlm before 0.6, which cannot be fused.")
    own, bits = adapter.base_quantisation, model.quantisation or ""
    if own and "-bit" in bits and "mixed" not in bits and own.partition(" ")[0] != bits.partition(" ")[0]:
        raise ModelError(
            f"the adapter {adapter.name} was trained on {own} weights, and {model.name} has {bits}; name the model that it was "
            "trained on, or an unquantised one."
        )


def fuse(model: ModelInfo, adapter: Adapter, target: Path, options: FuseOptions) -> dict[str, Any]:
    """Write ``model`` with ``adapter`` in its weights to the new folder ``target``; return what its record says.

    Raises ModelError if the adapter is of another model, or is fused into it already, or the quantisation cannot be as asked;
    then nothing is written.
    """
    check_supported(model.path)
    check_fusable(model, adapter)
    record, config = fuse_record(model, adapter, options), read_config(model.path)
    loaded, _ = load(model.path)
    apply_adapter(loaded, adapter, model.name)
    try:
        with contained():
            codes = fuse_layers(loaded, options)
            config = _quantised(loaded, config, model.name, options)
    except ModelError:
        raise
    except Exception as error:  # a quantisation unlike any known can raise anything
        raise ModelError(f"{model.name} could not be fused: {one_line(error)}") from error
    with contained():
        from mlx_vlm.utils import save_weights

        save_weights(target, loaded, donate_weights=True)
    write_settings(model.path, config, target)
    return write_record(model, adapter, record | ({CODES: codes} if codes[1] else {}), target)


def fuse_layers(model: Any, options: FuseOptions) -> tuple[int, int]:
    """Replace each layer with an adapter by its sum; return how many codes of quantised ones that changed, and of how many."""
    import mlx.core as mx
    from mlx.utils import tree_unflatten

    changed = count = 0
    for name, layer in [*model.named_modules()]:
        if not hasattr(layer, "lora_a"):
            continue
        base = layer.linear if hasattr(layer, "linear") else layer.embedding
        before = Quantisation.of(base)
        fused = _sum(layer, base)
        if before is not None and not options.dequantise:
            if options.bits in (None, before.bits):
                fused = requantise(fused, base, layer.lora_a, before)
                layer_changed, layer_count = changed_codes(base, fused)
                changed, count = changed + layer_changed, count + layer_count
            else:
                fused = Quantisation(max(before.group_size, _SMALLEST_GROUP), options.bits, "affine").apply(fused)
        fused.set_dtype(_dtype(base))
        mx.eval(fused.parameters())
        model.update_modules(tree_unflatten([(name, fused)]))
    return changed, count


def _sum(layer: Any, base: Any) -> Any:
    """Return the unquantised layer that computes as ``layer``, with the sum of ``base`` and its adapter in 32 bits.

    In 16 bits, a weight's last place is larger than many an adapter's change.
    """
    import mlx.core as mx

    parts = {name: base[name] for name in ("weight", "scales", "biases") if name in base}
    base.update(
        {name: part.astype(mx.float32) for name, part in parts.items() if mx.issubdtype(part.dtype, mx.floating)}
    )
    try:
        return layer.fuse(dequantize=True)
    finally:
        base.update(parts)


def _dtype(layer: Any) -> Any:
    """Return the type of a layer's weights, unquantised; bfloat16 for a quantisation whose scales do not tell it."""
    import mlx.core as mx

    parts = (layer[name] for name in ("scales", "weight") if name in layer)
    return next((part.dtype for part in parts if mx.issubdtype(part.dtype, mx.floating)), mx.bfloat16)


def _quantised(model: Any, config: dict[str, Any], name: str, options: FuseOptions) -> dict[str, Any]:
    """Quantise or dequantise ``model`` as asked; return the configuration that says so."""
    from mlx_vlm.quant_utils import quantize_model
    from mlx_vlm.trainer.peft.utils import dequantize
    from mlx_vlm.utils import skip_multimodal_module

    plain = {key: value for key, value in config.items() if key not in ("quantization", "quantization_config")}
    if options.dequantise:
        dequantize(model)
        if left := [layer for layer, _ in _quantised_layers(model)]:
            raise ModelError(f"{left[0]!r} of {name} cannot be dequantised; leave --dequantise out.")
        return plain
    layers = {layer: settings.to_json() for layer, settings in _quantised_layers(model)}
    if layers and options.bits is None and "quantization" in config:
        return config
    if layers:  # in other bits, or the adapter was trained on a base quantised for it
        default = next((settings for settings in layers.values() if settings["bits"] == options.bits), None)
        quantisation = {**(default or next(iter(layers.values()))), **layers}
        return {**plain, "quantization": quantisation, "quantization_config": quantisation}
    if options.bits is None:
        return config
    own_predicate = getattr(model, "quant_predicate", None)

    def predicate(path: str, module: Any) -> Any:
        if skip_multimodal_module(path):
            return False
        return True if own_predicate is None else own_predicate(path, module)

    _, changed = quantize_model(model, config, GROUP_SIZE, options.bits, quant_predicate=predicate)
    return dict(changed)


def _quantised_layers(model: Any) -> Iterator[tuple[str, Quantisation]]:
    for name, layer in model.named_modules():
        if settings := Quantisation.of(layer):
            yield name, settings
