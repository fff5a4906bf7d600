"""Fusing: a model's folder whose weights contain an adapter, so that any program loads it without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.isolation import contained
from mlx_backends.mlx.adapter import apply_adapter
from mlx_backends.mlx.fused_folder import write_record, write_settings
from mlx_backends.mlx.load import check_supported, load
from mlx_backends.models.adapters import Adapter, check_base
from mlx_backends.models.discovery import ModelInfo, read_config
from mlx_backends.models.weights import weights_digest

GROUP_SIZE = 64


def fuse(
    model: ModelInfo, adapter: Adapter, target: Path, *, bits: int | None = None, dequantise: bool = False
) -> None:
    """Write ``model`` with ``adapter`` in its weights to the new folder ``target``.

    The result has the quantisation of the model, ``bits`` bits where that has none, or none with ``dequantise``. Raises
    ModelError if the adapter is of another model, or the quantisation cannot be as asked; then nothing is written.
    """
    from mlx_vlm.utils import save_weights

    check_supported(model.path)
    digest, config = weights_digest(model.path), read_config(model.path)
    check_base(adapter, model.name, digest)
    if adapter.is_legacy:
        raise ModelError(f"the adapter {adapter.name} is in the format of mlx-vlm before 0.6, which cannot be fused.")
    loaded, _ = load(model.path)
    apply_adapter(loaded, adapter, model.name)
    try:
        with contained():
            _fuse_layers(loaded, dequantise)
            config = _quantised(loaded, config, model.name, bits, dequantise)
    except ModelError:
        raise
    except Exception as error:  # a quantisation unlike any known can raise anything
        raise ModelError(f"{model.name} could not be fused: {one_line(error)}") from error
    with contained():
        save_weights(target, loaded, donate_weights=True)
    write_settings(model.path, config, target)
    write_record(model, digest, adapter, target)


def _fuse_layers(model: Any, dequantise: bool) -> None:
    from mlx.utils import tree_unflatten

    layers = [
        (name, layer.fuse(dequantize=dequantise)) for name, layer in model.named_modules() if hasattr(layer, "lora_a")
    ]
    model.update_modules(tree_unflatten(layers))


def _quantised(model: Any, config: dict[str, Any], name: str, bits: int | None, dequantise: bool) -> dict[str, Any]:
    """Quantise or dequantise ``model`` as asked; return the configuration that says so."""
    from mlx_vlm.quant_utils import quantize_model
    from mlx_vlm.trainer.peft.utils import dequantize
    from mlx_vlm.utils import skip_multimodal_module

    if dequantise:
        dequantize(model)
        if left := [layer for layer, _ in _quantised_layers(model)]:
            raise ModelError(f"{left[0]!r} of {name} cannot be dequantised; leave --dequantise out.")
        return {key: value for key, value in config.items() if key not in ("quantization", "quantization_config")}
    layers = {
        layer: {"group_size": module.group_size, "bits": module.bits, "mode": getattr(module, "mode", "affine")}
        for layer, module in _quantised_layers(model)
    }
    if layers and bits is not None and {settings["bits"] for settings in layers.values()} != {bits}:
        raise ModelError(
            f"{name} is quantised already, not in {bits} bits; leave --bits out, or fuse the original model."
        )
    if bits is None and layers and "quantization" not in config:  # the adapter was trained on a base quantised for it
        quantisation = {**next(iter(layers.values())), **layers}
        return {**config, "quantization": quantisation, "quantization_config": quantisation}
    if bits is None or layers:
        return config
    own_predicate = getattr(model, "quant_predicate", None)

    def predicate(path: str, module: Any) -> Any:
        if skip_multimodal_module(path):
            return False
        return True if own_predicate is None else own_predicate(path, module)

    _, changed = quantize_model(model, config, GROUP_SIZE, bits, quant_predicate=predicate)
    return dict(changed)


def _quantised_layers(model: Any) -> Iterator[tuple[str, Any]]:
    for name, layer in model.named_modules():
        if hasattr(layer, "bits") and hasattr(layer, "group_size"):
            yield name, layer
