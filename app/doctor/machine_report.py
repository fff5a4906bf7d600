"""A report on this machine for an issue or a colleague: versions, limits, checks and speeds, and nothing personal."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from app.doctor.check_result import CheckResult
from app.doctor.measuring_process import child_json
from app.doctor.report_digests import TITLE, digest_lines
from app.store.run_summary import RunSummary
from app.store.workspace import Workspace
from app.system.mac_state import load_state, panics_problem, recent_panics
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.untrusted.safe_files import UnsafeFileError, is_disk_full, read_bytes, replace_file, write_error
from mlx_backends.mlx.metal.metal_switches import NO_WIRED_LIMIT, SERIAL_IMAGES, TF32, is_on
from mlx_backends.models.host_machine import host_info
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.metal_working_set import estimated_working_set
from mlx_backends.models.model_catalog import catalog_models
from mlx_backends.remote.api_keys import VARIABLES

PILOT_FOLDER = "rashomon-doctor"
"""The folder of a workspace with a separate workspace for the pilot of ``rashomon doctor --full``."""

_LIBRARIES = (
    "rashomon",
    "mlx",
    "mlx-metal",
    "mlx-lm",
    "mlx-vlm",
    "transformers",
    "huggingface_hub",
    "numpy",
    "pillow",
    "torch",
)
_PUBLIC_CHECKS = ("machine", "memory", "load", "packages", "mlx", "torch", "mlx-vlm", "extras")
"""Checks whose messages hold facts of the machine alone. Of the others, only the outcome is reported."""
_SWITCHES = (NO_WIRED_LIMIT, SERIAL_IMAGES)
_MEASURE_SECONDS = 540
_SYNCS = 20
_REMOVED = "[removed]"
_MAX_OLD = 1 << 20


def check_file(file: Path) -> None:
    """Check that a report can be written to ``file``, unless its disk is full now.

    Raises SpecError if it is something else than a report, which must not be overwritten; StoreError if its folder does not
    exist or cannot be written.
    """
    try:
        if not read_bytes(file.parent, file.name, limit=_MAX_OLD).startswith(TITLE.encode()):
            raise SpecError(f"{file} exists and is no report; name another file.")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnsafeFileError) as error:
        raise SpecError(f"{file} is no report; name another file.") from error
    try:
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        if not is_disk_full(error):
            raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> StoreError:
    return write_error(file, error, "name a file in a folder with room that you can write with --report")


def write_report(file: Path, text: str) -> None:
    """Write the ``text`` of a report; it replaces an earlier report, and nothing else.

    Raises SpecError if ``file`` is something else, StoreError if it cannot be written.
    """
    check_file(file)
    try:
        replace_file(file.parent, file.name, text.encode())
    except OSError as error:
        raise _unwritable(file, error) from error


def report(
    workspace: Workspace,
    results: Sequence[CheckResult],
    measured: Mapping[str, Any] | str,
    steps: Sequence[str] = (),
) -> str:
    """Return the report's text.

    ``measured`` are the measurements, or why there are none; ``steps`` are the lines of ``rashomon doctor --full``.
    """
    sections = (
        *([("steps of doctor --full", steps)] if steps else []),
        ("machine", _machine()),
        ("libraries", _libraries()),
        ("memory", _memory(measured)),
        ("state", _state()),
        ("checks", _checks(results)),
        ("measurements with the demo's model", _measured(measured)),
        ("disk", [_disk_sync(workspace)]),
        ("runs of listed models in this workspace", _runs(workspace)),
    )
    personal = _personal_values(workspace)
    lines = [TITLE, "docs/mac-report.md says how to read it."]
    for title, content in sections:
        lines += ["", f"[{title}]", *(_without_personal(clean(line), personal) for line in content)]
    text = "".join(f"{line}\n" for line in lines)
    return text + "".join(f"{line}\n" for line in digest_lines(text))


def _machine() -> Iterator[str]:
    host = host_info()
    yield f"chip: {host.chip}"
    yield f"memory: {host.memory / 1e9:.1f} GB"
    yield f"system: {host.system if sys.platform == 'darwin' else _kernel()}, {platform.machine()}"
    yield f"python: {host.python}, {platform.python_implementation()}"


def _kernel() -> str:
    """Return the kernel's name and version number, without the rest of its release, which may name a provider or a user."""
    number = re.match(r"\d+(?:\.\d+)*", platform.release())
    return f"{platform.system()} {number[0] if number else 'of an unknown version'}"


