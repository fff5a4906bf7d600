"""People as the models of runs: their answers, under ``person:NAME``."""

from __future__ import annotations

from benchmarks.errors import ModelError
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.models.model_modalities import ALL_MODALITIES
from mlx_backends.options import LoadOptions

PERSON = "person:"
"""The prefix of the model name of a person's answers."""


class PersonEngine(Engine):
    """Describes a person, who answers by ``rashomon answer`` or in the terminal interface."""

    def describe(self, model: str) -> EngineInfo:
        return EngineInfo(
            "person", model.removeprefix(PERSON), device="a person", needs_device=False, takes=ALL_MODALITIES
        )

    def refusal(self, model: str) -> str:
        return f"{model} is a person; answer with `rashomon answer`, see its --help, or on the screen Answer."

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        raise ModelError(self.refusal(model))
