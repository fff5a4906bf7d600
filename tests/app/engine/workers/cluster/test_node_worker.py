"""A worker on a node: media by content within bounds, copies of models, and a full disk, which is no request's fault."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_connection import node_job
from app.engine.workers.cluster.cluster_messages import Loaded, NotLoaded, Orders
from app.engine.workers.cluster.model_folder_copy import CopiedPart, FolderCopy, copied_folder, part_files, pieces
from app.engine.workers.cluster.node_worker import MediaCache, NodeWorker
from benchmarks.errors import MediaError, ModelError
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Part, Request, Text
from mlx_backends.base import Backend, EngineInfo, MediaPath, no_media
from mlx_backends.core.metal_faults import DeviceLostError
from mlx_backends.engine_registry import describe
from mlx_backends.models.adapter_folder import Adapter, read_adapter
from mlx_backends.models.weight_files import weights_digest
from mlx_backends.options import LoadOptions
from mlx_backends.policy_engine import PolicyBackend
from tests.support.demo import FOUR_BIT
from tests.support.local_cluster import LocalCluster, job_of
from tests.support.metal_injector import failure


def medium(data: bytes) -> Media:
    return Media(hashlib.sha256(data).hexdigest(), ".png")


def test_media_are_fetched_once_when_needed_and_evicted_within_the_bound() -> None:
    fetched: list[bytes] = []

    def fetch(reference: bytes) -> bytes:
        fetched.append(reference)
        return reference

    contents = [bytes([number]) * 40 for number in range(4)]
    cache = MediaCache(fetch, limit=100)
    cache.hold({medium(data).name: data for data in contents})
    assert not fetched
    for data in (contents[0], contents[0], contents[1], contents[2], contents[0]):
        path = cache(medium(data))
        assert path.read_bytes() == data
        assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 100
    assert fetched == [contents[0], contents[1], contents[2], contents[0]]
    assert not cache.problem


def test_damaged_medium_is_the_nodes_problem_and_a_missing_one_the_requests() -> None:
    cache = MediaCache(lambda reference: b"something else")
    cache.hold({medium(b"right").name: b""})
    with pytest.raises(MediaError):
        cache(medium(b"unknown to the driver"))
    assert not cache.problem
    with pytest.raises(Exception, match="damaged"):
        cache(medium(b"right"))
    assert cache.problem


def test_medium_is_fetched_again_and_what_fails_twice_may_pass() -> None:
    failures = [OSError("cut"), TimeoutError("cut"), TimeoutError("cut")]

    def fetch(reference: bytes) -> bytes:
        if failures:
            raise failures.pop()
        return reference

    cache = MediaCache(fetch)
    cache.hold({medium(b"image").name: b"image"})
    with pytest.raises(TimeoutError):
        cache(medium(b"image"))
    assert cache.problem is not None
    assert cache.problem.passes
    assert cache(medium(b"image")).read_bytes() == b"image", "at the second attempt"


def test_worker_that_ends_leaves_neither_media_nor_half_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    worker, image = NodeWorker(), medium(b"image")
    worker._media.hold({image.name: b"image"})
    assert worker._media(image).is_file()
    files = part_files("model", str(FOUR_BIT))
    sizes = {file.name: file.stat().st_size for file in files}
    assert worker.begin_copy("model", str(FOUR_BIT), "0" * 64, sizes) == ""
    assert worker.add_piece(*next(pieces(files))) == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    worker.end()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


_KILLED = """
import os, signal, sys
from pathlib import Path
import platformdirs
platformdirs.user_cache_path = lambda name: Path(sys.argv[1]) / name
from app.engine.workers.cluster.node_worker import NodeWorker
from benchmarks.vocabulary import Media
import hashlib
worker = NodeWorker()
image = Media(hashlib.sha256(b"image").hexdigest(), ".png")
worker._media.hold({image.name: b"image"})
worker._media(image)
assert worker.begin_copy("model", "org/name", "0" * 64, {"model.safetensors": 4}) == ""
assert worker.add_piece("model.safetensors", b"half") == ""
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_next_worker_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)], env={**os.environ, "TMPDIR": str(temporary)}, check=False
    )
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    assert isinstance(NodeWorker().load(job_of("policy:random")), Loaded)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_full_disk_turns_no_request_into_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reading(Backend):
        def __init__(self, media: MediaPath) -> None:
            self.info = EngineInfo("reading", "reading", needs_device=False)
            self.capacity = 4
            self._media, self._waiting = media, list[Request]()

        def submit(self, request: Request) -> None:
            self._waiting.append(request)

        def step(self) -> list[Generation]:
            request = self._waiting.pop(0)
            (part, *_) = request.messages[0].parts
            try:
                if isinstance(part, Media):
                    self._media(part)
            except OSError as error:
                return [Generation(request.id, "", "error", error=str(error))]
            return [Generation(request.id, "seen", "stop")]

        def cancel(self, request_id: str) -> None:
            raise AssertionError

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    def load(model: str, media: MediaPath, **options: LoadOptions) -> Backend:
        return Reading(media)

    monkeypatch.setattr("app.engine.workers.cluster.node_worker.load_backend", load)
    worker = NodeWorker()
    worker.load(job_of("policy:random"))
    image = medium(b"image")
    parts: list[tuple[Part, ...]] = [(Text("no image"),), (image,), (image,)]
    requests = [Request(f"r{n}", 0, (Message("user", part),), Decoding()) for n, part in enumerate(parts)]
    monkeypatch.setattr(Path, "write_bytes", full)
    report = worker.exchange(Orders(requests, {image.name: b"image"}))
    assert [generation.text for generation in report.generations] == ["seen"]
    assert report.problem is not None
    assert "No space left" in report.problem.text
    assert not report.problem.passes