def _libraries() -> Iterator[str]:
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            yield f"{name}: {version(name)}"


def _memory(measured: Mapping[str, Any] | str) -> Iterator[str]:
    fit = memory_fit(0)
    yield f"for models: {fit.available / 1e9:.2f} GB ({fit.source})"
    if sys.platform == "darwin":
        yield f"estimated from the memory alone: {estimated_working_set(host_info().memory) / 1e9:.2f} GB"
    facts = measured.get("facts", {}) if isinstance(measured, Mapping) else {}
    yield from (f"MLX's {name}: {value}" for name, value in facts.items())
    yield from (f"{name}: {'on' if is_on(name) else 'off'}" for name in _SWITCHES)
    value = os.environ.get(TF32)
    yield f"{TF32}: {'not set' if value is None else value if value in ('0', '1') else 'something else'}"


def _state() -> Iterator[str]:
    warnings, unknown = load_state()
    yield from warnings
    if unknown:
        yield unknown
    elif not warnings:
        yield "nothing that slows a run was found" if sys.platform == "darwin" else "checked on a Mac only"
    days = Counter(panic.day for panic in recent_panics())
    panics = ", ".join(f"{day} ({count})" for day, count in sorted(days.items()))
    if panics or sys.platform == "darwin":
        yield f"kernel panics in 30 days: {panics or panics_problem() or 'none'}"


def _checks(results: Sequence[CheckResult]) -> Iterator[str]:
    for result in results:
        state = "FAIL" if not result.ok else "ok, with advice" if result.fix else "ok"
        yield f"{result.check}: {state}" + (f", {result.message}" if result.check in _PUBLIC_CHECKS else "")


def measurements() -> Mapping[str, Any] | str:
    """Return the measurements with the demo's model (:mod:`app.doctor.measure_machine`), or why there are none."""
    with scratch_folder() as folder:
        return child_json(["-m", "app.doctor.measure_machine", str(folder)], _MEASURE_SECONDS)


def _measured(measured: Mapping[str, Any] | str) -> Iterator[str]:
    if isinstance(measured, str):
        yield measured
        return
    yield f"device: {measured['device']}; loaded in {measured['load_s']:.2f} s"
    error = measured["fp32"]
    if isinstance(error, str):
        yield f"fp32 products: {error}"
    else:
        yield f"fp32 products: relative error {error:.1e} ({'as in TF32' if error > 1e-5 else 'full fp32'})"
    yield from _rows("speed", measured["speed"], _speed_line)
    yield from _rows("image preparation", measured["images"], _image_line)
    yield _sight_line(measured["sight"])
    yield _batches_line(measured["batches"])


def _rows(name: str, rows: Any, line: Any) -> Iterator[str]:
    if isinstance(rows, str):
        yield f"{name}: {rows}"
    else:
        yield from (f"{name}: {line(row)}" for row in rows)


def _speed_line(row: Mapping[str, Any]) -> str:
    prefill, decode = (f"{value:.0f} tokens/s" if value else "unknown" for value in (row["prefill"], row["decode"]))
    peak = row["peak_memory"] / 1e9
    return f"prompt of {row['prompt_tokens']} tokens: prefill {prefill}, decode {decode}, peak {peak:.3f} GB"


def _image_line(row: Mapping[str, Any]) -> str:
    return f"{row['pixels'] / 1e6:.2f} megapixels in {row['seconds'] * 1000:.0f} ms"


