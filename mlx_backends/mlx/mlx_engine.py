"""MLX as an engine: a folder, or a Hub id in the Hugging Face cache, answers through mlx-vlm or mlx-lm."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.media.media_decoder import start_decoder
from benchmarks.vocabulary import Modality
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.core.error_text import one_line
from mlx_backends.core.prompts.template_process import start_renderer
from mlx_backends.mlx.patches import patch_names
from mlx_backends.models.adapter_folder import (
    Adapter,
    adapted_quantisation,
    check_base,
    check_outputs,
    fused_digests,
    read_adapter,
    split_adapter,
    training_records,
    with_adapter_name,
)
from mlx_backends.models.context_length import context_length
from mlx_backends.models.memory_and_cache_sizes import memory_fit, required_memory
from mlx_backends.models.model_discovery import ModelInfo, inspect, read_config, resolve, revision
from mlx_backends.models.model_types import folder_problem
from mlx_backends.models.request_memory import head_size, kv_group_size
from mlx_backends.models.weight_files import weight_files, weights_digest
from mlx_backends.options import LoadOptions

_LIBRARIES = ("mlx", "transformers")  # and the engine itself


class MLXEngine(Engine):
    """Models of this machine. Describing one neither loads it nor imports MLX."""

    def describe(self, model: str) -> EngineInfo:
        info = inspect(resolve(model))
        if reason := folder_problem(info.path, read_config(info.path), is_vision_language=info.engine == "mlx-vlm"):
            raise ModelError(f"{info.name} {reason}")
        return _describe(info, _adapter(model))

    def modalities(self, model: str) -> tuple[Modality, ...]:
        return inspect(resolve(model)).takes

    def engine_name(self, model: str) -> str:
        return inspect(resolve(model)).engine

    def training_records(self, model: str) -> Sequence[Mapping[str, Any]]:
        return training_records(resolve(model), split_adapter(model)[1])

    def import_libraries(self, model: str) -> None:
        model_info = inspect(resolve(model))
        _start_processes(model_info)
        from mlx_backends.mlx.mlx_load import import_libraries

        import_libraries(model_info.engine)

    def required_memory(self, model: str) -> int:
        return required_memory(_weights_bytes(inspect(resolve(model)), _adapter(model)))

    def available_memory(self, model: str) -> int:
        from mlx_backends.models.memory_and_cache_sizes import device_info

        return memory_fit(0, device_info()).available

    def check_kv_bits(self, model: str, bits: int) -> None:
        info = inspect(resolve(model))
        size = head_size(read_config(info.path), is_full=True)
        if size is not None and kv_group_size(size) is None:
            raise ModelError(
                f"the key-value cache of {info.name} cannot be quantised, because its heads have {size} numbers, "
                "not a multiple of 32; remove kv_bits."
            )

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        """Load ``model``. Raises ModelError for one that cannot be loaded, or does not fit in memory without ``force``."""
        model_info, adapter = inspect(resolve(model)), _adapter(model)
        _start_processes(model_info)
        from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery
        from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
        from mlx_backends.mlx.mlx_load import check_supported, check_text_supported
        from mlx_backends.models.memory_and_cache_sizes import device_info

        has_vision = model_info.engine == "mlx-vlm"
        (check_supported if has_vision else check_text_supported)(model_info.path)
        fit = memory_fit(_weights_bytes(model_info, adapter), device_info())
        if not fit.ok and not options.force:
            raise ModelError(
                f"{model_info.name} was not loaded: {fit.sentence}; "
                "choose a smaller quantisation, or add --force to load it anyway."
            )
        MemoryLimits.here().set()
        return FaultRecovery().repeat(lambda: _load(model_info, adapter, media, options))


def _start_processes(model: ModelInfo) -> None:
    """Start the processes that render templates and decode images; they import their libraries while this one does."""
    start_renderer()
    if "image" in model.takes:
        start_decoder()


def _adapter(model: str) -> Adapter | None:
    """Return the adapter that the name ``model`` contains, None without one. Raises ModelError as :func:`read_adapter`."""
    _, folder = split_adapter(model)
    return None if folder is None else read_adapter(folder)


def _weights_bytes(model: ModelInfo, adapter: Adapter | None) -> int:
    return model.weights_bytes + (adapter.weights_bytes if adapter else 0)


def _load(model: ModelInfo, adapter: Adapter | None, media: MediaPath, options: LoadOptions) -> Backend:
    from mlx_backends.mlx.adapters.mlx_adapter import apply_adapter
    from mlx_backends.mlx.kv_quantization import check_quantized_cache
    from mlx_backends.mlx.lm_backend import LMBackend
    from mlx_backends.mlx.loaded_model_check import check_output
    from mlx_backends.mlx.mlx_load import load, load_text
    from mlx_backends.mlx.vlm_backend import QUEUE_FACTOR, VLMBackend

    has_vision = model.engine == "mlx-vlm"
    context = context_length(read_config(model.path))
    info, width, kv_bits = _describe(model, adapter), options.max_in_flight, options.kv_bits
    loaded_model = (load if has_vision else load_text)(model.path)
    if adapter is not None:
        apply_adapter(loaded_model[0], adapter, model.name)
    if kv_bits is not None:
        check_quantized_cache(info.model, *loaded_model, has_vision=has_vision)
    try:
        if has_vision:
            width = width and max(1, width // QUEUE_FACTOR)
            backend: VLMBackend | LMBackend = VLMBackend(
                info, media, *loaded_model, width=width, kv_bits=kv_bits, adapter=adapter, context=context
            )
        else:
            backend = LMBackend(info, *loaded_model, width=width, kv_bits=kv_bits, context=context)
    except Exception as error:  # a processor or template unlike any other
        raise ModelError(f"{model.name} was loaded but cannot be asked: {one_line(error)}") from error
    check_output(backend.first_logits, model.name)
    return backend


def _describe(model: ModelInfo, adapter: Adapter | None) -> EngineInfo:
    """Return the engine that answers with ``adapter``. Raises ModelError if that is of another model."""
    patches = patch_names(str(read_config(model.path).get("model_type"))) if model.engine == "mlx-vlm" else ""
    weights = weights_digest(model.path)
    if adapter is not None:
        if model.engine != "mlx-vlm":
            raise ModelError(f"{model.name} is a text-only model; adapters are for vision-language models.")
        check_base(adapter, model.name, weights)
        check_outputs(adapter, model.name, weight_files(model.path))
    fused, base_weights = (None, None) if adapter else fused_digests(model.path)
    return EngineInfo(
        engine=model.engine,
        model=with_adapter_name(model.name, adapter),
        revision=revision(model.path),
        weights=weights,
        quantisation=adapted_quantisation(model.quantisation, adapter),
        adapter=adapter.digest if adapter else fused,
        base_weights=base_weights,
        device=_device(),
        versions={name: _version(name) for name in sorted({*_LIBRARIES, model.engine})}
        | ({"patches": patches} if patches else {}),
        weights_bytes=model.weights_bytes,
        takes=model.takes,
    )


def _device() -> str:
    """Return the device that MLX computes on by default, from what is installed."""
    if sys.platform == "darwin":
        return "metal"
    return "cuda" if any(_version(name) != "none" for name in ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13")) else "cpu"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
