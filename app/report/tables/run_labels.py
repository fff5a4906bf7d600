"""Labels of runs in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from app.store.run_store import RunStore
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from mlx_backends.baseline_engine import split_baseline
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.models.adapter_folder import adapter_name, split_adapter
from mlx_backends.pytorch.torch_names_and_devices import split_name


def shared_benchmark(stores: Sequence[RunStore], instead: str) -> Benchmark:
    """Return the benchmark of the runs. Raises SpecError, with the advice ``instead``, if they are of several."""
    names = {store.meta("spec")["benchmark"] for store in stores}
    if len(names) > 1:
        raise SpecError(f"these runs are of several benchmarks ({', '.join(sorted(names))}); {instead}.")
    return get_benchmark(names.pop())


def run_labels(stores: Sequence[RunStore]) -> list[str]:
    """Return the name of each run in a table: its model, with its prompt set or folder if the model is not enough."""
    specs = [store.meta("spec") for store in stores]
    models = [model_label(spec["model"]) for spec in specs]
    labels = [
        f"{model} ({spec['prompt_set']})" if len({spec["prompt_set"] for spec in specs}) > 1 else model
        for model, spec in zip(models, specs, strict=True)
    ]
    return unique_labels(
        [store.folder.name if labels.count(label) > 1 else label for label, store in zip(labels, stores, strict=True)]
    )


def model_label(model: str) -> str:
    """Return the name of a model in a table: of a folder the last part, of a server the name of the model it serves."""
    if model.startswith(IMPORTED):
        return f"{model.removeprefix(IMPORTED)} (imported)"
    rule, of = split_baseline(model)
    if rule:
        return f"{rule}: {model_label(of)}"
    if model.startswith("endpoint:"):
        model = model.rpartition("@http")[0]
    prefix, name, options = split_name(model)
    name, adapter = split_adapter(name)
    name = Path(name).name if prefix or "/" in name else name
    adapted = name if adapter is None else f"{name}+{adapter_name(adapter)}"
    return f"{adapted}{options} (PyTorch)" if prefix else adapted


def unique_labels(names: Sequence[str]) -> list[str]:
    """Return ``names`` with a number after each repetition, such as ``a``, ``a (2)``."""
    counts: Counter[str] = Counter()
    labels = []
    for name in names:
        counts[name] += 1
        labels.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return labels
