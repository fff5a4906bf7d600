"""``rashomon build``."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace as replace_terms
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.commands.check_rows import check_rows
from app.commands.confirm_addresses import agree
from app.engine.text_models import CachedTextModel, LocalEmbedder, LocalModelSlot
from app.fetch import manifest
from app.fetch.recipes import RECIPES
from app.new_run.custom_rows import table_path
from app.run_spec import ApiSpec, load_judges, parse
from app.store.sqlite_errors import StoreFullError
from app.store.workspace import Workspace
from app.system.paths import exists, typed_path
from app.text.escape import clean
from benchmarks.base import Benchmark, did_you_mean, get_benchmark
from benchmarks.build import Build, BuildOptions, media_path, under_way
from benchmarks.errors import AnotherBuildError, NothingUsableError, SpecError, StoreError
from benchmarks.media.previews import pictures
from benchmarks.rows.files import json_lines
from benchmarks.text_model import TextModel
from benchmarks.untrusted.safe_files import is_full
from mlx_backends.base import Backend
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.registry import describe, load_backend
from mlx_backends.remote.options import RemoteOptions

_TOLD = 20
"""So many rows that were left out are told of one by one."""

_REASONS = 5
"""The most reasons for leaving rows out that are named."""

_COUNTS = ("examples", "conditions", "change_types", "types", "levels")
"""What of a manifest is always printed: how much there is of what."""


_NAMED = 5
"""So many runs of a build that is replaced are named."""


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
    from_file: Path | None = None,
    check: bool = False,
    every: bool = False,
    writer: str | None = None,
    checkers: Sequence[str] = (),
    captioners: Sequence[str] = (),
    embedder: str | None = None,
    rendered: bool = False,
    api: Mapping[str, Any] = MappingProxyType({}),
    force: bool = False,
    allowed: Sequence[str] = (),
) -> int:
    """Construct a benchmark and say what came of it; 1 where ``check`` finds no row that can be used.

    ``from_file`` is a table of the user's own rows, which is a source like any other; with ``check`` its rows are told one by
    one and nothing is built. With ``every`` nothing is left out of what is printed.

    ``writer`` and ``checkers`` are the models of a construction that needs some, ``captioners`` describe media, each
    "MODALITY=MODEL"; what they reply is kept in the workspace, so that building again after an interrupt asks only what is left.
    """
    benchmark = get_benchmark(name)
    most = benchmark.most_checkers
    if most is not None and len(set(checkers)) > most:
        raise SpecError(f"{name} is checked by one model; name --checker once.")
    describers = dict(_captioner(text) for text in captioners)
    if per_stratum < 1:
        raise SpecError("--per-stratum must be at least 1.")
    rows = table_path(from_file) if from_file is not None else None
    if rows is not None and not benchmark.rows_source:
        benchmark.check_rows(rows, BuildOptions())  # which says so
    if check:
        if rows is None or sources:
            raise SpecError("--check is of a table of rows; give it with --from, and no --source.")
        options = BuildOptions(seed=seed, per_stratum=per_stratum)
        return check_rows(benchmark, rows, options, as_json=as_json, every=every)
    pairs = [_source(benchmark, text) for text in sources]
    if rows is None:
        pairs = pairs or _fetched(workspace, benchmark)
    else:
        pairs.append((benchmark.rows_source, str(rows)))
    folder = typed_path(out or workspace.build_folder(name))
    before, asked = workspace.asked_from(folder)
    terms = parse(ApiSpec, api, "the command line").terms(workspace.replies)
    agree([model for model in (writer, *checkers, *describers.values()) if model], allowed)
    with ExitStack() as stack:
        terms = replace_terms(terms, scope=str(folder))
        device = LocalModelSlot(lambda holder: print(f"waiting for {clean(holder)}", file=sys.stderr))
        stack.callback(device.close)
        models = {
            name: _text_model(stack, workspace, name, terms, force, device, folder)
            for name in dict.fromkeys((writer, *checkers, *describers.values()))
            if name
        }
        options = BuildOptions(
            seed=seed,
            per_stratum=per_stratum,
            replace=replace,
            writer=models[writer] if writer else None,
            checker=models[checkers[0]] if checkers else None,
            checkers=tuple(models[name] for name in dict.fromkeys(checkers)),
            captioners={modality: models[name] for modality, name in describers.items()},
            embedder=LocalEmbedder(embedder, force, device) if embedder else None,
            render=pictures if rendered else None,
        )
        try:
            made = benchmark.build(pairs, folder, options)
        except AnotherBuildError as error:
            if not asked:
                raise
            raise AnotherBuildError(
                f"{error} {_asked(asked)} asked from the build that is there ({before[:12]}): if it is replaced, their pictures "
                "go with it, and they cannot be resumed unless it is built again as it was."
            ) from error
        except NothingUsableError as error:
            if rows is None:
                raise
            check_it = f"{workspace.command()} build {name} --from {shlex.quote(str(rows))} --check"
            raise NothingUsableError(f"{error} `{check_it}` says of each row how to mend it.") from error
        except OSError as error:
            kind = StoreFullError if is_full(error) else StoreError
            raise kind(
                f"cannot build {folder}: {error.strerror}; nothing was left there, mend that and build again."
            ) from error
    lost = asked if made.digest != before else []
    if as_json:
        told = {"path": str(made.path), "digest": made.digest, "manifest": made.manifest}
        print(json.dumps(told | ({"runs of the replaced build": lost} if lost else {}), indent=2))
    else:
        _print_build(made, benchmark, by_row=rows is not None, every=every)
        if lost:
            print(
                f"  replaced the build {before[:12]}: {clean(_asked(lost))} asked from it; their pictures are gone with it, and "
                "they cannot be resumed unless it is built again as it was, in another folder"
            )
        if not every:
            print("--all prints what else the build says of itself, --json all of it.")
    return 0


def training(
    workspace: Workspace, name: str, *, out: Path, data: Path | None, seed: int, validation_share: float
) -> None:
    """Write a build's training files and say how many rows they have."""
    benchmark = get_benchmark(name)
    folder = typed_path(out)
    found = Build.open(typed_path(data) if data else workspace.build_folder(name))
    try:
        rows = benchmark.write_training(found, folder, seed=seed, validation_share=validation_share)
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror}; name another folder with --out.") from error
    print(f"wrote {clean(str(folder))}: {', '.join(f'{count} rows for {part}' for part, count in rows.items())}")


