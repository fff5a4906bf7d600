"""PyTorch as an engine: models named ``cuda:ID``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.vocabulary import Modality
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.models.adapter_folder import split_adapter, training_records
from mlx_backends.models.model_discovery import resolve
from mlx_backends.models.model_modalities import IMAGES_ONLY
from mlx_backends.options import LoadOptions
from mlx_backends.pytorch import torch_names_and_devices


class TorchEngine(Engine):
    """Vision-language models in PyTorch, through transformers; see :mod:`mlx_backends.pytorch.torch_names_and_devices`."""

    def describe(self, model: str) -> EngineInfo:
        return torch_names_and_devices.describe(model)

    def training_records(self, model: str) -> Sequence[Mapping[str, Any]]:
        folder = torch_names_and_devices.parse_name(model).model
        return training_records(resolve(folder), split_adapter(folder)[1])

    def modalities(self, model: str) -> tuple[Modality, ...]:
        return IMAGES_ONLY

    def engine_name(self, model: str) -> str:
        return torch_names_and_devices.ENGINE

    def required_memory(self, model: str) -> int:
        return torch_names_and_devices.required(model)

    def available_memory(self, model: str) -> int:
        return torch_names_and_devices.available(model)

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        return torch_names_and_devices.load(model, media, force=options.force, width=options.max_in_flight)
