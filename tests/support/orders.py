"""Instructions to a real `rashomon` process: a slower backend that logs its calls, a slow judge, a migration."""

from __future__ import annotations

import ctypes
import importlib
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.base import Benchmark
from benchmarks.vocabulary import FinishReason, Generation, Record, Request, Verdict
from judges.base import FunctionJudge
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.options import RemoteOptions
from tests.support.metal_injector import MESSAGES, failure

SLOW_MIGRATION = """
    CREATE TABLE slow AS WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 4000000)
        SELECT count(*) AS counted FROM numbers;
    CREATE TABLE copied AS SELECT * FROM generation;
    CREATE TABLE slower AS SELECT counted FROM slow
"""


class Watched(Backend):
    """Another backend, one request at a time, slower, every call of it written down before it is made."""

    def __init__(self, inner: Backend, orders: dict[str, Any]) -> None:
        self.info = replace(inner.info, **orders.get("info", {}))
        self.capacity = inner.capacity if inner.info.device == "remote" else orders.get("capacity", 1)
        self._inner = inner
        self._calls: str | None = orders.get("calls")
        self._seconds: Sequence[float] = orders.get("seconds", (0, 0))
        self._says: dict[str, tuple[str, FinishReason]] = orders.get("says", {})
        self._dies: dict[str, Any] | None = orders.get("dies")
        self._gate: dict[str, Any] | None = orders.get("gate")
        self._hangs: dict[str, Any] | None = orders.get("hangs")
        self._answered = 0
        self._under_way: set[str] = set()

    def submit(self, request: Request) -> None:
        self._under_way.add(request.id)
        if self._calls:
            # One write of one line to a file opened for appending survives a SIGKILL right after it.
            log = os.open(self._calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(log, f"{request.id}\n".encode())
            os.close(log)
        self._inner.submit(request)

    def step(self) -> Sequence[Generation]:
        if self._dies is not None:
            poisoned = any(
                instance.endswith(f"{of}#0") for of in self._dies.get("of", ()) for instance in self._under_way
            )
            if poisoned or len(self._under_way) > self._dies.get("above", len(self._under_way)):
                die(self._dies["how"])
        if self._gate is not None and self._answered >= self._gate["after"] and not os.path.exists(self._gate["until"]):
            time.sleep(0.02)
            return []
        while self._hangs is not None and self._answered >= self._hangs["after"]:
            open(self._hangs["file"], "w").close()
            ctypes.PyDLL(None).sleep(60)
        time.sleep(random.uniform(*self._seconds))
        done = [self._spoken(generation) for generation in self._inner.step()]
        self._under_way -= {generation.request_id for generation in done}
        self._answered += len(done)
        return done

    def _spoken(self, generation: Generation) -> Generation:
        for ending, (text, finish_reason) in self._says.items():
            if generation.request_id.endswith(ending + "#0"):
                return replace(generation, text=text, finish_reason=finish_reason)
        return generation

    def cancel(self, request_id: str) -> None:
        self._under_way.discard(request_id)
        self._inner.cancel(request_id)

    @property
    def remarks(self) -> Sequence[str]:
        return self._inner.remarks

    def close(self) -> None:
        self._inner.close()


class Missing(MetaPathFinder):
    """Python's search for packages, of which some are not installed."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in self._packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def die(how: str) -> None:
    """End this process as a signal's name says, as Python or MLX do without memory or a GPU, by a bug, or with an exit code."""
    if how.startswith("SIG"):
        signal.signal(getattr(signal, how), signal.SIG_DFL) if how != "SIGKILL" else None
        os.kill(os.getpid(), getattr(signal, how))
    if how == "MemoryError":
        raise MemoryError
    if how == "MLX":
        raise RuntimeError("[metal::malloc] Attempting to allocate 9663676416 bytes which is greater than the maximum")
    if how in MESSAGES:
        raise failure(how)
    if how == "bug":
        raise ZeroDivisionError("a backend's own fault")
    os._exit(int(how))


def apply(orders: dict[str, Any]) -> None:
    """Change this process: keys ``calls``, ``seconds``, ``says``, ``info``, ``needs_device``, ``abort``, ``capacity``,
    ``dies`` (``how`` a worker does, ``of`` which requests, or ``above`` how many under way),
    ``load_holds`` (a file that is made as a load begins, which takes a minute),
    ``hangs`` (``after`` so many answers a worker makes a ``file`` and comes back from nothing), ``stop_seconds``,
    ``gate`` (a worker answers no more ``after`` so many, ``until`` there is a file of that name),
    ``holds`` (a ``function``, MODULE:NAME or MODULE:CLASS.NAME, makes a ``file`` and takes a minute before it first begins),
    ``judge_seconds``, ``row_seconds``, ``migration``, ``pace``,
    ``mode`` (the mode of answering that is expected to be the fastest: "sequential", "shared" or "batched"),
    ``memory`` (the bytes that a model may take), ``ray_versions`` (of Ray and Python, as Ray compares them),
    ``missing`` (packages that are not installed),
    ``structured_without_metal``, ``text_width``, ``metal_faults`` (see :mod:`tests.support.metal_injector`)."""
    if "missing" in orders:
        sys.meta_path.insert(0, Missing(orders["missing"]))
    if "ray_versions" in orders:
        from ray._private import utils

        utils.compute_version_info = lambda: tuple(orders["ray_versions"])
    from mlx_backends import engine_registry

    load, describe = engine_registry.load_backend, engine_registry.describe

    def watched(
        model: str, media: MediaPath, *, force: bool = False, remote: RemoteOptions | None = None, **more: Any
    ) -> Backend:
        if orders.get("abort") == model:
            os.abort()
        if "load_holds" in orders:
            open(orders["load_holds"], "w").close()
            ctypes.PyDLL(None).sleep(60)  # as a library does that keeps the interpreter to itself
        if "metal_faults" in orders and describe(model).needs_device:
            from tests.support import metal_injector

            metal_injector.install(orders["metal_faults"])
        backend = load(model, media, force=force, remote=remote, **more)
        return (
            Watched(backend, orders)
            if orders.keys() & {"calls", "seconds", "says", "info", "capacity", "dies", "gate", "hangs"}
            else backend
        )

    def described(model: str) -> EngineInfo:
        info = describe(model)
        return replace(info, needs_device=orders.get("needs_device", info.needs_device), **orders.get("info", {}))

    engine_registry.load_backend, engine_registry.describe = watched, described
    if "metal_faults" in orders and "app.engine.training.training_worker" in sys.orig_argv:
        from mlx_backends.mlx import mlx_load as loading

        load_model = loading.load

        def load_before_faults(path: Path) -> tuple[Any, Any]:
            from tests.support import metal_injector

            metal_injector.install(orders["metal_faults"])
            return load_model(path)

        loading.load = load_before_faults
    if "holds" in orders:
        module, _, path = orders["holds"]["function"].partition(":")
        *owners, name = path.split(".")
        owner = reduce(getattr, owners, importlib.import_module(module))
        held = getattr(owner, name)

        def hold(*arguments: Any, **options: Any) -> Any:
            if not os.path.exists(orders["holds"]["file"]):
                open(orders["holds"]["file"], "w").close()
                time.sleep(60)
            return held(*arguments, **options)

        setattr(owner, name, hold)
    if "judge_seconds" in orders:
        from app.engine import answer_loop

        verdict_of = answer_loop.judge_record

        def slow_verdict(judge: FunctionJudge, record: Record, benchmark: Benchmark) -> Verdict:
            time.sleep(orders["judge_seconds"])
            return verdict_of(judge, record, benchmark)

        answer_loop.judge_record = slow_verdict
    if "row_seconds" in orders:
        from benchmarks.build import BuildWriter

        add_row = BuildWriter.add_row

        def slow_row(writer: BuildWriter, row: Mapping[str, Any]) -> None:
            time.sleep(orders["row_seconds"])
            add_row(writer, row)

        setattr(BuildWriter, "add_row", slow_row)  # noqa: B010 - a method cannot be assigned to, says mypy
    if "stop_seconds" in orders:
        from app.engine.workers import worker_stop_time, worker_supervisor

        worker_stop_time.LEAST_SECONDS = orders["stop_seconds"]
        setattr(worker_supervisor, "NOTICE_SECONDS", orders["stop_seconds"])  # noqa: B010 - it is another module's, says mypy
    if "mode" in orders:
        from mlx_backends.core.expected_time import ExpectedTime

        ExpectedTime.best = orders["mode"]  # type: ignore[method-assign]
    if "memory" in orders:
        from mlx_backends.models import memory_and_cache_sizes

        memory_and_cache_sizes._available = lambda device: (orders["memory"], "what was ordered")
    if "text_width" in orders:
        from mlx_backends.mlx import lm_backend

        lm_backend.WIDTH = orders["text_width"]
    if orders.get("structured_without_metal"):
        _patch_structured_output()
    if "pace" in orders:
        from mlx_backends.remote import rate_limit

        rate_limit.BACKOFF_BASE_S, rate_limit.MAX_BACKOFF_S = orders["pace"]
    if orders.get("migration"):
        from app.store import database_schema

        database_schema.MIGRATIONS = (*database_schema.MIGRATIONS, SLOW_MIGRATION)


def _patch_structured_output() -> None:
    """mlx-vlm masks logits with a Metal kernel; where there is no Metal, its own server gets one of plain operations."""
    import mlx.core as mx
    import mlx_vlm.structured as structured

    def masked(logits: Any, mask: Any) -> Any:
        width = logits.shape[-1]
        bits = (mask.astype(mx.uint32)[..., None] >> mx.arange(32, dtype=mx.uint32)) & 1
        allowed = bits.reshape(*mask.shape[:-1], -1)
        if allowed.shape[-1] < width:
            short = mx.zeros((*allowed.shape[:-1], width - allowed.shape[-1]), allowed.dtype)
            allowed = mx.concatenate([allowed, short], -1)
        return mx.where(allowed[..., :width].astype(mx.bool_), logits, mx.array(-float("inf"), logits.dtype))

    if not mx.metal.is_available():
        structured._apply_llguidance_mask = masked
