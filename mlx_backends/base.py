"""Engines and backends: an engine describes and loads models, a backend turns a Request into a Generation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Candidates, Generation, Media, Modality, Request
from mlx_backends.core.batch_invariance import BatchInvariance
from mlx_backends.core.engine_probe import Probe
from mlx_backends.core.observed_answers import ObservedAnswer
from mlx_backends.core.saved_work import Reuse
from mlx_backends.options import LoadOptions
from mlx_backends.stored_checks import StoredChecks

MediaPath = Callable[[Media], Path]
"""A function that finds the file of a medium, so that a request need not carry its media."""


def no_media(media: Media) -> Path:
    """Raise RuntimeError: the :data:`MediaPath` of requests without media."""
    raise RuntimeError(f"this engine is shown no media, and was asked for {media.name}")


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Identity of what answered, stored with a run and compared when it is resumed.

    ``engine`` is "mlx-vlm", "policy" ...; ``versions`` those of the libraries that decide an answer;
    ``weights`` the sha256 over the model's files, None where there are none; ``device`` "metal", "cpu" ...;
    ``needs_device`` whether a run must hold the machine's device lease: not for baselines and remote engines.
    """

    engine: str
    model: str
    revision: str | None = None
    weights: str | None = None
    quantisation: str | None = None
    device: str = "cpu"
    needs_device: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)
    weights_bytes: int | None = None
    """The size of the model's weight files."""
    adapter: str | None = None
    """The digest of the adapter that is applied to the weights, or fused into them."""
    base_weights: str | None = None
    """The digest of the weights before an adapter was fused into them."""
    takes: tuple[Modality, ...] = ("image",)
    """The media it is shown as they are; a run does not ask it about others."""


FEWEST_ROWS = 24
"""The number of rows below which the check of batches costs more than they gain, where nothing is known of their times."""


