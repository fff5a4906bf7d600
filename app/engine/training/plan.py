"""Plans of trainings: everything that is checked before a model is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.engine.identity import engine_facts
from app.engine.training.folder import Training, find_training, has_training
from app.engine.training.rows import split_rows
from app.engine.training.spec import TrainingSpec, plain_name
from app.engine.training.test_data import find_leaks, find_test_builds
from app.store.workspace import Workspace
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.media.image import fit_size, image_size
from benchmarks.training.leaks import check_leaks
from benchmarks.training.training_set import ChatRow, TrainingSet
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.vocabulary import digest
from mlx_backends.models.adapters import split_adapter
from mlx_backends.models.discovery import inspect, read_config, resolve
from mlx_backends.models.memory_estimate import memory_fit
from mlx_backends.models.tokenizer_limits import check_tokenizer, panics_as_errors
from mlx_backends.models.training_memory import RowTokens, TrainingMemory, row_tokens, text_counter, training_memory
from mlx_backends.models.weights import weights_digest
from mlx_backends.registry import describe
from mlx_backends.training import TrainingSettings, training_problem

_HEADER = 1 << 16  # bytes of an image, enough for its size
_LEAST_PIXELS = 4096
_CANDIDATES = 16
"""The rows with most pixels, text and answer whose tokens are counted."""


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
    warnings = _check_rows(rows, pairs=spec.objective == "orpo")
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
    memory = training_memory(
        config,
        info.weights_bytes,
        longest_row(path, [*rows["train"], *rows["validation"]], spec.max_pixels),
        rank=spec.rank,
        dropout=spec.dropout,
        checkpointing=spec.gradient_checkpointing,
        answers=2 if spec.objective == "orpo" else 1,
    )
    fit = memory_fit(info.weights_bytes)
    if memory.total > fit.available and not force:
        advice = "" if spec.gradient_checkpointing else "--gradient-checkpointing, "
        raise ModelError(
            f"training {info.name} needs about {memory.sentence()}, more than the {fit.available / 1e9:.1f} GB of "
            f"{fit.source}; take {advice}smaller images (--max-pixels), a lower --rank or a smaller quantisation, or add --force."
        )
    if known is None:  # one that was begun was compared then
        tests = find_test_builds(workspace, (), training_set.builds)
        warnings += check_leaks(find_leaks(tests, training_set), drop=False)
    identity |= engine_facts(describe(spec.model))
    return TrainingPlan(spec, name, identity, settings, rows, memory, warnings)


def _known(workspace: Workspace, name: str, training_set: TrainingSet) -> Training | None:
    """Return the training of this name on these rows; None if there is none yet."""
    known = find_training(workspace, name) if has_training(workspace, name) else None
    return known if known is not None and known.identity.get("data digest") == training_set.digest else None


@panics_as_errors()
def longest_row(path: Path, rows: Sequence[ChatRow], max_pixels: int | None) -> RowTokens:
    """Return the size of the longest row for the model in folder ``path``, and of the longest answer."""
    config, count = read_config(path), text_counter(path / "tokenizer.json")
    limit = min((pixels for pixels in (max_pixels, _processor_pixels(path)) if pixels), default=None)
    sizes: dict[Path, tuple[int, int]] = {}
    for row in rows:
        for image in row.images:
            if image not in sizes:
                sizes[image] = _scaled(image, limit)

    def pixels(row: ChatRow) -> int:
        return sum(width * height for width, height in (sizes[image] for image in row.images))

    def answer(row: ChatRow) -> int:
        return max(len(row.target), len(row.rejected))

    candidates = {
        row.where: row
        for key in (pixels, lambda row: len(row.prompt) + answer(row), answer)
        for row in sorted(rows, key=key)[-_CANDIDATES:]
    }
    tokens = [
        row_tokens(
            config,
            count(row.prompt),
            max(count(row.target), count(row.rejected)),
            [sizes[image] for image in row.images],
        )
        for row in candidates.values()
    ]
    longest = max(tokens, key=lambda row: row.total)
    return replace(longest, answer=max(row.answer for row in tokens))


def _processor_pixels(path: Path) -> int | None:
    """Return the pixels to which a model's processor scales larger images, if it says."""
    try:
        settings = read_json_file(path / "preprocessor_config.json")
    except (OSError, OutsideJSONError):
        return None
    size = settings.get("size") if isinstance(settings, dict) else None
    edge = size.get("longest_edge") if isinstance(size, dict) else None
    limit = settings.get("max_pixels", edge) if isinstance(settings, dict) else None
    return (
        limit if isinstance(limit, int) and limit >= _LEAST_PIXELS else None
    )  # a smaller one is the length of an edge


def _scaled(image: Path, max_pixels: int | None) -> tuple[int, int]:
    with image.open("rb") as file:
        width, height = image_size(file.read(_HEADER)) or (1024, 1024)
    return fit_size(width, height, max_pixels)


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
        warnings.append("there are no validation rows, so no adapter is chosen as the best")
    return warnings
