"""The model that ``rashomon doctor --full`` measures: a cached one that sees and fits, or the demo's."""

from __future__ import annotations

from dataclasses import dataclass

from app.system.project_paths import ASSETS
from benchmarks.errors import ModelError, SpecError
from mlx_backends.engine_registry import describe, has_prefix, required_memory
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_catalog import catalog_models
from mlx_backends.models.model_discovery import cached_models

DEMO_MODEL = ASSETS / "demo" / "model-bf16"


@dataclass(frozen=True, slots=True)
class PilotModel:
    """The model to measure. ``name`` is as in ``--model``; ``why`` says why it is the demo's, empty for another."""

    name: str
    why: str = ""

    @property
    def is_demo(self) -> bool:
        return bool(self.why)

    @property
    def is_public(self) -> bool:
        """True if the model's name may be in a report: names of models that are not listed may be private."""
        return self.is_demo or self.name in _listed()

    @property
    def public_name(self) -> str:
        """Return the name for a report."""
        if self.is_demo:
            return "the demo's model"
        return self.name if self.is_public else "a model that is not on Rashomon's list"


def choose_pilot_model(name: str | None = None) -> PilotModel:
    """Return the model called ``name``, or the smallest listed model of the cache that sees and fits, else any such model.

    Without one, return the demo's model. Raises SpecError or ModelError if the model called ``name`` cannot be measured here.
    """
    if name is not None:
        if has_prefix(name):
            raise SpecError(f"{name} is no model that MLX runs on this machine; name a folder or a cached model.")
        describe(name)
        fit = memory_fit(0)
        if (need := required_memory(name)) > fit.available:
            raise ModelError(
                f"{name} needs about {need / 1e9:.1f} GB of the {fit.available / 1e9:.1f} GB of {fit.source}; "
                "choose a smaller quantisation."
            )
        return PilotModel(name)
    models = cached_models()
    usable = [model for model in models if model.problem is None and "image" in model.takes]
    fitting = [model for model in usable if memory_fit(model.weights_bytes).ok]
    listed = _listed()
    if fitting:
        return PilotModel(min(fitting, key=lambda model: (model.name not in listed, model.weights_bytes)).name)
    unusable = sum(model.problem is not None for model in models)
    reasons = [
        f"{unusable} cannot run (the check `models` says why)" if unusable else "",
        f"{len(usable)} do not fit in memory" if usable else "",
    ]
    details = ", ".join(filter(None, reasons))
    return PilotModel(
        str(DEMO_MODEL),
        f"no vision-language model in the Hugging Face cache can be used{f': {details}' if details else ''}",
    )


def _listed() -> set[str]:
    return {model.id for model in catalog_models()}