def _captioner(text: str) -> tuple[str, str]:
    modality, equals, model = text.partition("=")
    known = {"audio": "audio", "image": "image", "video": "video", "3d": "point_cloud", "point_cloud": "point_cloud"}
    if not equals or not model or modality.lower() not in known:
        raise SpecError(f"--captioner is MODALITY=MODEL, with one of audio, image, video and 3d; not {text!r}.")
    return known[modality.lower()], model


def _text_model(
    stack: ExitStack,
    workspace: Workspace,
    name: str,
    terms: RemoteOptions,
    force: bool,
    device: LocalModelSlot,
    out: Path,
) -> TextModel:
    """The model called ``name``: one that is elsewhere until ``stack`` ends, one of this machine while it is asked.

    It finds the media of the build that is under way for ``out``.
    """
    name = load_judges([name])[0]
    info = describe(name)
    if info.engine in ("policy", "imported"):
        raise SpecError(f"{name} cannot write, it reads nothing; name a model.")
    workspace.make()

    def load() -> Backend:
        return load_backend(name, partial(media_path, under_way(out)), force=force, terms=terms)

    if info.needs_device:
        return CachedTextModel(info, lambda: device.use(name, load), ResponseCache(workspace.replies))
    backend = load()
    stack.callback(backend.close)
    return CachedTextModel(backend.info, lambda: backend, None)


