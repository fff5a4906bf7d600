"""``rashomon build``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.paths import exists, typed_path
from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, did_you_mean, get_benchmark
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SpecError, StoreError


def build(
    workspace: Workspace,
    name: str,
    sources: Sequence[str],
    *,
    out: Path | None,
    seed: int,
    per_stratum: int,
    replace: bool,
    as_json: bool,
) -> None:
    """Construct a benchmark and say what came of it."""
    benchmark = get_benchmark(name)
    if per_stratum < 1:
        raise SpecError("--per-stratum must be at least 1.")
    if not sources:
        known = " ".join(f"--source {s.name}={s.hub_id or 'FOLDER'}" for s in benchmark.sources)
        raise SpecError(f"say what to build from; nothing is downloaded unless named, for example: {known}.")
    pairs = [_source(benchmark, text) for text in sources]
    folder = typed_path(out or workspace.build_folder(name))
    options = BuildOptions(seed=seed, per_stratum=per_stratum, replace=replace)
    try:
        made = benchmark.build(pairs, folder, options)
    except OSError as error:
        raise StoreError(
            f"cannot build {folder}: {error.strerror}; nothing was left there, mend that and build again."
        ) from error
    if as_json:
        print(json.dumps({"path": str(made.path), "digest": made.digest, "manifest": made.manifest}, indent=2))
    else:
        _tell(made)


def _source(benchmark: Benchmark, text: str) -> tuple[str, str]:
    name, equals, where = text.partition("=")
    if not equals or exists(text):
        return "", str(typed_path(text))
    known = [source.name for source in benchmark.sources]
    if name not in known:
        raise SpecError(f"{benchmark.name} has no source {name!r}; {did_you_mean(name, known)}")
    return name, str(typed_path(where)) if where.startswith("~") else where


def _tell(made: Build) -> None:
    print(f"built {clean(str(made.path))}: {made.manifest['instances']} instances, {made.manifest['media']} media")
    for key, value in made.manifest.items():
        if isinstance(value, dict) and key != "options":
            print(f"  {key}: {clean(json.dumps(value, ensure_ascii=False))}")
    print(f"  digest: {made.digest}")
    print(f"  rows that were left out, one by one: {clean(str(made.path / 'skipped.jsonl'))}")
