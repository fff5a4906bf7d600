"""Watch over a server's responses: its model, its setup, and prompts that it truncates."""

from __future__ import annotations

import threading

from benchmarks.vocabulary import digest
from mlx_backends.remote.api_provider import Reply
from mlx_backends.remote.endpoint_examination import TRUNCATES, limit_at

_AT_LIMIT = 3
"""Answers in a row that stand at one context length, with prompts of different sizes, before the server is shown to truncate."""


class ServerWatch:
    """Watch over the responses of one server, or of several if not ``single``, of a ``requested`` model. Thread-safe."""

    def __init__(self, single: bool, requested: str = "") -> None:
        self.model: str | None = None
        """The digest of the model's name as the server reports it: the requested one if it ever did, else the first."""

        self.problem = ""
        """The fault that the answers so far show, as a clause; empty for none."""

        self._single = single
        self._requested = digest(requested)
        self._change = ""
        self._fingerprints: set[str] = set()
        self._models: set[str] = set()
        self._at_limit: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    @property
    def remarks(self) -> list[str]:
        """Return a sentence on each change that the server reported."""
        changes = (("models", self._models), ("setups (system_fingerprint)", self._fingerprints))
        return [
            f"the server answered with {len(names)} {what}: {', '.join(sorted(names)[:5])}."
            for what, names in changes
            if len(names) > 1
        ]

    def other_model(self, reply: Reply) -> str:
        """Return the problem with a reply of another model than before, as a clause; empty for none.

        A vendor's name may stand for several versions, and several servers may name one model differently; that is a remark.
        """
        with self._lock:
            if reply.fingerprint is not None:
                self._fingerprints.add(reply.fingerprint)
            if reply.model is None:
                return ""
            name = digest(reply.model)
            if self._single and self.model and self.model != name == self._requested:
                self._change = f"the server answered as another model before it answered as {reply.model!r}"
                self.model = name
            self.model = self.model or name
            if self._single and name != self.model:
                return f"the server answered as the model {reply.model!r}, and as another one before"
            self._models.add(reply.model)
            return ""

    def take_change(self) -> str:
        """Return once, as a clause, that the requested model answers only since now."""
        with self._lock:
            change, self._change = self._change, ""
            return change

    def note_size(self, reply: Reply, estimated: int) -> None:
        """Note the size of an answer's prompt, in tokens as the server counts them and as ``estimated`` here."""
        limit = limit_at(reply.prompt_tokens, reply.completion_tokens)
        with self._lock:
            if limit is None or reply.finish_reason != "stop":
                self._at_limit.clear()
                return
            self._at_limit = [*self._at_limit, (limit, estimated)][-_AT_LIMIT:]
            limits, sizes = map(set, zip(*self._at_limit, strict=True))
            if len(limits) == 1 and len(sizes) == _AT_LIMIT:
                self.problem = f"{TRUNCATES}: different ones all stand at exactly {limit:,} tokens"