def _sight_line(sight: Any) -> str:
    if isinstance(sight, str):
        return f"sight check: {sight}"
    outcome = sight["problem"] or "the model sees its images"
    return (
        f"sight check: {outcome}; another image changes a logprob by {sight['changed']:.3g} nats or more, "
        f"a repetition by {sight['repeated']:.3g} or less"
    )


def _batches_line(batches: Any) -> str:
    if isinstance(batches, str):
        return f"batch check: {batches}"
    failed = "".join(f"; {way}: {reason}" for way, reason in batches["failed"].items())
    return (
        f"batch check: {batches['way']}, padding changes a logit by {batches['noise']:.2g} or less, "
        f"over {batches['tokens']} tokens{failed}"
    )


def _runs(workspace: Workspace) -> Iterator[str]:
    """Yield the speed and peak memory of the runs of models that are published; names of other models may be private."""
    listed = {model.id for model in catalog_models()}
    places = (workspace, Workspace(workspace.path / PILOT_FOLDER))
    runs = (run for place in places for run in place.summaries())
    known = [run for run in runs if run.spec.get("model") in listed and run.done]
    yield from (run_line(run.spec["model"], run) for run in known)
    if not known:
        yield "none"


def run_line(model: str, run: RunSummary) -> str:
    """Return the speed and peak memory of a run with answers, of a ``model`` that may be named."""
    seconds, tokens = (sum(getattr(part, name) for part in run.progress) for name in ("seconds", "tokens"))
    peak = max(part.peak_memory for part in run.progress)
    return (
        f"{model}: {count_of(run.done, 'answer')}, {count_of(run.errors, 'error')}, {seconds / run.done:.2f} s and "
        f"{tokens / run.done:.0f} tokens an answer, peak {peak / 1e9:.2f} GB"
    )


def _disk_sync(workspace: Workspace) -> str:
    """Return the times to sync 4 KiB to the workspace's disk, as a run does with every answer."""
    folder = workspace.path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            parts = [f"fsync {_median_ms(file.fileno(), os.fsync):.2f} ms"]
            if sys.platform == "darwin":
                import fcntl

                parts.append(
                    f"F_FULLFSYNC {_median_ms(file.fileno(), lambda d: fcntl.fcntl(d, fcntl.F_FULLFSYNC)):.2f} ms"
                )
    except OSError as error:
        return f"sync of 4 KiB: {os.strerror(error.errno or 0)}"
    return f"sync of 4 KiB: {', '.join(parts)}"


def _median_ms(descriptor: int, sync: Any) -> float:
    seconds = []
    for _ in range(_SYNCS):
        os.write(descriptor, bytes(4096))
        started = perf_counter()
        sync(descriptor)
        seconds.append(perf_counter() - started)
    return median(seconds) * 1000


def _without_personal(text: str, personal: Set[str]) -> str:
    """Return ``text`` without the ``personal`` values and without paths, should a library's message hold one."""
    for value in sorted(personal, key=len, reverse=True):
        text = re.sub(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", _REMOVED, text, flags=re.IGNORECASE)
    return re.sub(r"(?<![\w.\]])/(?:Users|home|root|Volumes|private|var|tmp|opt)/[^\s'\",;:]*", _REMOVED, text)


def _personal_values(workspace: Workspace) -> set[str]:
    host = socket.gethostname()
    home = Path.home()
    values = {
        host,
        host.partition(".")[0],
        platform.node(),
        str(home),
        home.name,
        str(workspace.path),
        workspace.path.name,
    }
    values |= {os.environ.get(name, "") for name in (*VARIABLES, "HF_TOKEN", "USER", "LOGNAME", "HOSTNAME", "HF_HOME")}
    with suppress(Exception):  # there is no name for this user
        values.add(getpass.getuser())
    values |= set(workspace.run_names())
    return {value for value in values if len(value) > 1 and value not in _COMMON}


_COMMON = {"rashomon", "localhost", "root", "user", "apple", "mac", "macos", "linux", "mlx", "memory", "chip", "python"}
"""Names of folders, users and hosts that tell nothing, but are words of a report."""
