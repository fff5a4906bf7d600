"""Models of a construction: their names on the command line, and the same opened for use."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.engine.cached_text_models import LocalEmbedder, LocalModelSlot, open_text_model
from app.engine.workers.cluster.cluster_address import NONE, check_workers
from app.engine.workers.cluster.cluster_connection import connect, node_job
from app.engine.workers.cluster.cluster_messages import NodeJob
from app.report.runs.cluster_node_lines import node_line
from app.store.store_types import NodeStatus
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from app.typed_names import resolve_models
from benchmarks.base import Benchmark
from benchmarks.build import (
    BuildOptions,
    media_path,
    staging_folder,
)
from benchmarks.errors import (
    ModelError,
    SpecError,
)
from benchmarks.text_model import Embedder, TextModel
from mlx_backends.base import Backend, MediaPath
from mlx_backends.engine_registry import describe, load_backend, refusal
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import is_remote

WORDS = "words"
"""The name of the similarity of captions that needs no model."""


@dataclass(frozen=True, slots=True)
class ConstructionModels:
    """The models of a construction, by name, and the options for using them."""

    writer: str | None = None
    checkers: Sequence[str] = ()
    readers: Sequence[str] = ()
    captioners: Sequence[str] = ()
    """Models that describe media, each "MODALITY=MODEL"."""
    extractor: str | None = None
    """The model that reads facts off pictures and texts (crosscheck-bench)."""
    embedder: str | None = None
    """An embedding model, or ``WORDS``."""
    api: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    allowed: Sequence[str] = ()
    workers: str | None = None
    """The cluster whose nodes answer as the local ones of these models; None for this machine."""
    allow_open_cluster: bool = False

    def modalities(self) -> dict[str, str]:
        """Return the captioner of each modality. Raises SpecError for another form than MODALITY=MODEL."""
        return dict(_captioner(text) for text in self.captioners)

    def names(self) -> list[str]:
        """Return the models that write text, each once."""
        return list(
            dict.fromkeys(
                name
                for name in (self.writer, self.extractor, *self.checkers, *self.readers, *self.modalities().values())
                if name
            )
        )


def with_checked_workers(models: ConstructionModels) -> ConstructionModels:
    """Return the models with their cluster checked; None for this machine. Raises SpecError if it has nothing to answer."""
    if models.workers is None:
        return models
    local = [name for name in resolve_models(models.names()) if not is_remote(name)]
    if not local:
        raise SpecError("no model of this machine takes part in the construction; leave --workers out.")
    check_workers(models.workers, local, models.allowed, typed=True)
    return replace(models, workers=None if models.workers == NONE else models.workers)


def with_models(
    stack: ExitStack,
    workspace: Workspace,
    benchmark: Benchmark,
    options: BuildOptions,
    models: ConstructionModels,
    remote_options: RemoteOptions,
    folder: Path,
) -> BuildOptions:
    """Return the options of the construction with its models, which are open until ``stack`` ends."""
    device = LocalModelSlot(
        lambda holder: print(f"waiting for {clean(holder)}", file=sys.stderr), elsewhere=models.workers is not None
    )
    stack.callback(device.close)
    text_models = {
        name: _text_model(stack, workspace, name, remote_options, models, device, folder) for name in models.names()
    }
    return replace(
        options,
        writer=text_models[models.writer] if models.writer else None,
        checker=text_models[models.checkers[0]] if models.checkers else None,
        checkers=tuple(text_models[name] for name in dict.fromkeys(models.checkers)),
        readers=tuple(text_models[name] for name in dict.fromkeys(models.readers)),
        captioners={modality: text_models[name] for modality, name in models.modalities().items()},
        extractor=text_models[models.extractor] if models.extractor else None,
        embedder=_embedder(benchmark, models, device),
    )


def _embedder(benchmark: Benchmark, models: ConstructionModels, device: LocalModelSlot) -> Embedder | None:
    """Return the embedding model that is named, or the paper's if it is cached; None for the similarity of words."""
    if models.embedder == WORDS:
        return None
    if models.embedder:
        return LocalEmbedder(models.embedder, models.force, device)
    if not benchmark.paper_embedder or models.writer is None:
        return None
    try:
        return LocalEmbedder(benchmark.paper_embedder, models.force, device)
    except ModelError:  # not in the cache, or only partly
        return None


def _captioner(text: str) -> tuple[str, str]:
    modality, equals, model = text.partition("=")
    known = {"audio": "audio", "image": "image", "video": "video", "3d": "point_cloud", "point_cloud": "point_cloud"}
    if not equals or not model or modality.lower() not in known:
        raise SpecError(f"--captioner {text!r} is not of the form MODALITY=MODEL, with audio, image, video or 3d.")
    return known[modality.lower()], model


def _text_model(
    stack: ExitStack,
    workspace: Workspace,
    name: str,
    remote_options: RemoteOptions,
    models: ConstructionModels,
    device: LocalModelSlot,
    out: Path,
) -> TextModel:
    """Return the model called ``name``, open until ``stack`` ends; it finds media in the unfinished build for ``out``."""
    name = resolve_models([name])[0]
    info = describe(name)
    if info.engine in ("policy", "ocr") or refusal(name):
        raise SpecError(f"{name} cannot write text, because it is not a model; name a model.")
    workspace.make()

    media = partial(media_path, staging_folder(out))

    def load() -> Backend:
        if models.workers is not None and info.needs_device:
            job = node_job(name, "rashomon build", force=models.force)
            return _on_cluster(models.workers, job, media, allow_open=models.allow_open_cluster)
        return load_backend(name, media, force=models.force, remote=remote_options)

    return open_text_model(stack, name, info, load, device, workspace.replies)


def _on_cluster(workers: str, job: NodeJob, media: MediaPath, *, allow_open: bool) -> Backend:
    """Return the backend of a cluster, which prints a line whenever the state of one of its nodes changes."""
    states: dict[str, tuple[str, str]] = {}

    def print_changes(nodes: Sequence[NodeStatus]) -> None:
        for node in nodes:
            if states.get(node.name) != (node.state, node.note):
                states[node.name] = node.state, node.note
                print(clean(node_line(node)), file=sys.stderr, flush=True)

    backend = connect(workers, job, media, allow_open=allow_open)
    try:
        backend.watch(print_changes)
        backend.wait()
    except BaseException:
        backend.close()
        raise
    return backend
