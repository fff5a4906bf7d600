"""Bundle of runs: one file with their databases, builds, media and a report, which another lab opens without trusting it.

Equal runs give equal bytes. Everything is first written to a hidden folder beside the file; the report is made from there, so
that it shows what the bundle has.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.exports.export_formats import read_export
from app.exports.export_input import media_of
from app.exports.report.report_export import html_report
from app.exports.tabular_export import markdown_tables
from app.report.runs.portable_facts import portable_identity, portable_spec, portable_text
from app.report.runs.run_provenance import spec_toml
from app.report.samples.sample_media import preview_media
from app.report.samples.thumbnails import LONGEST_SIDE, small_picture
from app.store.bundles.bundle_archive import make_folder_of
from app.store.bundles.bundle_layout_and_limits import (
    BUILDS,
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    MAX_MEMBERS,
    MAX_RATIO,
    MEDIA,
    REPORT,
    RUNS,
    SMALL,
    SPEC,
    THUMBNAILS,
    BundleError,
    MediaChoice,
    bundled_names,
)
from app.store.bundles.bundle_opening import is_bundle_file
from app.store.run_store import RunStore
from app.store.run_titles import TITLE_FILE, read_title
from app.store.workspace import Workspace
from app.system.version import rashomon_version
from benchmarks.build import Build
from benchmarks.errors import MediaError, NoAccessError, SourceError, StoreError, StoreFullError
from benchmarks.source_licences import source_licences
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import is_disk_full, open_read, open_write
from benchmarks.vocabulary import Media

_PIECE = 1 << 20
_COMPRESSION = 6
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the first that a zip can state."""
_PACKED = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".gif", ".mp3", ".flac", ".ogg", ".mp4", ".mov", ".mkv", ".webm"}
)
"""The suffixes of files that are compressed already."""


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """A bundle that was written, with a sentence on its media and one on everything that it lacks."""

    path: Path
    size: int
    runs: int
    media: int
    choice: MediaChoice
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _StagedRun:
    """A run in the staging folder, and its build if the build is there and the one that it was made from."""

    name: str
    folder: Path
    benchmark: str
    build: Build | None


def write_bundle(
    workspace: Workspace,
    folders: Sequence[Path],
    out: Path,
    media: MediaChoice | None = None,
    step: Callable[[str], None] = lambda task: None,
) -> WrittenBundle:
    """Write the runs in ``folders`` to one file; ``media`` None leaves the choice to the licences of their sources.

    A run that is being answered is written as of this moment. ``step`` receives the next task. Raises StoreError if the file
    cannot be written, or is there and is not a bundle.
    """
    if os.path.lexists(out) and not is_bundle_file(out):
        raise StoreError(f"{out} exists and is not a bundle; name another file with --out.")
    out = Path(os.path.realpath(out))  # a link stays one
    try:
        with OwnFolder(out.parent) as folder:
            staging = folder.path / "bundle"
            staging.mkdir()
            return _Writer(workspace, staging, step).write(folders, out, media)
    except StoreFullError as error:  # it names the file of a run, which is not at fault
        raise _full(out) from error
    except OSError as error:
        if is_disk_full(error):
            raise _full(out) from error
        raise NoAccessError(f"cannot write {out}: {error.strerror}; name another file with --out.") from error


def _full(out: Path) -> StoreFullError:
    return StoreFullError(f"cannot write {out}: its disk is full; free some space, then run the same command.")


