"""Writing of training sets: rows with their images, split by example and picture, and the rows that are left out again."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from benchmarks import number_ranges as ranges
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import MediaError, SourceError, SpecError, StoreError, did_you_mean
from benchmarks.media import load_image, read_media
from benchmarks.training.training_set import FORMAT, IMAGES, MANIFEST, PARTS, TrainingSet, read_manifest
from benchmarks.training_rows import TARGETS, TrainingOptions, TrainingRow, choose_filter, row_to_json
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import is_disk_full, write_error
from benchmarks.vocabulary import Media, digest


@dataclass(frozen=True)
class StagedSet:
    """A training set in a folder beside ``out``, which is removed at the end of the block unless it was put in place."""

    out: Path
    folder: OwnFolder
    training_set: TrainingSet

    def put_in_place(self) -> TrainingSet:
        """Rename the folder to ``out``. Raises StoreError."""
        try:
            self.folder.keep_as(self.out)
        except OSError as error:
            raise _unwritable(self.out, error) from error
        return TrainingSet.open(self.out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.remove()


def write_training_set(
    benchmark: Benchmark, builds: Sequence[Build], out: Path, options: TrainingOptions, validation_share: float
) -> StagedSet:
    """Write the training rows of ``builds`` to a folder beside ``out``.

    Examples that share a group or an image stay together. Raises SpecError for options that the benchmark does not have,
    SourceError if no row can be used, an image is gone, or ``out`` is not empty, StoreError if it cannot be written.
    """
    options = _checked(benchmark, builds, options, validation_share)
    if not out.name:
        raise SourceError(f"{out} is not empty; name a new folder.")
    counts: Counter[str] = Counter()
    folder: OwnFolder | None = None
    try:
        if out.exists() and any(folder_entries(out)):
            raise SourceError(f"{out} is not empty; name a new folder.")
        folder = OwnFolder(out.parent, mode=0o777)
        (folder.path / IMAGES).mkdir()
        with _Rows(folder.path) as rows:
            for build in builds:
                build.require_plain()
                for row in benchmark.training_rows(build, options):
                    rows.add(row, build, benchmark, counts)
            if not rows.components.members:
                reasons = "; ".join(f"{count}: {reason}" for reason, count in counts.items()) or "it has none"
                raise SourceError(
                    f"no training row can be made of {', '.join(str(b.path) for b in builds)} ({reasons})."
                )
            counts.update(rows.split(options.seed, validation_share))
        manifest = {
            "format": FORMAT,
            "benchmark": benchmark.name,
            "builds": [build.digest for build in builds],
            "options": asdict(options) | {"validation_share": validation_share},
            "rows": dict(counts),
        }
        _write_manifest(folder.path, manifest)
        return StagedSet(out, folder, TrainingSet.open(folder.path))
    except BaseException as error:
        if folder is not None:
            folder.remove()
        if isinstance(error, OSError):
            raise _unwritable(out, error) from error
        raise


def _unwritable(out: Path, error: OSError) -> StoreError:
    return write_error(out, error, "free some space" if is_disk_full(error) else "name another folder")


def record_tests(training_set: TrainingSet, tests: Sequence[str]) -> None:
    """State the digests of the builds that a training set was compared with in its manifest."""
    _write_manifest(training_set.path, {**read_manifest(training_set.path), "compared with": list(tests)})


def drop_rows(training_set: TrainingSet, left_out: Iterable[str]) -> int:
    """Remove rows, given as ``train.jsonl:7``, from a set that was just written, and the images that no other row has.

    Return the number of rows to learn from that are left.
    """
    names = set(left_out)
    manifest = read_manifest(training_set.path)
    rows = Counter[str](manifest.get("rows", {}))
    dropped = [row for part in PARTS for row in training_set.rows(part) if row.where in names]
    for row in dropped:
        rows.subtract([row.where.partition(".")[0], *([row.kind] if row.kind else [])])
    for part in PARTS:
        file = training_set.path / f"{part}.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for number, line in enumerate(lines, 1) if f"{file.name}:{number}" not in names))
    needed = {image for part in PARTS for row in training_set.rows(part) for image in row.all_images}
    for image in {image for row in dropped for image in row.all_images} - needed:
        image.unlink()
    rows["left out: test data"] = len(names)
    _write_manifest(training_set.path, {**manifest, "rows": dict(rows)})
    return rows[PARTS[0]]


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")


def _checked(
    benchmark: Benchmark, builds: Sequence[Build], options: TrainingOptions, validation_share: float
) -> TrainingOptions:
    """Return the options with the benchmark's defaults. Raises SpecError."""
    ranges.VALIDATION_SHARE.check("--validation-share", validation_share)
    if options.target not in TARGETS:
        raise SpecError(f"there is no target {options.target!r}; {did_you_mean(options.target, TARGETS)}")
    ranges.LIMIT.check("--limit", options.limit)
    return TrainingOptions(
        seed=options.seed,
        prompt_set=options.prompt_set or next(iter(benchmark.prompt_sets)),
        target=options.target,
        filter=training_filter(benchmark, builds, options.filter),
        limit=options.limit,
    )


