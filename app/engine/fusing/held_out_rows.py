"""Held-out rows for the check of a fused model: of its adapter's training, or of a training set or build that is named."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from app.engine.instance_streams import BuildInstances
from app.engine.training.training_folder import Training, read_trainings
from app.engine.training.training_row_selection import split_rows
from app.store.workspace import Workspace
from benchmarks.build import Build, media_path
from benchmarks.errors import SourceError, SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet, is_training_set
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.vocabulary import Decoding, Instance, Media, Message, Modality, Request, digest
from mlx_backends.models.adapter_folder import TRAINING, Adapter

_Item = TypeVar("_Item")

MOST_TOKENS = 64
"""The tokens of an answer that are compared."""

_DATA, _NAME = "data digest", "training"


@dataclass(frozen=True)
class HeldOutRows:
    """Requests of held-out rows.

    Attributes:
        name: The display name of their data.
        digest: The digest of the data and of the choice of rows.
        requests: The requests, with greedy decoding.
        media: The files of the media, by sha256.
    """

    name: str
    digest: str
    requests: tuple[Request, ...]
    media: Callable[[Media], Path] = field(repr=False)


def validation_rows(workspace: Workspace, adapter: Adapter, count: int) -> HeldOutRows:
    """Return ``count`` of the validation rows of the training that made ``adapter``, or all if there are fewer.

    Raises StoreError or SourceError, with the reason as a phrase, if they are not at hand or are other rows by now.
    """
    training = _find_training(workspace, adapter)
    path = Path(training.spec.data)
    if not is_training_set(path):
        raise StoreError(f"its training set {path} is gone")
    training_set = TrainingSet.open(path)
    if training_set.digest != training.identity.get(_DATA):
        raise StoreError(f"its training set {path} was changed since the training")
    rows = split_rows(training_set, training.spec)[PARTS[1]]
    if not rows:
        raise StoreError(f"its training {training.name} had no validation rows")
    return _of_training_set(training_set, rows, count, training.spec.max_pixels)


def rows_of(data: TrainingSet | Build, takes: Sequence[Modality], count: int) -> HeldOutRows:
    """Return ``count`` rows of a training set or build: a training set's validation rows, or all if it has none.

    Raises SourceError for a row that cannot be used, SpecError if every row of a build has media that the model does not take.
    """
    if isinstance(data, Build):
        return _of_build(data, takes, count)
    rows = [*data.rows(PARTS[1])] or [*data.rows(PARTS[0])]
    return _of_training_set(data, rows, count, None)


def _find_training(workspace: Workspace, adapter: Adapter) -> Training:
    """Return the training that made ``adapter``: that of its folder, or one of the workspace by its record."""
    record: Mapping[str, Any] = {}
    with suppress(OSError, OutsideJSONError):
        read = read_json_file(adapter.path / TRAINING)
        record = read if isinstance(read, dict) else {}
    if not record.get(_DATA):
        raise StoreError("it does not state its training")
    with suppress(StoreError):
        training = Training.open(adapter.path.absolute().parent)
        if training.identity.get(_DATA) == record[_DATA]:
            return training
    same = [
        training
        for training in read_trainings(workspace)
        if isinstance(training, Training) and training.identity.get(_DATA) == record[_DATA]
    ]
    if not same:
        raise StoreError("its training is not in this workspace")
    return next((training for training in same if training.name == record.get(_NAME)), same[0])


def _of_training_set(
    training_set: TrainingSet, rows: Sequence[ChatRow], count: int, max_pixels: int | None
) -> HeldOutRows:
    files: dict[str, Path] = {}
    requests = []
    for row in _drawn(rows, lambda row: row.kind, lambda row: row.where, count):
        messages, images = _messages(row)
        files |= images
        requests.append(Request(row.where, 0, messages, _decoding(max_pixels)))
    return _held_out(training_set.path.name, training_set.digest, requests, lambda media: files[media.sha256])


def _of_build(build: Build, takes: Sequence[Modality], count: int) -> HeldOutRows:
    benchmark = get_benchmark(build.benchmark)
    prompts = next(iter(benchmark.prompt_sets))
    shown = (
        instance
        for instance in BuildInstances(benchmark, build, prompts)
        if all(part.modality in takes for part in instance.parts if isinstance(part, Media))
    )
    condition, identifier = (lambda instance: instance.condition), (lambda instance: instance.id)
    drawn: list[Instance] = _drawn(shown, condition, identifier, count)
    if not drawn:
        raise SpecError(f"{build.path} has no row that the model takes; name another with --check.")
    requests = [Request(item.id, 0, (Message("user", item.parts),), _decoding(None)) for item in drawn]
    return _held_out(build.path.name, build.digest, requests, lambda media: media_path(build.path, media))


def _held_out(name: str, data: str, requests: Sequence[Request], media: Callable[[Media], Path]) -> HeldOutRows:
    return HeldOutRows(name, digest([data, *(request.digest for request in requests)]), tuple(requests), media)


def _decoding(max_pixels: int | None) -> Decoding:
    return Decoding(max_tokens=MOST_TOKENS, max_pixels=max_pixels)


def _drawn(
    items: Iterable[_Item], kind: Callable[[_Item], str], identifier: Callable[[_Item], str], count: int
) -> list[_Item]:
    """Return ``count`` items, as many of each kind as there are, whatever their order."""
    by_kind: defaultdict[str, list[_Item]] = defaultdict(list)
    for item in items:
        by_kind[kind(item)].append(item)
    ranked: list[tuple[int, _Item]] = []
    for members in by_kind.values():
        members.sort(key=lambda item: digest(["fuse check", identifier(item)]))
        ranked += enumerate(members)
    return [item for _, item in sorted(ranked, key=lambda ranked_item: ranked_item[0])[:count]]


def _messages(row: ChatRow) -> tuple[tuple[Message, ...], dict[str, Path]]:
    """Return a row's messages with their images named by content, and the files of these."""
    try:
        images = [Media(hashlib.sha256(path.read_bytes()).hexdigest(), path.suffix) for path in row.images]
    except OSError as error:
        raise SourceError(f"an image of {row.where} cannot be read: {error.strerror}; put it in its place.") from error
    following = iter(images)
    messages = tuple(
        Message(message.role, tuple(next(following) if isinstance(part, Media) else part for part in message.parts))
        for message in row.messages
    )
    return messages, {media.sha256: path for media, path in zip(images, row.images, strict=True)}