@pytest.mark.parametrize(
    ("raised", "received"),
    [
        (DeviceLostError(failure("memory")), MemoryError),
        (DeviceLostError(failure("buffers")), MemoryError),
        (DeviceLostError(failure("timeout")), RuntimeError),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"), MemoryError),
    ],
)
def test_errors_of_a_backend_reach_a_driver_without_its_packages(
    raised: Exception, received: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: PolicyBackend) -> list[Generation]:
        raise raised

    worker = NodeWorker()
    worker.load(job_of("policy:random"))
    monkeypatch.setattr(PolicyBackend, "step", fail)
    item = Request("r", 0, (Message("user", (Text("?"),)),), Decoding())
    with pytest.raises(received) as caught:
        worker.exchange(Orders([item]))
    assert type(caught.value) is received


def copy_of(folder: Path, weights: str, spoil: bytes = b"") -> str:
    files = part_files("model", str(folder))
    copy = FolderCopy("model", str(folder), weights, {file.name: file.stat().st_size for file in files})
    problem = copy.begin()
    for name, piece in pieces(files):
        problem = problem or copy.add(name, spoil + piece[len(spoil) :])
    return problem or copy.end()


def test_model_is_copied_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    weights = weights_digest(FOUR_BIT)
    assert copied_folder("model", str(FOUR_BIT), weights) is None
    assert "damaged" in copy_of(FOUR_BIT, weights, spoil=b"x")
    assert copied_folder("model", str(FOUR_BIT), weights) is None
    assert copy_of(FOUR_BIT, weights) == ""
    copy = copied_folder("model", str(FOUR_BIT), weights)
    assert copy is not None
    assert weights_digest(Path(copy)) == weights
    assert [entry.name for entry in (tmp_path / "rashomon" / "models" / weights).iterdir()] == [FOUR_BIT.name]


def test_workers_with_a_folder_in_common_copy_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr("os.getpid", lambda: 7)  # as on two machines
    weights, files = weights_digest(FOUR_BIT), part_files("model", str(FOUR_BIT))
    sizes = {file.name: file.stat().st_size for file in files}
    copies = [FolderCopy("model", str(FOUR_BIT), weights, sizes) for _ in range(2)]
    assert [copy.begin() for copy in copies] == ["", ""]
    assert {copy.add(name, piece) for name, piece in pieces(files) for copy in copies} == {""}
    assert [copy.end() for copy in copies] == ["", ""]
    assert [entry.name for entry in (tmp_path / "rashomon" / "models" / weights).iterdir()] == [FOUR_BIT.name]


@pytest.mark.parametrize(
    ("part", "file", "size"),
    [
        ("model", "../escape.json", 1),
        ("model", "code.py", 1),
        ("model", "model.safetensors", 1 << 62),
        ("adapter", "../adapter_config.json", 1),
        ("adapter", "training.json", 1),
        ("adapter", "adapters.safetensors", 1 << 62),
    ],
)
def test_files_that_are_no_models_or_too_large_are_refused(
    part: CopiedPart, file: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    assert FolderCopy(part, "org/name", "0" * 64, {file: size}).begin()
    assert not list(tmp_path.rglob("*escape*"))


def test_adapter_travels_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    adapter = tmp_path / "mine"
    adapter.mkdir()
    layer = "language_model.model.layers.0.unknown.layer"
    save_file(
        {f"{layer}.lora_a": np.ones((8, 2)), f"{layer}.lora_b": np.ones((2, 8))}, adapter / "adapters.safetensors"
    )
    (adapter / "adapter_config.json").write_text('{"fine_tune_type": "lora", "rank": 2, "scale": 1.0, "dropout": 0.0}')
    (adapter / "notes.txt").write_text("private")
    model = f"{FOUR_BIT}+{adapter}"
    expected = describe(model)

    def read_there(folder: str) -> Adapter:
        """As a node reads it, on which the driver's folder does not exist."""
        if Path(folder) == adapter:
            raise ModelError("there is no adapter folder")
        return read_adapter(folder)

    def load(model: str, media: MediaPath, **options: LoadOptions) -> Backend:
        backend = PolicyBackend("policy:random")
        backend.info = describe(model)
        return backend

    monkeypatch.setattr("app.engine.workers.cluster.node_worker.read_adapter", read_there)
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.load_backend", load)
    backend = ClusterBackend(LocalCluster("node"), no_media, node_job(model, "run"), expected)
    assert backend.wait()
    assert (backend.info.adapter, backend.info.model) == (expected.adapter, expected.model)
    (copy,) = (tmp_path / "rashomon" / "adapters").iterdir()
    assert copy.name == expected.adapter
    assert sorted(file.name for file in (copy / "mine").iterdir()) == ["adapter_config.json", "adapters.safetensors"]
    backend.close()


def release(worker: NodeWorker) -> None:
    """Free the device as the end of its process does."""
    assert worker._lock is not None
    worker._lock.release()


def test_a_machine_serves_one_run_at_a_time_with_all_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    model, weights = str(FOUR_BIT), weights_digest(FOUR_BIT)
    first, second, other = NodeWorker(), NodeWorker(), NodeWorker()
    monkeypatch.setattr(
        "app.engine.workers.cluster.node_worker.load_backend", lambda *_, **__: PolicyBackend("policy:random")
    )
    assert isinstance(first.load(job_of(model, weights, "run one")), Loaded)
    assert isinstance(second.load(job_of(model, weights, "run one")), Loaded)
    assert other.load(job_of(model, weights, "run two")) == NotLoaded(holder="run one")
    release(first)
    assert other.load(job_of(model, weights, "run two")) == NotLoaded(holder="run one"), "one of its workers is left"
    release(second)
    assert isinstance(other.load(job_of(model, weights, "run two")), Loaded)
