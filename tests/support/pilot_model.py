"""The cached model for a pilot on a new machine, printed by its name: the smallest of the papers' that fits, else any."""

from __future__ import annotations

from mlx_backends.models.catalog import catalog_models
from mlx_backends.models.discovery import cached_models
from mlx_backends.models.memory_estimate import memory_fit


def pilot_model() -> str:
    """Return the model's name; empty if no cached model sees and fits."""
    listed = {model.id for model in catalog_models()}
    models = [model for model in cached_models() if model.problem is None and "image" in model.takes]
    fitting = [model for model in models if memory_fit(model.weights_bytes).ok]
    chosen = min(fitting, key=lambda model: (model.name not in listed, model.weights_bytes), default=None)
    return "" if chosen is None else chosen.name


if __name__ == "__main__":
    print(pilot_model())
