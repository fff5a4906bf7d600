"""Adoption of a received run: a preview of what it would use, and a new run of this machine with its valid contents.

No file of the received folder is copied: every value is read, validated and written to a new database.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.engine.run_plan import create_run
from app.run_name_patterns import LONGEST
from app.run_spec import RunName, RunSpec, parse_stored
from app.store.bundles.bundle_archive import make_folder_of
from app.store.bundles.bundle_layout_and_limits import BUILDS, MEDIA, is_member_name, is_sha256
from app.store.bundles.bundle_opening import is_opened_bundle
from app.store.question_sets import version_of_digest
from app.store.run_facts import EXCLUDED_KEY as EXCLUDED
from app.store.run_facts import NONE_EXCLUDED, UNJUDGED_STATE, ExcludedInstances, is_judged
from app.store.run_references import stored_models
from app.store.run_salvage import Report, Salvage, SavedAnswer, SavedInstance
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.file_names import name_key
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import open_read, open_write, write_error
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Verdict
from mlx_backends.portable_model_names import without_folders
from mlx_backends.remote import is_remote
from mlx_backends.remote.allowed_addresses import all_allowed
from mlx_backends.remote.remote_names_and_media import parse as parse_name

_COPIED_META = (
    "created",
    "judges",
    "remarks",
    "trained on",
    "canary",
    "sight",
    "endpoint",
    "deaths",
    "work",
    "order",
    "reached",
)
"""The meta keys that are copied, besides those that :func:`app.engine.run_plan.create_run` writes."""

_LABELLING = "labelling "
_READ = ("meta", "instance", "engine", "generation", "verdict")
"""The tables whose rows are taken over; the counters are made anew."""
_PAGE = 256


@dataclass(frozen=True)
class ReceivedRun:
    """A run that was made on another machine, or that is damaged.

    Attributes:
        models: The model and the judges that would be requested, each with its address.
        named_build: The build that the run names.
        local_build: The build with the same digest in the workspace.
        bundled_build: The build beside the run in an opened bundle, with media.
        answers: The number of valid answers.
        verdicts: The number of valid verdicts by judge.
        content: The digest of what an adoption copies, to be compared within this process; folders of models are not part of it.
        damaged: Whether anything of it cannot be read.
    """

    folder: Path
    own: bool
    spec: RunSpec
    models: tuple[tuple[str, str | None], ...]
    digest: str | None
    named_build: Path | None
    local_build: Path | None
    bundled_build: Path | None
    answers: int
    total: int
    verdicts: dict[str, int]
    created: float | None
    content: str
    damaged: bool

    @property
    def needs_confirmed_build(self) -> bool:
        """True if its only build is one that it names, which is used only once the user agrees."""
        return self.local_build is None and self.bundled_build is None and self.named_build is not None

    def lines(self) -> list[str]:
        """Return a description of what the run would use, as lines."""
        (model, address), *judges = self.models
        lines = [f"benchmark  {self.spec.benchmark}", f"model      {_at(model, address)}"]
        lines += [f"judge      {_at(*judge)}" for judge in judges]
        if self.local_build:
            lines.append(f"media      {self.local_build} (in this workspace, same digest)")
        elif self.bundled_build:
            lines.append("media      those of the bundle, whose build is copied to this workspace")
        elif self.named_build:
            lines.append(f"media      {self.named_build} (named by the run; not checked)")
        else:
            lines.append("media      no build is named")
        lines.append(f"answers    {self.answers} of {self.total}")
        lines += [f"verdicts   {count} by {judge}" for judge, count in sorted(self.verdicts.items())]
        return lines


@dataclass(frozen=True)
class AdoptedRun:
    """An adopted run: its folder, its contents, and a sentence for everything that was skipped."""

    folder: Path
    answers: int
    verdicts: int
    left_out: list[str]


def read_received_run(workspace: Workspace, folder: Path) -> ReceivedRun:
    """Read what the run in ``folder`` would use. Raises StoreError or SpecError if it cannot be read."""
    damage: list[StoreError] = []
    with Salvage.read(folder) as store:
        values = store.saved_meta(damage.append)
        spec = _spec(values, folder)
        digest = values["identity"].get("data digest")
        build_name = spec.data or values.get("data")
        benchmark = get_benchmark(spec.benchmark)
        sessions = sorted((key, value) for key, value in values.items() if key.startswith(_LABELLING))
        identity = {**spec.identity(), "model": without_folders(spec.model)}  # a bundle has no folders
        content = hashlib.sha256(repr([identity, digest, sessions]).encode("utf-8", "surrogatepass"))
        counts: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        for saved in store.saved(damage.append):
            counts["total"] += 1
            counts["done"] += saved.done
            verdicts.update(verdict.judge for answer in saved.answers for verdict in answer.verdicts)
            if saved.instance.condition in benchmark.conditions:
                answers = [replace(answer, verdicts=_valid_verdicts(answer, benchmark)) for answer in saved.answers]
                content.update(repr([saved.instance, saved.done, answers]).encode("utf-8", "surrogatepass"))
        store.find_missing(damage.append, _READ)
        return ReceivedRun(
            folder,
            store.own,
            spec,
            tuple((model, _address(model)) for model in (spec.model, *spec.judge)),
            digest if isinstance(digest, str) else None,
            Path(build_name) if build_name else None,
            _find_build(workspace, spec.benchmark, digest),
            _bundled_build(folder, digest),
            counts["done"],
            counts["total"],
            dict(verdicts),
            values.get("created"),
            content.hexdigest(),
            bool(damage),
        )


def find_adopted(workspace: Workspace, received: ReceivedRun) -> list[str]:
    """Return the names of the runs of this machine with the same content.

    The received run is among them if it is such a run, unless it is damaged: then adopting it saves what is valid.
    """
    names, shared_name = [], without_folders(received.spec.model)
    for name, model in stored_models(workspace).items():
        folder = workspace.runs_folder / name
        if model is None or without_folders(model) == shared_name:
            with suppress(RashomonError), RunStore.read(folder) as run:  # an unreadable run is none
                is_candidate = run.own and run.meta("created") == received.created
                is_candidate &= not (received.damaged and folder.samefile(received.folder))
                if is_candidate and read_received_run(workspace, folder).content == received.content:
                    names.append(name)
    return names


def _valid_verdicts(answer: SavedAnswer, benchmark: Benchmark) -> tuple[Verdict, ...]:
    valid = (verdict for verdict in answer.verdicts if verdict.label is None or verdict.label in benchmark.labels)
    return tuple(sorted(valid, key=lambda verdict: verdict.judge))


def matching_build(received: ReceivedRun, place: Path) -> Path:
    """Return the folder of the build in ``place``. Raises SpecError unless the run was made from it."""
    build = Build.open(typed_path(place))
    if build.benchmark != received.spec.benchmark or (received.digest and build.digest != received.digest):
        raise SpecError(
            f"{build.path} is not the build of {received.folder.name} ({(received.digest or '?')[:12]}); "
            "name the right one with --data."
        )
    return build.path


def adopt(
    workspace: Workspace, received: ReceivedRun, *, name: str | None = None, data: Path | None = None
) -> AdoptedRun:
    """Create a run of this machine from the valid contents of a received one, with the build in ``data``.

    The received folder is not changed. Raises StoreError if the new run's folder exists or cannot be written, or SpecError.
    """
    folder = workspace.runs_folder / _new_name(workspace, received.folder.name, name)
    spec = received.spec.model_copy(update={"data": None if data is None else str(data)})
    benchmark = get_benchmark(spec.benchmark)
    damage: list[str] = []
    counts: Counter[str] = Counter()
    workspace.make()
    with Salvage.read(received.folder) as store:
        values = store.saved_meta(lambda error: damage.append(str(error)))
        if next(_fitting(store, benchmark, _ignored), None) is None:
            raise StoreError(f"{received.folder.name} holds no valid instance; there is nothing to adopt.")

        def fill(run: RunStore) -> None:
            answers = _answers(_fitting(store, benchmark, lambda error: damage.append(str(error))), benchmark, damage)
            for _, group in groupby(enumerate(answers), key=lambda numbered: (numbered[1][0], numbered[0] // _PAGE)):
                pairs = [pair for _, pair in group]
                run.use_engine(pairs[0][0])
                run.commit([answer for _, answer in pairs])
                counts["answers"] += sum(answer.last for _, answer in pairs)
                counts["verdicts"] += sum(len(answer.verdicts) for _, answer in pairs)
            for key, value in values.items():
                if key in _COPIED_META or key.startswith(_LABELLING):
                    run.set_meta(key, value)
            progress = run.progress()
            if all(p.done == p.total for p in progress) and not is_judged(values["spec"], progress):
                run.set_meta("state", UNJUDGED_STATE)
            elif counts["answers"]:
                run.set_meta("state", {"state": "done", "note": ""})

        create_run(
            workspace,
            spec,
            folder,
            values["identity"],
            (saved.instance for saved in _fitting(store, benchmark, _ignored)),
            data=data,
            excluded=ExcludedInstances(**values[EXCLUDED]) if EXCLUDED in values else NONE_EXCLUDED,
            fill=fill,
        )
        store.find_missing(lambda error: damage.append(str(error)), _READ)
    return AdoptedRun(folder, counts["answers"], counts["verdicts"], damage)


def _fitting(store: Salvage, benchmark: Benchmark, report: Report) -> Iterator[SavedInstance]:
    """Yield the valid instances with a condition of the benchmark; report the others."""
    for saved in store.saved(report):
        if saved.instance.condition in benchmark.conditions:
            yield saved
        else:
            report(StoreError(f"{saved.instance.id} has the unknown condition {saved.instance.condition!r}"))


def _answers(
    instances: Iterable[SavedInstance], benchmark: Benchmark, damage: list[str]
) -> Iterator[tuple[dict[str, Any], NewAnswer]]:
    """Yield the answers with their valid verdicts, each with its engine."""
    for ordinal, saved in enumerate(instances):
        condition = saved.instance.condition
        for step, answer in enumerate(saved.answers):
            verdicts = _valid_verdicts(answer, benchmark)
            if len(verdicts) < len(answer.verdicts):
                damage.append(f"a verdict on {saved.instance.id} has a label unknown to {benchmark.name}")
            yield (
                answer.engine,
                NewAnswer(
                    ordinal,
                    condition,
                    step,
                    answer.request,
                    answer.generation,
                    saved.done and step == len(saved.answers) - 1,
                    verdicts,
                    answer.finished_at,
                ),
            )


def _spec(values: Mapping[str, Any], folder: Path) -> RunSpec:
    if "spec" not in values or "identity" not in values:
        raise StoreError(f"the spec or the identity of {folder.name} cannot be read; it cannot be adopted.")
    spec = parse_stored(RunSpec, values["spec"], str(folder))
    get_benchmark(spec.benchmark)
    return spec


def _ignored(error: StoreError) -> None:
    pass


def _find_build(workspace: Workspace, benchmark: str, digest: Any) -> Path | None:
    """Return the folder of the workspace's build of a benchmark with that digest, if there is one."""
    if isinstance(digest, str) and (version := version_of_digest(workspace.path, digest)) is not None:
        return version
    usual = workspace.build_folder(benchmark)
    with suppress(OSError):
        for place in (usual, *folder_entries(usual.parent)):
            with suppress(RashomonError, OSError, ValueError):
                if (build := Build.open(place)).digest == digest and build.benchmark == benchmark:
                    return build.path
    return None