def _source(benchmark: Benchmark, text: str) -> tuple[str, str]:
    name, equals, where = text.partition("=")
    if not equals or exists(text):
        return "", str(typed_path(text))
    known = [source.name for source in benchmark.sources]
    if name not in known:
        raise SpecError(f"{benchmark.name} has no source {name!r}; {did_you_mean(name, known)}")
    return name, str(typed_path(where)) if where.startswith("~") else where


def _fetched(workspace: Workspace, benchmark: Benchmark) -> list[tuple[str, str]]:
    """The sources that `rashomon data get` fetched. Raises SpecError where it did not, or not all of them."""
    folder = workspace.source_folder(benchmark.name)
    if benchmark.name in RECIPES and manifest.state(folder) == "fetched":
        return RECIPES[benchmark.name].pairs(folder)
    get = f"`{workspace.command()} data get {benchmark.name}`"
    if benchmark.name in RECIPES and manifest.state(folder) == "begun":
        raise SpecError(f"what {benchmark.name} is built from is not completely here; {get} goes on.")
    known = " ".join(f"--source {s.name}={s.hub_id or 'FOLDER'}" for s in benchmark.sources)
    or_get = f"; or {get} first" if benchmark.name in RECIPES else ""
    raise SpecError(f"say what to build from; nothing is downloaded unless named, for example: {known}{or_get}.")


def _asked(runs: Sequence[str]) -> str:
    more = ", …" if len(runs) > _NAMED else ""
    one = len(runs) == 1
    return f"{len(runs)} run{'s'[one:]} ({', '.join(runs[:_NAMED])}{more}) {'was' if one else 'were'}"


def _print_build(made: Build, benchmark: Benchmark, *, by_row: bool, every: bool) -> None:
    """Print what was built and what was left out, row ``by_row`` or by reason; with ``every`` the manifest's counts too."""
    rows, media = made.manifest["instances"], made.manifest["media"]
    asked = sum(1 for _ in benchmark.instances(made, next(iter(benchmark.prompt_sets))))
    samples = "" if asked == rows else f"{rows} samples, "
    print(f"built {clean(str(made.path))}: {samples}{asked} instances, {media} media")
    for key in made.manifest if every else [key for key in _COUNTS if key in made.manifest]:
        value = made.manifest[key]
        if isinstance(value, dict) and key != "options":
            print(f"  {clean(key.replace('_', ' '))}: {clean(_plain(value))}")
    _print_left_out(made.path / "skipped.jsonl", by_row=by_row)
    print(f"  digest: {made.digest}")


def _print_left_out(file: Path, *, by_row: bool) -> None:
    """Print how many rows were left out and why: the first ones ``by_row``, as whoever wrote them fixes them, else by reason."""
    reasons: Counter[str] = Counter()
    for _, line in json_lines(file):
        if by_row and reasons.total() < _TOLD:
            print(f"  left out: {clean(line['row'])}: {clean(line['reason'])}")
        reasons[line["reason"]] += 1
    if by_row and reasons:
        print(f"  {reasons.total()} rows are left out; --check instead of building says how to fix each of them")
    elif reasons:
        each = [f"{count} for {reason!r}" for reason, count in reasons.most_common(_REASONS)]
        more = [f"and {len(reasons) - _REASONS} reasons more"] if len(reasons) > _REASONS else []
        print(f"  left out: {reasons.total()} rows, listed in {clean(str(file))}: {clean('; '.join([*each, *more]))}")


def _plain(value: object) -> str:
    """Return a value of a manifest as prose: ``factual 30, temporal 2``; what is empty or zero is left out."""
    if isinstance(value, dict):
        parts = [
            (key, _plain(inner), isinstance(inner, dict)) for key, inner in value.items() if inner not in (0, {}, [])
        ]
        return ", ".join(f"{key} ({text})" if nested else f"{key} {text}" for key, text, nested in parts) or "none"
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)
