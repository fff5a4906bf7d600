"""Models asked through PyTorch, in a process of its own: importing mlx-vlm, as tests do, changes transformers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.vocabulary import Generation, Media, Request
from mlx_backends.base import EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import BatchInvariance
from mlx_backends.core.engine_probe import Probe

needs_torch = pytest.mark.torch
"""For tests that `make test-rest` runs where PyTorch is installed; tests/conftest.py says what the mark does."""


@dataclass
class TorchJob:
    """A job: ``requests``, sequential or, if ``prove``, as the batch invariance check allows; probes of ``forced`` tokens."""

    model: str
    requests: Sequence[Request]
    paths: Mapping[Media, Path]
    prove: bool = False
    forced: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass
class TorchResult:
    """The result of a job; ``loaded`` are the top-level modules of the process."""

    info: EngineInfo
    answers: dict[str, Generation]
    proof: BatchInvariance | None
    capacity: int
    probes: list[Probe]
    loaded: set[str]


def in_torch(
    model: Path | str, requests: Sequence[Request], media: MediaPath, *, prove: bool = False, forced: Any = None
) -> TorchResult:
    """Ask ``cuda:MODEL``."""
    media_shown = {
        part for request in requests for m in request.messages for part in m.parts if isinstance(part, Media)
    }
    task = TorchJob(f"cuda:{model}", requests, {medium: media(medium) for medium in media_shown}, prove, forced or {})
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.in_torch"],
        input=pickle.dumps(task),
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # threads that wait for each other take longer than so little work
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    result: TorchResult = pickle.loads(done.stdout)  # noqa: S301 - our own
    return result


def _main() -> None:
    from mlx_backends.engine_registry import load_backend
    from tests.support import in_torch as here  # under the name that it is pickled by
    from tests.support.benchmark_requests import answers

    task: TorchJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
    backend = load_backend(task.model, task.paths.__getitem__)
    proof = backend.choose_mode(task.requests) if task.prove else None
    generations = answers(backend, task.requests)
    probes = [backend.probe(r, task.forced[r.id], keep=True) for r in task.requests if r.id in task.forced]
    loaded = {name.partition(".")[0] for name in sys.modules}
    result = here.TorchResult(backend.info, generations, proof, backend.capacity, probes, loaded)
    backend.close()
    sys.stdout.buffer.write(pickle.dumps(result))


if __name__ == "__main__":
    _main()
