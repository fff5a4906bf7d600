"""Short names of models, quantisations and benchmarks, as lists of runs show them: ``qwen3-vl-4b``, ``4bit``, ``cmc``."""

from __future__ import annotations

import re

from mlx_backends.models.adapter_folder import adapter_name, split_adapter
from mlx_backends.pytorch.torch_names_and_devices import split_name

_VARIANT = r"instruct|it|mlx|gguf"
_FORMAT = r"(?:mx|nv)?(?:fp|bf|int|q)\d+|\d+-?bits?|awq|gptq"
_VARIANTS = re.compile(rf"(?:[-_.](?:{_VARIANT}))+$")
_VARIANTS_AND_FORMATS = re.compile(rf"(?:[-_.](?:{_VARIANT}|{_FORMAT}))+$")
_BITS = re.compile(r"[\d./]+-?bits?|[a-z]+\d+", re.IGNORECASE)


def short_model(model: str, quantisation: str = "") -> str:
    """Return a model's name without its owner or folder, ``-Instruct``, and the format that ``quantisation`` says."""
    prefix, base, options = split_name(model)
    base, adapter = split_adapter(base)
    name = (prefix + base + options).rstrip("/").rpartition("/")[2].removeprefix("policy:").lower()
    name = (_VARIANTS_AND_FORMATS if quantisation else _VARIANTS).sub("", name) or name
    return name if adapter is None else f"{name}+{adapter_name(adapter)}"


def short_quantisation(quantisation: str) -> str:
    """Return a quantisation without its group size: ``4bit``, ``4/6bit``, ``bf16``."""
    match = _BITS.search(quantisation)
    return match[0].replace("-", "").lower() if match else quantisation


def short_benchmark(benchmark: str) -> str:
    """Return a benchmark's name without ``-bench``."""
    return benchmark.removesuffix("-bench")