def training_filter(benchmark: Benchmark, builds: Sequence[Build], name: str) -> str:
    """Return the filter ``name``, or the one that ``builds`` have if it is empty. Raises SpecError if they have another."""
    chosen, own = choose_filter(name, benchmark.name, benchmark.training_filters), benchmark.training_filter(builds)
    if name and own not in ("", chosen):
        raise SpecError(
            f"{', '.join(str(build.path) for build in builds)}: the samples are {own}; leave out --filter {name}, or name the "
            "build of other samples."
        )
    return own or chosen


class _Components:
    """Rows that belong together, since they share an example's group or an image (union-find)."""

    def __init__(self) -> None:
        self.members: list[int] = []
        self._parents: list[int] = []
        self._keys: dict[str, int] = {}

    def add(self, keys: Iterable[str]) -> None:
        place = len(self._parents)
        self._parents.append(place)
        self.members.append(place)
        for key in keys:
            other = self._keys.setdefault(key, place)
            self._parents[self._root(other)] = self._root(place)

    def components(self) -> dict[int, list[int]]:
        grouped: dict[int, list[int]] = {}
        for place in self.members:
            grouped.setdefault(self._root(place), []).append(place)
        return grouped

    def _root(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place


class _Rows:
    """Writer of the rows of a training set, which are split once all of them are known."""

    def __init__(self, folder: Path) -> None:
        self.components = _Components()
        self._folder = folder
        self._ids: list[str] = []
        self._file = folder / "rows.jsonl"
        self._lines: IO[str] | None = None
        self._seen: set[str] = set()

    def __enter__(self) -> _Rows:
        self._lines = self._file.open("w", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.close()
        self._file.unlink(missing_ok=True)

    def add(self, row: TrainingRow, build: Build, benchmark: Benchmark, counts: Counter[str]) -> None:
        """Add a row with its images; one that cannot be trained on is counted as left out."""
        media = [part for part in row.instance.parts if isinstance(part, Media)]
        if any(medium.modality != "image" for medium in media):
            counts["left out: sound, video or 3D"] += 1
            return
        if row.instance.id in self._seen:
            counts["left out: repeated"] += 1
            return
        self._seen.add(row.instance.id)
        own = row.own_images
        if own is None:
            pages = benchmark.pages(row.instance).own
            own = tuple(medium for medium in media if medium.sha256 in pages)
        try:
            images = [self._image(build, medium) for medium in media]
            shown = dict(zip(media, images, strict=True))
            own_images = dict.fromkeys(shown.get(medium) or self._image(build, medium) for medium in own)
        except MediaError as error:
            raise SourceError(f"{build.path}: {str(error).rstrip('.')}, or build it again.") from error
        assert self._lines is not None
        line = row_to_json(row, images, list(own_images), benchmark.name, build.digest)
        self._lines.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._ids.append(row.instance.id)
        self.components.add([f"group {row.instance.group}", *(f"image {medium.sha256}" for medium in media)])
        counts[row.kind] += 1

    def split(self, seed: int, validation_share: float) -> dict[str, int]:
        """Write the rows to the files of the two parts; return the numbers of rows."""
        assert self._lines is not None
        self._lines.close()
        groups = self.components.components()
        ranked = sorted(
            groups.values(), key=lambda places: digest([seed, "validation", min(self._ids[p] for p in places)])
        )
        held_out: set[int] = set()
        target = round(validation_share * len(self._ids))
        for places in ranked:
            # A large component, such as all rows of one picture, must not take the training's rows.
            is_first = target > 0 and not held_out and 2 * len(places) <= len(self._ids)
            if is_first or len(held_out) + len(places) <= target:
                held_out.update(places)
        files = [(self._folder / f"{part}.jsonl").open("w", encoding="utf-8") for part in PARTS]
        try:
            with self._file.open(encoding="utf-8") as lines:
                for place, line in enumerate(lines):
                    files[place in held_out].write(line)
        finally:
            for file in files:
                file.close()
        return {PARTS[0]: len(self._ids) - len(held_out), PARTS[1]: len(held_out)}

    def _image(self, build: Build, medium: Media) -> str:
        """Copy an image, with its marks drawn, and return its path below the folder."""
        path = build.media_path(medium)
        data, suffix = read_media(path, medium), medium.suffix
        if medium.marks:
            drawn = io.BytesIO()
            load_image(data, marks=medium.marks).save(drawn, "PNG")
            data, suffix = drawn.getvalue(), ".png"
        name = f"{IMAGES}/{hashlib.sha256(data).hexdigest()}{suffix}"
        if not (self._folder / name).exists():
            (self._folder / name).write_bytes(data)
        return name