class Backend(ABC):
    """Answers requests, up to ``capacity`` at a time.

    The engine submits, then calls ``step`` again and again; each call does a bounded piece of work (a few tokens, a
    few tens of milliseconds where that is possible) and returns what has finished, so that the engine can commit
    answers and notice an interrupt in between. A request that fails comes back as a Generation with an error.
    """

    info: EngineInfo
    capacity: int = 1
    family: str = ""
    """The status of the model's family, as a phrase; empty where the engine knows none."""
    stored_checks: StoredChecks | None = None
    """The place of earlier results of :meth:`choose_mode`, and of new ones; None for a new check every time."""

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks on how the answers were generated, a sentence each."""
        return ()

    @property
    def reuse(self) -> Reuse | None:
        """Work saved by sharing since :meth:`choose_mode`; None where requests are answered without that."""
        return None

    def engine_of(self, request_id: str) -> Mapping[str, Any] | None:
        """Return the description of the engine that gave an answer of the last step; None where that is always the same one."""
        return None

    @abstractmethod
    def submit(self, request: Request) -> None:
        """Take a request. Raises RuntimeError when ``capacity`` requests are in flight."""

    @abstractmethod
    def step(self) -> Sequence[Generation]:
        """Work a little; return the generations that finished, in any order. Empty when nothing is in flight."""

    @abstractmethod
    def cancel(self, request_id: str) -> None:
        """Drop a request; it yields no generation. Unknown ids are ignored."""

    @property
    def max_capacity(self) -> int:
        """The highest value of ``capacity`` after :meth:`choose_mode`."""
        return self.capacity

    def use_sequential_mode(self) -> None:  # noqa: B027 - most backends know no other way
        """Answer one request at a time from now on, without caches."""

    def observe(  # noqa: B027 - most backends have nothing to show
        self, requests: Sequence[Request], coming: Sequence[Request] = ()
    ) -> None:
        """Keep what the next sequential answers to ``requests`` show about the model, for the checks.

        ``coming`` are the run's first requests, whose work :meth:`repeated` may do in advance; none if answers share no work.
        """

    def observed(self, request: Request) -> ObservedAnswer | None:
        """Return what was kept of the answer to ``request`` since :meth:`use_sequential_mode`; None if nothing was."""
        return None

    def repeated(self, request: Request) -> Any | None:
        """Return the logits of an observed answer's tokens, of the shape (tokens, vocabulary), when they are computed again.

        None where only a probe can repeat them. Nothing may be in flight.
        """
        return None

    def is_worth_checking(self, requests: Sequence[Request], total: int) -> bool:
        """Return whether :meth:`choose_mode` is expected to save more time than its check takes.

        ``requests`` are the first of ``total``. By default, there have to be :data:`FEWEST_ROWS`.
        """
        return row_count(requests) >= FEWEST_ROWS

    @property
    def references(self) -> Sequence[Request]:
        """The requests that :meth:`choose_mode` compares, as far as they are best answered and observed before."""
        return ()

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        """Choose the fastest answering mode that leaves the answers to some of the coming ``requests`` unchanged.

        Requests are answered in that mode from now on. Returns the check's result; None if there is nothing to choose, or if
        ``stop`` returns True meanwhile. Nothing may be in flight.
        """
        return None

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        """Return the engine's probe of ``request``, forced through the ``forced`` tokens of an answer.

        ``keep`` adds the pixel values. Nothing may be in flight. Raises ModelError if the engine does not support it.
        """
        raise ModelError(f"{self.info.engine} does not show what it makes of a prompt; compare models of this machine.")

    def image_rows(self, request: Request) -> Any | None:
        """Return the language model's input at the image positions of ``request``: float32 of the shape (positions, width).

        None where the engine does not show it. Nothing may be in flight.
        """
        return None

    def close(self) -> None:  # noqa: B027 - most backends have nothing to free
        """Free what the backend holds; it answers nothing afterwards."""


class Engine(ABC):
    """One way to get answers: describes the models that its names stand for, and loads them."""

    @abstractmethod
    def describe(self, model: str) -> EngineInfo:
        """Return the description of ``model``, without loading it or importing a heavy library.

        Raises SpecError for a name that says too little, ModelError for a model that is not there or cannot be run.
        """

    def modalities(self, model: str) -> tuple[Modality, ...]:
        """Return the media that ``model`` takes as they are, without reading its weights. Raises as :meth:`describe`."""
        return self.describe(model).takes

    def engine_name(self, model: str) -> str:
        """Return :attr:`EngineInfo.engine` of ``model``, without reading its weights. Raises as :meth:`describe`."""
        return self.describe(model).engine

    def refusal(self, model: str) -> str:
        """Return why ``model`` answers no requests, and what to do instead, as a sentence; empty if it answers them."""
        return ""

    def training_records(self, model: str) -> Sequence[Mapping[str, Any]]:
        """Return what the trainings of ``model`` recorded (:class:`benchmarks.training.trained_on.TrainingRecord`), if any did.

        Raises as :meth:`describe`.
        """
        return ()

    def import_libraries(self, model: str) -> None:  # noqa: B027 - most engines have none worth the haste
        """Import what :meth:`load` will need for ``model``, and start the processes that it needs, without loading anything."""

    def required_memory(self, model: str) -> int:
        """Return the bytes of memory that ``model`` needs, estimated from its files; 0 for next to none.

        Raises as :meth:`describe`.
        """
        return 0

    def available_memory(self, model: str) -> int:
        """Return the bytes of this machine's memory that ``model`` may take. Raises ModelError where its engine cannot run."""
        return 0

    def check_kv_bits(self, model: str, bits: int) -> None:
        """Raise ModelError if ``model`` cannot answer with a key-value cache of ``bits`` bits; by default, none can.

        Loading it may find more, since only then its layers are known.
        """
        raise ModelError(
            f"the key-value cache of {model} cannot be quantised from here; remove kv_bits, or choose a model that MLX runs."
        )

    @abstractmethod
    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        """Return the backend that answers as ``model``; ``media`` finds the file of a medium.

        Raises as :meth:`describe`, ModelError where the model cannot be loaded or does not fit in memory, and KeyMissingError
        or AddressError for a remote engine without its key or the user's consent.
        """


def row_count(requests: Sequence[Request]) -> int:
    """Return the number of rows that requests take: one for each answer, and one for each candidate to score."""
    return sum(
        1 + (len(request.form.values) + 1 if isinstance(request.form, Candidates) else 0) for request in requests
    )
