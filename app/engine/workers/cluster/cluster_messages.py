"""Messages between the driver of a run and the workers on its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.engine.workers.cluster.model_folder_copy import CopiedPart
from benchmarks.vocabulary import Generation, Media, Request
from mlx_backends.base import EngineInfo
from mlx_backends.core.distinct_count import Changes

MediaReferences = Mapping[str, Any]
"""Media by their names: what :meth:`app.engine.workers.cluster.cluster_interface.Cluster.put` returned for each."""


@dataclass(frozen=True, slots=True)
class NodeJob:
    """The model that a node loads, and the options that decide its answers.

    Attributes:
        model: The model's name as it was typed, with its engine, adapter and options.
        base: The model's folder or Hub id in that name.
        weights: The digest that its weights must have.
        adapter: The folder of its adapter, with the digest that this must have; None without one.
        name: The model's name as it is stored with answers.
        owner: The text of the device's lock, the same for all nodes of a run.
        version: The version of Rashomon on the driver's machine.
    """

    model: str
    base: str
    weights: str | None
    adapter: tuple[str, str] | None
    name: str
    owner: str
    version: str
    force: bool = False
    max_in_flight: int | None = None
    kv_bits: int | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A node's report that its model is loaded.

    ``engine`` is what is stored with each of its answers, ``memory`` the bytes that a model may take there.
    """

    info: EngineInfo
    engine: Mapping[str, Any]
    memory: int = 0


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """A node's report that its model is not loaded: for good if there is a ``problem``, else for now.

    ``holder`` is who uses the node's device. ``missing`` is what the node does not have, and may be sent.
    """

    problem: str = ""
    holder: str = ""
    missing: CopiedPart | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why a node cannot answer, such as a full disk; ``passes`` where a new worker may not have it."""

    text: str
    passes: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """A node's answer to a probe request, as tokens where the engine has them, and the size of its prompt in tokens."""

    answer: tuple[Any, ...]
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Orders:
    """What a node is to do next: new requests with their media, requests to drop, and how many it may give back."""

    requests: Sequence[Request] = ()
    media: MediaReferences = field(default_factory=dict)
    cancel: Sequence[str] = ()
    give_back: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a node has done since its last report.

    ``returned`` are the ids of requests that it gives back without having begun them, ``queued`` the number of those that it has
    not begun yet; ``capacity`` is its backend's. ``reuse`` are the :meth:`Reuse.sums` of its backend, ``seen`` what that has seen
    since the last report. After a ``problem``, the worker can answer nothing more.
    """

    generations: Sequence[Generation]
    returned: Sequence[str] = ()
    queued: int = 0
    capacity: int = 1
    reuse: Mapping[str, int] = field(default_factory=dict)
    seen: tuple[Changes, Changes] | None = None
    remarks: Sequence[str] = ()
    problem: Problem | None = None


def media_of(request: Request) -> list[Media]:
    """Return the media that a request shows, each once."""
    parts = (part for message in request.messages for part in message.parts)
    return list(dict.fromkeys(part for part in parts if isinstance(part, Media)))
