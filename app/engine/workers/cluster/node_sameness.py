"""Sameness of a cluster's nodes: what their engines and their answers to the run's probe requests have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.engine.workers.cluster.cluster_messages import Proof, media_of
from benchmarks.vocabulary import Request
from mlx_backends.base import EngineInfo
from mlx_backends.core.batch_invariance import select_requests

PROBES = 4
"""The requests on which every node proves itself, which it computes alone and without caches."""

_NEVER_DIFFERENT = {
    "engine": "engine",
    "weights": "weights digest",
    "adapter": "adapter digest",
    "base_weights": "base weights digest",
    "quantisation": "quantisation",
}
"""The facts on an engine in which nodes may never differ, by attribute."""


class Sameness:
    """Comparison of nodes with the run, and with the first of them.

    ``expected`` is the engine of the run. Its device and versions count only if the run ``has_answers``; otherwise the first node
    decides on them.
    """

    def __init__(self, expected: EngineInfo, *, has_answers: bool) -> None:
        self.probe: Sequence[Request] | None = None
        """The requests that every node answers before it gets work; None as long as none is known."""
        self.left_out: set[str] = set()
        """The ids of requests on which workers ended."""
        self.is_known = False
        """True once the first node has answered the probe requests."""
        self._first = expected
        self._versions_count = has_answers
        self._candidates: Sequence[Request] = ()
        self._answers: dict[str, tuple[Any, ...]] = {}

    def differences(self, info: EngineInfo) -> tuple[list[str], list[str]]:
        """Return the differences of a node's engine: those that are never accepted, and those of device and versions."""
        never, device_and_versions = differences(self._first, info)
        return never, device_and_versions if self._versions_count else []

    def follow(self, info: EngineInfo) -> None:
        """Expect of all other nodes the engine of the first one."""
        self._first, self._versions_count = info, True

    def choose_probe(self, requests: Sequence[Request]) -> None:
        """Choose the probe requests from the run's first ``requests``, of as many sets of images as there are."""
        self._candidates = [request for request in requests if request.id not in self.left_out]
        selected = select_requests(self._candidates)
        media = [media_of(request) for request in selected]
        alike = [media[:number].count(shown) for number, shown in enumerate(media)]
        self.probe = [selected[number] for number in sorted(range(len(selected)), key=alike.__getitem__)][:PROBES]

    def leave_out(self, request_id: str) -> None:
        """Choose another probe request than one on which workers ended."""
        self.left_out.add(request_id)
        self.choose_probe(self._candidates)

    def next_request(self, proofs: Mapping[str, Proof]) -> Request | None:
        """Return the next probe request for a node that has given ``proofs`` by request; None if that is all."""
        return next((request for request in self.probe or () if request.id not in proofs), None)

    def compare(self, proofs: Mapping[str, Proof]) -> int:
        """Return how many of a node's proofs differ from those of the first node, which it may be itself."""
        answers = {request_id: proof.answer for request_id, proof in proofs.items()}
        if not self.is_known:
            self.is_known, self._answers = True, answers
        return sum(answers.get(request_id) != answer for request_id, answer in self._answers.items())


def differences(first: EngineInfo, other: EngineInfo) -> tuple[list[str], list[str]]:
    """Return the differences of another engine from the first: those that are never accepted, and of device and versions."""
    never = [
        f"{name} {_short(getattr(other, key))}, not {_short(getattr(first, key))}"
        for key, name in _NEVER_DIFFERENT.items()
        if getattr(first, key) != getattr(other, key)
    ]
    others = [] if first.device == other.device else [f"device {other.device}, not {first.device}"]
    names = dict.fromkeys([*first.versions, *other.versions])
    others += [
        f"{name} {other.versions.get(name, 'missing')}, not {first.versions.get(name, 'missing')}"
        for name in names
        if first.versions.get(name) != other.versions.get(name)
    ]
    return never, others


def _short(value: Any) -> str:
    return "none" if value is None else str(value)[:12]