class _Writer:
    """Writer of one bundle, through a staging folder."""

    def __init__(self, workspace: Workspace, staging: Path, step: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._staging = staging
        self._step = step
        self._notes: list[str] = []

    def write(self, folders: Sequence[Path], out: Path, media: MediaChoice | None) -> WrittenBundle:
        """Write all members, then the file."""
        self._write(MANIFEST, b"{}")  # marks the folder as a bundle, for the report
        self._step("copying the runs")
        names = bundled_names(folder.name for folder in folders)
        runs = [self._add_run(name, folder) for name, folder in zip(names, folders, strict=True)]
        builds = {build.digest: build for run in runs if (build := run.build) is not None}
        choice, licences = self._choose(media, builds)
        self._step("copying the media")
        count = 0
        for digest, build in builds.items():
            of_build = [run.folder for run in runs if run.build is not None and run.build.digest == digest]
            count += self._add_media(build, of_build, choice)
        self._step("writing the report")
        for benchmark in dict.fromkeys(run.benchmark for run in runs):
            self._add_report(benchmark, [run.folder for run in runs if run.benchmark == benchmark])
        self._step("writing the file")
        manifest = {
            "format": FORMAT,
            "rashomon": rashomon_version(),
            "runs": [_describe(run) for run in runs],
            "media": choice,
            "licences": licences,
            "notes": self._notes,
        }
        size = self._pack(out, manifest)
        return WrittenBundle(out, size, len(runs), count, choice, tuple(self._notes))

    # --- runs and builds -------------------------------------------------------------------------

    def _add_run(self, name: str, source: Path) -> _StagedRun:
        folder = self._staging / RUNS / name
        folder.mkdir(parents=True)
        with RunStore.read(source) as store:
            build_path = self._workspace.build_of(store)
            store.copy_to(folder)
        with RunStore._connect(folder) as copy:
            spec, state = copy.meta("spec"), copy.meta("state", {})
            copy.detach(
                {
                    "spec": portable_spec(spec),
                    "identity": portable_identity(copy.meta("identity")),
                    "state": {**state, "note": portable_text(str(state.get("note", "")), spec)},
                }
            )
            benchmark, digest = str(copy.meta("spec")["benchmark"]), copy.meta("identity").get("data digest")
        self._write(f"{RUNS}/{name}/{SPEC}", spec_toml(folder).encode("utf-8", "backslashreplace"))
        if title := read_title(source):
            self._write(f"{RUNS}/{name}/{TITLE_FILE}", title.encode("utf-8", "replace"))
        return _StagedRun(name, folder, benchmark, self._add_build(name, build_path, digest))

    def _add_build(self, run: str, path: Path, digest: Any) -> Build | None:
        """Add the rows of a run's build, once for several runs; return None if it is gone or another one."""
        if digest is None:  # imported answers, or those of people
            return None
        try:
            build = Build.open(path)
        except SourceError:
            build = None
        if build is None or build.digest != digest:
            self._notes.append(f"The build of {run} is gone or was replaced, so its rows and media are left out.")
            return None
        target = f"{BUILDS}/{build.digest}"
        if not (self._staging / target).is_dir():
            for name in ("manifest.json", "instances.jsonl"):
                self._copy(build.path, name, f"{target}/{name}")
        return build

    # --- media -----------------------------------------------------------------------------------

    def _choose(
        self, media: MediaChoice | None, builds: Mapping[str, Build]
    ) -> tuple[MediaChoice, dict[str, dict[str, str]]]:
        """Return the choice of media, by default what every licence permits, and the licences by build and source."""
        licences = {digest: source_licences(build.manifest) for digest, build in builds.items()}
        texts = {digest: {name: one.text for name, one in named.items()} for digest, named in licences.items()}
        withheld = {
            f"{name} ({one.text})": None for named in licences.values() for name, one in named.items() if not one.media
        }
        choice: MediaChoice = media or ("none" if withheld else "all")
        sources = "; ".join(withheld)
        if withheld and media is None:
            self._notes.append(
                f"The media are left out, because no licence that lets you pass them on is known for {sources}; --media all "
                "includes them if you may."
            )
        elif withheld and choice != "none":
            self._notes.append(f"No licence that lets you pass the media on is known for {sources}.")
        return choice, texts

    def _add_media(self, build: Build, runs: Sequence[Path], choice: MediaChoice) -> int:
        """Add the media that the runs of a build show, as chosen; return their number."""
        if choice == "none":
            return 0
        media: dict[Media, None] = {}
        for run in runs:
            with RunStore.read(run) as store:
                for record in store.records():
                    media.update((Media(part.sha256, part.suffix, part.modality), None) for part in media_of(record))
        added = sum(self._add_medium(build, medium, choice) for medium in sorted(media, key=lambda medium: medium.name))
        if added < len(media):
            self._notes.append(
                f"{len(media) - added} of {len(media)} media are missing or damaged in the build, and left out."
            )
        return added

    def _add_medium(self, build: Build, medium: Media, choice: MediaChoice) -> bool:
        target = f"{BUILDS}/{build.digest}"
        try:
            path = build.media_path(medium)
            if choice == "all":
                sha256 = self._copy(build.path, f"{MEDIA}/{medium.name}", f"{target}/{MEDIA}/{medium.name}")
                if sha256 != medium.sha256:
                    (self._staging / target / MEDIA / medium.name).unlink()
                return sha256 == medium.sha256
        except MediaError:
            return False
        picture = small_picture(preview_media(medium, path, LONGEST_SIDE))
        if picture is not None:
            self._write(f"{target}/{THUMBNAILS}/{medium.sha256}.webp", picture)
        return picture is not None

    # --- report and file -------------------------------------------------------------------------

    def _add_report(self, benchmark: str, folders: Sequence[Path]) -> None:
        export = read_export(Workspace(self._staging), folders, checked=False)
        for suffix, text in (("html", html_report(export)), ("md", markdown_tables(export))):
            self._write(f"{REPORT}/{benchmark}.{suffix}", text.encode("utf-8", "backslashreplace"))

    def _pack(self, out: Path, manifest: Mapping[str, Any]) -> int:
        """Zip the staging folder in a fixed order, and put the file in place; return its size in bytes."""
        (self._staging / MANIFEST).unlink()
        names = sorted(str(path.relative_to(self._staging)) for path in self._staging.rglob("*") if path.is_file())
        members: dict[str, dict[str, Any]] = {}
        for name in names:
            with open_read(self._staging, name) as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                members[name] = {"sha256": sha256, "bytes": os.fstat(stream.fileno()).st_size}
        total = sum(facts["bytes"] for facts in members.values())
        if len(names) > MAX_MEMBERS or total > MAX_BYTES:
            raise BundleError(
                "a bundle of these runs would be too large to be opened; bundle fewer, or with --media none."
            )
        text = json.dumps({**manifest, "members": members}, indent=1, sort_keys=True) + "\n"
        self._write(MANIFEST, text.encode())
        file = self._staging.with_name("file.zip")
        self._zip(file, names, compressed=True)
        if total > max(SMALL, MAX_RATIO // 2 * file.stat().st_size):  # or else it would be refused as a zip bomb
            self._zip(file, names, compressed=False)
        size = file.stat().st_size
        os.replace(file, out)
        return size

    def _zip(self, file: Path, names: Sequence[str], *, compressed: bool) -> None:
        with open(file, "wb") as stream:
            with zipfile.ZipFile(stream, "w", compresslevel=_COMPRESSION) as archive:
                for name in (MANIFEST, *names):
                    entry = zipfile.ZipInfo(name, _EPOCH)
                    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
                    is_packed = Path(name).suffix in _PACKED or not compressed
                    entry.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
                    entry.file_size = (self._staging / name).stat().st_size
                    with open_read(self._staging, name) as source, archive.open(entry, "w") as target:
                        shutil.copyfileobj(source, target, _PIECE)
            stream.flush()
            os.fsync(stream.fileno())

    def _write(self, name: str, data: bytes) -> None:
        make_folder_of(self._staging, name)
        with open_write(self._staging, name) as stream:
            stream.write(data)

    def _copy(self, folder: Path, name: str, target: str) -> str:
        """Copy a file to the staging folder, and return the sha256 of its bytes."""
        make_folder_of(self._staging, target)
        with open_read(folder, name) as source, open_write(self._staging, target) as copy:
            return _copy_hashed(source, copy)


def _copy_hashed(source: IO[bytes], target: IO[bytes]) -> str:
    hasher = hashlib.sha256()
    while piece := source.read(_PIECE):
        hasher.update(piece)
        target.write(piece)
    return hasher.hexdigest()


def _describe(run: _StagedRun) -> dict[str, Any]:
    """Describe a run for a reader of the manifest."""
    with RunStore.read(run.folder) as store:
        progress = store.progress()
        versions: dict[str, str] = {}
        for engine in store.engines():
            versions |= {str(name): str(version) for name, version in (engine.get("versions") or {}).items()}
        return {
            "name": run.name,
            "benchmark": run.benchmark,
            "model": store.meta("spec")["model"],
            "answered": sum(condition.done for condition in progress),
            "total": sum(condition.total for condition in progress),
            "build": None if run.build is None else run.build.digest,
            "versions": versions,
        }