def _bundled_build(folder: Path, digest: Any) -> Path | None:
    """Return the build beside a run in an opened bundle, if the bundle has its media."""
    bundle = folder.parent.parent
    if not is_opened_bundle(bundle) or not is_sha256(digest) or not (bundle / BUILDS / digest / MEDIA).is_dir():
        return None
    return bundle / BUILDS / str(digest)


def usable_build(workspace: Workspace, received: ReceivedRun) -> Path | None:
    """Return the workspace's build of a received run, after copying it from the run's bundle if necessary; None if there is none.

    Raises StoreError, SpecError or SourceError if the bundle's build cannot be copied, or is another one.
    """
    local = _find_build(workspace, received.spec.benchmark, received.digest)
    if local is not None or received.bundled_build is None:
        return local
    return _copy_build(workspace, received, matching_build(received, received.bundled_build))


def _copy_build(workspace: Workspace, received: ReceivedRun, source: Path) -> Path:
    """Copy a build to the workspace; return its folder there. Only files that a build has are copied, and no link is followed.

    The bundle may be a folder that somebody made, which nothing has verified.
    """
    usual = workspace.build_folder(received.spec.benchmark)
    target = usual.with_name(f"{usual.name}-{source.name[:8]}") if usual.exists() else usual
    workspace.make()
    try:
        with OwnFolder(target.parent, mode=0o777) as staging:
            for path in sorted(source.rglob("*")):
                name = str(path.relative_to(source))
                if is_member_name(f"{BUILDS}/{source.name}/{name}"):
                    make_folder_of(staging.path, name)
                    with open_read(source, name) as file, open_write(staging.path, name, new=True) as copy:
                        shutil.copyfileobj(file, copy)
            staging.keep_as(target)
    except OSError as error:
        raise write_error(target, error, "name another --workspace") from error
    return target


def _new_name(workspace: Workspace, old: str, name: str | None) -> str:
    """Return an unused run name: ``name``, or else the old one, with "-adopted" if that is taken."""
    taken_names = set(map(name_key, workspace.run_names()))
    if name is None:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", old).lstrip("._-")[:LONGEST] or "run"
        numbered = (f"{base[: LONGEST - 16]}-adopted{number}" for number in ("", *range(2, len(taken_names) + 3)))
        return next(candidate for candidate in (base, *numbered) if name_key(candidate) not in taken_names)
    try:
        TypeAdapter(RunName).validate_python(name)
    except ValidationError as error:
        raise SpecError("--name takes at most 80 letters from a to z, digits, '.', '_' and '-'.") from error
    workspace.check_run_name(name)
    if name_key(name) in taken_names:
        raise StoreError(f"there is a run {name} already; give another --name.")
    return name


def _address(model: str) -> str | None:
    return ", ".join(server.address for server in parse_name(model).servers) if is_remote(model) else None


def _at(model: str, address: str | None) -> str:
    if address is None:
        return model
    new = "" if all_allowed([model]) else "; new on this machine: you will be asked before anything is sent"
    return f"{model} (at {address}{new})"
