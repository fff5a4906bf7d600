"""Imported answers: answers that were produced elsewhere, under ``imported:NAME``."""

from __future__ import annotations

from benchmarks.errors import ModelError
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.models.model_modalities import ALL_MODALITIES
from mlx_backends.options import LoadOptions

IMPORTED = "imported:"
"""The prefix of the model name of imported answers."""


class ImportedEngine(Engine):
    """Describes imported answers, and answers nothing itself."""

    def describe(self, model: str) -> EngineInfo:
        return EngineInfo(
            "imported", model.removeprefix(IMPORTED), device="elsewhere", needs_device=False, takes=ALL_MODALITIES
        )

    def refusal(self, model: str) -> str:
        return f"the answers of {model} were produced elsewhere; add them with `rashomon import`, see its --help."

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        raise ModelError(self.refusal(model))
