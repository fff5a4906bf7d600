"""Job of a worker process, as its supervisor passes it on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.engine.workers.standby_worker import worker_command
from mlx_backends.options import RemoteOptions


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one worker: the runs of one model."""

    runs: tuple[Path, ...]
    judges: tuple[str, ...]
    undecided_by: str | None = None
    """The judge by rule for whose undecided answers alone models are asked; None: for every answer."""
    data: Path | None = None
    """The build with the media of the runs; None to judge only."""
    conditions: tuple[str, ...] = ()
    remote_options: RemoteOptions = field(default_factory=RemoteOptions)
    force: bool = False
    accept_engine: bool = False
    retry_failed: bool = False
    """Flag to repeat the judging of answers that a judge has failed on."""
    width: int | None = None
    """The most requests in flight; None for the backend's capacity."""
    restarts: int = 0
    """The number of restarts, without an answer in between, of a worker that runs out of memory or loses the GPU."""
    until_width: float | None = None
    """The interval width of every condition at which the answering stops early; None for no early stop."""
    model: str = ""
    """The model that answers, to which a standby worker must belong."""
    workers: str | None = None
    """The cluster whose nodes answer; None for this machine."""
    allow_open_cluster: bool = False
    wait: float | None = None
    """The seconds to wait for the device at most; None: until it is free."""
    avoid: tuple[str, ...] = ()
    """The nodes of the cluster that other runs of the batch use, until a line with the node's id comes on standard input."""
    models: tuple[str, ...] = ()
    """The models that nodes of the cluster need memory for: the one that answers, and those of judges."""
    official_code: Path | None = None
    """The user's clone of the benchmark's official code, with whose prompt models judge; None: with the benchmark's own."""

    def command(self) -> list[str]:
        """Return the worker's command line; its only argument is the job."""
        return worker_command(self.to_json())

    def to_json(self) -> str:
        """Return the job as one line of JSON."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Parse the job that :meth:`command` passes."""
        values = json.loads(text)
        options = values.pop("remote_options")
        replies = _path(options.pop("replies"))
        return cls(
            runs=tuple(map(Path, values.pop("runs"))),
            judges=tuple(values.pop("judges")),
            data=_path(values.pop("data")),
            official_code=_path(values.pop("official_code")),
            conditions=tuple(values.pop("conditions")),
            avoid=tuple(values.pop("avoid")),
            models=tuple(values.pop("models")),
            remote_options=RemoteOptions(replies=replies, **options),
            **values,
        )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
