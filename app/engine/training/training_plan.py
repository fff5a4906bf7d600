"""Plans of trainings: everything that is checked before a model is loaded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.engine.run_identity import engine_facts
from app.engine.training.longest_row import longest_row
from app.engine.training.training_data_record import data_record
from app.engine.training.training_folder import Training, find_training, has_training, training_names, trainings_folder
from app.engine.training.training_row_selection import split_rows
from app.engine.training.training_spec_and_recipes import TrainingSpec, plain_name
from app.engine.training.workspace_test_data import find_leaks, find_test_builds
from app.store.workspace import Workspace
from app.system.project_paths import free_space
from benchmarks.errors import ModelError, SourceError, SpecError, StoreFullError
from benchmarks.training.leaks_of_test_data import REFUSED, check_leaks
from benchmarks.training.training_set import ChatRow, TrainingSet
from benchmarks.untrusted.file_names import twin
from benchmarks.vocabulary import digest
from mlx_backends.engine_registry import describe
from mlx_backends.models.adapter_folder import split_adapter
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_discovery import inspect, read_config, resolve
from mlx_backends.models.tokenizer_limits import check_tokenizer
from mlx_backends.models.training_memory import TrainingMemory, generation_memory, training_memory
from mlx_backends.models.weight_files import weights_digest
from mlx_backends.training_settings import TrainingSettings, training_problem


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A training that can start: its rows by part, its settings, its memory, and what to look at.

    ``identity`` is what decides the adapter. A training is not resumed with anything else.
    """

    spec: TrainingSpec
    name: str
    identity: dict[str, Any]
    settings: TrainingSettings
    rows: dict[str, list[ChatRow]]
    memory: TrainingMemory
    warnings: list[str]
    data: dict[str, Any]
    """The record of the data that goes with the adapters."""


def plan_training(workspace: Workspace, spec: TrainingSpec, *, force: bool) -> TrainingPlan:
    """Check a training before anything is loaded or written.

    Raises ModelError for a model that cannot be trained or does not fit, SourceError for data that cannot be trained on,
    SpecError for test data among them.
    """
    if split_adapter(spec.model)[1] is not None:
        raise SpecError(
            f"{spec.model} has an adapter, and a training begins with a new one; name the model alone, or fuse the adapter into "
            "it with `rashomon models fuse`."
        )
    path = resolve(spec.model)
    info, config = inspect(path), read_config(path)
    if info.engine != "mlx-vlm" or "image" not in info.takes:
        raise ModelError(f"{info.name} reads no images, so it is not trained here; choose a vision-language model.")
    if problem := training_problem(config):
        raise ModelError(f"{info.name} cannot be trained: {problem}; choose another model.")
    check_tokenizer(path)
    training_set = TrainingSet.open(Path(spec.data))
    rows = split_rows(training_set, spec)
    pairs = spec.objective == "orpo"
    warnings = _check_rows(rows, pairs=pairs)
    if spec.rates is not None and not rows["validation"]:
        raise SpecError(
            "--rates needs validation rows to choose by; add --validation-share 0.1, or name a --learning-rate."
        )
    settings = spec.settings(len(rows["train"]))
    identity = {
        **spec.identity(),
        "model": info.name,
        "weights": weights_digest(path),
        "data digest": training_set.digest,
    }
    name = spec.name or f"{plain_name(info.name.rpartition('/')[2], 'training', 48)}-{digest(identity)[:8]}"
    known = _known(workspace, name, training_set)
    force = force or (known is not None and known.forced)
    longest = longest_row(
        path,
        [*rows["train"], *rows["validation"]],
        max_length=spec.max_length,
        max_pixels=spec.max_pixels,
        pairs=pairs,
    )
    memory = training_memory(
        config,
        info.weights_bytes,
        longest,
        rank=spec.rank,
        dropout=spec.dropout,
        checkpointing=spec.gradient_checkpointing,
        answers=2 if pairs else 1,
        rates=spec.rates is not None,
    )
    if settings.check_every and rows["validation"]:
        memory = replace(memory, generation=generation_memory(config, longest))
    fit = memory_fit(info.weights_bytes)
    if memory.total > fit.available and not force:
        advice = "" if spec.gradient_checkpointing else "--gradient-checkpointing, "
        raise ModelError(
            f"training {info.name} needs about {memory.sentence()}, more than the {fit.available / 1e9:.1f} GB of "
            f"{fit.source}; take {advice}smaller images (--max-pixels), a lower --rank or a smaller quantisation, or add --force."
        )
    if not force:
        _check_disk(trainings_folder(workspace) / name, info.name, memory)
    tests = find_test_builds(workspace, (), training_set.builds)
    report = find_leaks(tests.builds, training_set)
    # Test data that came after a training began is no reason not to end it: its runs will tell.
    warnings += check_leaks(report, drop=known is not None)
    warnings += [*(report.sentences(REFUSED) if known is not None else ()), *tests.unread]
    identity |= engine_facts(describe(spec.model))
    data = data_record(training_set, report.tests)
    return TrainingPlan(spec, name, identity, settings, rows, memory, warnings, data)


def _known(workspace: Workspace, name: str, training_set: TrainingSet) -> Training | None:
    """Return the training of this name on these rows; None if there is none yet. Raises SpecError for a name too like another."""
    if (other := twin(name, training_names(workspace))) is not None:
        raise SpecError(
            f"there is a training {other}, which some disks do not tell from {name}; choose another --name."
        )
    known = find_training(workspace, name) if has_training(workspace, name) else None
    return known if known is not None and known.identity.get("data digest") == training_set.digest else None


def _check_disk(folder: Path, model: str, memory: TrainingMemory) -> None:
    """Raise StoreFullError if the disk has no room for the files of a training in ``folder``, less those that are there."""
    own = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))
    try:
        free = free_space(folder)
    except OSError:  # writing there will tell
        return
    if memory.disk > own + free:
        raise StoreFullError(
            f"training {model} needs {memory.disk / 1e9:.1f} GB on disk for checkpoints and adapters, and {folder.parent} has "
            f"{free / 1e9:.1f} GB free; free some space, name another --workspace, or take a lower --rank."
        )


def _check_rows(rows: dict[str, list[ChatRow]], *, pairs: bool) -> list[str]:
    """Return warnings about the rows. Raises SourceError where there is nothing to learn, or to prefer it to with ``pairs``."""
    learnt = rows["train"]
    if not any(row.images for row in learnt):
        raise SourceError("the training data has no images; train on rows with images, or a text-only model elsewhere.")
    if len(learnt) < 2:
        raise SourceError(f"the training data has {len(learnt)} row to learn from; give at least 2.")
    lacking = sum(not row.rejected for part in rows.values() for row in part)
    if pairs and lacking:
        raise SourceError(
            f"{lacking} rows have no rejected answer, which orpo needs; `rashomon training` writes them for clash, cmc-bench "
            "and your own tables. Or leave out --objective."
        )
    warnings = []
    kinds = Counter(row.kind for row in learnt if row.kind)
    if len(kinds) == 1 and kinds.total() == len(learnt):
        warnings.append(
            f"all rows are of one kind ({next(iter(kinds))}), so the model may learn to give their answer always"
        )
    elif len({row.target for row in learnt}) == 1:
        warnings.append("all rows have the same answer, so the model may learn to give it always")
    if not rows["validation"]:
        warnings.append(
            "there are no validation rows, so no adapter is chosen as the best, and nothing ends the training early"
        )
    return warnings
