"""Envelope of every command's ``--json``: the format, the command, the version, and the runs that the result is about."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.json_output.json_only_output import print_own
from app.store.bundles.bundle_opening import bundle_name
from app.store.run_store import RunStore
from app.system.version import rashomon_version
from mlx_backends.portable_model_names import without_folders

FORMAT = 1
"""The format of all JSON output. It rises with a change of meaning: a key that goes, or means something else."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReference:
    """A judge whose labels the values rest on. ``id`` and ``version`` of ``match@4`` are ``match`` and ``4``."""

    id: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReference:
    """A run that the result is about. No name contains a folder of this machine."""

    name: str
    """The name of its folder below ``runs`` in the workspace."""
    bundle: str | None = None
    """The name of the bundle's file that it was read from; null in files, which are equal wherever they are made."""
    model: str
    revision: str | None = None
    benchmark: str
    data_digest: str | None = None
    """The sha256 of the build's manifest, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(Generic[Result]):
    """A command's JSON. ``benchmark`` and ``data_digest`` are null where the runs have several, or there are none."""

    format: int
    command: str
    version: str
    """The version of Rashomon that printed it."""
    runs: tuple[RunReference, ...] = ()
    benchmark: str | None = None
    judge: JudgeReference | None = None
    data_digest: str | None = None
    result: Result


def print_json(command: str, result: object, *, folders: Sequence[Path] = (), judge: str | None = None) -> None:
    """Print a command's result, a dataclass or a tuple of them, in its envelope, about the runs in ``folders``."""
    print_own(json.dumps(plain(envelope(command, result, folders=folders, judge=judge)), indent=2))


def envelope(
    command: str, result: Result, *, folders: Sequence[Path] = (), judge: str | None = None
) -> Envelope[Result]:
    """Return the envelope of a result; ``judge`` is the id of the judge whose labels it rests on."""
    runs = tuple(map(run_reference, folders))
    benchmarks, digests = {run.benchmark for run in runs}, {run.data_digest for run in runs}
    return Envelope(
        format=FORMAT,
        command=command,
        version=rashomon_version(),
        runs=runs,
        benchmark=benchmarks.pop() if len(benchmarks) == 1 else None,
        judge=None if judge is None else judge_reference(judge),
        data_digest=digests.pop() if len(digests) == 1 else None,
        result=result,
    )


def run_reference(folder: Path) -> RunReference:
    """Return the reference to the run in a folder. Raises StoreError if there is none."""
    with RunStore.read(folder) as store:
        spec, identity = store.meta("spec"), store.meta("identity", {})
    known = {
        key: None if identity.get(key) is None else str(identity[key]) for key in ("model revision", "data digest")
    }
    return RunReference(
        name=folder.name,
        bundle=bundle_name(folder),
        model=without_folders(str(spec["model"])),
        revision=known["model revision"],
        benchmark=str(spec["benchmark"]),
        data_digest=known["data digest"],
    )


def judge_reference(judge: str) -> JudgeReference:
    """Return the id and the version of a judge; the id of a panel, such as ``first(match@4, MODEL)``, stays whole."""
    name, _, version = judge.rpartition("@")
    if not name or ")" in version:
        return JudgeReference(id=judge)
    return JudgeReference(id=name, version=version)


def plain(value: Any) -> Any:
    """Return a value as objects, lists, texts and numbers; a number that is not finite becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [plain(item) for item in value]
