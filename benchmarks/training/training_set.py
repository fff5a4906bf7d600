"""Training set: a folder of rows in the format of mlx-vlm's trainer, and their images by content.

::

    train.jsonl        rows to learn from
    validation.jsonl   rows of other examples and other images, whose loss is measured
    images/            each image once, named by the sha256 of its bytes
    manifest.json      provenance: builds, options, counts, the test data that it was checked against

A folder with ``train.jsonl`` alone, made elsewhere, can be read too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import IO, Any

from benchmarks import number_ranges as ranges
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import MediaError, SourceError, SpecError, did_you_mean
from benchmarks.media import LARGEST_FILE, load_image, read_media
from benchmarks.rows.base import RowProblem
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.training_rows import TARGETS, TrainingOptions, TrainingRow, choose_filter, row_to_json
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import is_disk_full
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.vocabulary import Media, Message, Part, Text, digest

PARTS = ("train", "validation")
"""The names of the files of rows, without ``.jsonl``."""

_MANIFEST, _IMAGES = "manifest.json", "images"
_FORMAT = 1
_LAYOUT = (
    'train.jsonl with rows such as {"images": ["images/1.png"], "messages": [{"role": "user", "content": ...}, '
    '{"role": "assistant", "content": ...}]}'
)
_ROLES = ("system", "user", "assistant")
_TEXTS = ("group", "question", "kind", "rejected", "benchmark", "condition")
_SHA256 = re.compile("[0-9a-f]{64}")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A row of a training set.

    ``messages`` are the prompt's; an image is named in them by its place in the row. ``images`` are its files, ``digests`` the
    sha256 of the images that they were made from. ``rejected`` is an answer that the target is to be preferred to, if any.
    ``benchmark``, ``condition``, ``references`` and ``strata`` are those of the instance that the row was made of; they are
    empty in sets that were made elsewhere, or by earlier versions.
    """

    where: str
    messages: tuple[Message, ...]
    target: str
    images: tuple[Path, ...]
    digests: tuple[str, ...] = ()
    group: str = ""
    question: str = ""
    kind: str = ""
    rejected: str = ""
    benchmark: str = ""
    condition: str = ""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """The texts of the prompt, in order."""
        return "\n".join(part.text for message in self.messages for part in message.parts if isinstance(part, Text))

    @property
    def turns(self) -> list[str]:
        """The texts of each of the prompt's messages; the system's message is left out."""
        return [
            "\n".join(part.text for part in message.parts if isinstance(part, Text))
            for message in self.messages
            if message.role != "system"
        ]


@dataclass(frozen=True)
class TrainingSet:
    """A training set on disk."""

    path: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> TrainingSet:
        """Open the training set in folder ``path``. Raises SourceError if it has no rows to learn from."""
        if not is_training_set(path):
            raise SourceError(f"{path} is not a training set: it needs {_LAYOUT}. `rashomon training` writes one.")
        return cls(path, _manifest(path))

    @property
    def builds(self) -> frozenset[str]:
        """The digests of the builds that its manifest says it was made from."""
        builds = self.manifest.get("builds")
        return (
            frozenset(value for value in builds if isinstance(value, str)) if isinstance(builds, list) else frozenset()
        )

    @cached_property
    def image_digests(self) -> Mapping[Path, str]:
        """The sha256 of the bytes of each image, in the order of the rows.

        Raises SourceError for a row that cannot be used, and for an image that is not the one that was written.
        """
        digests: dict[Path, str] = {}
        is_own = self.manifest.get("format") == _FORMAT
        for image in (image for part in PARTS for row in self.rows(part) for image in row.images):
            if image in digests:
                continue
            try:
                with image.open("rb") as stream:
                    digests[image] = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise SourceError(f"{image} cannot be read ({error.strerror}); put the image in its place.") from error
            if is_own and _SHA256.fullmatch(image.stem) and image.stem != digests[image]:
                raise SourceError(f"{image} was changed after it was written; write the training set again.")
        return digests

    @cached_property
    def digest(self) -> str:
        """The sha256 of its rows and images. Raises SourceError as :attr:`image_digests`."""
        contents = hashlib.sha256()
        for name in PARTS:
            file = self.path / f"{name}.jsonl"
            if file.is_file():
                with file.open("rb") as stream:
                    contents.update(hashlib.file_digest(stream, "sha256").digest())
        for image_digest in self.image_digests.values():
            contents.update(bytes.fromhex(image_digest))
        return contents.hexdigest()

    def rows(self, part: str) -> Iterator[ChatRow]:
        """Yield the rows of ``train`` or ``validation``. Raises SourceError at a row that cannot be used, with the reason."""
        file = self.path / f"{part}.jsonl"
        if not file.is_file():
            return
        for number, fields in read_json_lines(file):
            where = f"{file.name}:{number}"
            try:
                if isinstance(fields, RowProblem):
                    raise fields
                yield _parsed(fields, where, self.path)
            except RowProblem as problem:
                raise SourceError(
                    f"{self.path}: {where}: {problem}; correct the row. A training set has {_LAYOUT}."
                ) from problem


def is_training_set(path: Path) -> bool:
    """Return whether a folder has rows to learn from."""
    return os.path.isfile(path / f"{PARTS[0]}.jsonl")


def _parsed(fields: Any, where: str, folder: Path) -> ChatRow:
    if not isinstance(fields, Mapping):
        raise RowProblem("the row is not a JSON object")
    images = fields.get("images", fields.get("image", []))
    images = [images] if isinstance(images, str) else images
    if not isinstance(images, list) or not all(isinstance(image, str) and image for image in images):
        raise RowProblem("the images are not a list of files")
    if any(key in fields for key in ("audio", "audios", "video", "videos")):
        raise RowProblem("the row has sound or video, which cannot be trained on here")
    paths = tuple(folder / image for image in images)
    if missing := next((path for path in paths if not os.path.isfile(path)), None):
        raise RowProblem(f"the image {missing.name!r} is missing")
    if large := next((path for path in paths if path.stat().st_size > LARGEST_FILE), None):
        raise RowProblem(f"the image {large.name!r} has more than {LARGEST_FILE >> 20} MiB")
    turns = fields.get("messages", fields.get("conversations"))
    if not isinstance(turns, list) or len(turns) < 2:
        raise RowProblem("the row has no messages, or only one")
    messages, target = _messages(turns, paths)
    texts = {key: str(fields.get(key) or "") for key in _TEXTS}
    references, strata = _references(fields.get("references")), _strata(fields.get("strata"))
    values = [value for answers in references.values() for value in answers] + [*strata.values()]
    parts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    if any(_SURROGATE.search(text) for text in (target, *parts, *texts.values(), *values)):
        raise RowProblem("a text has half of a surrogate pair, which is no character")
    known = fields.get("image_digests")
    digests = tuple(value for value in known if isinstance(value, str)) if isinstance(known, list) else ()
    return ChatRow(where, messages, target, paths, digests, **texts, references=references, strata=strata)


def _references(value: Any) -> dict[str, tuple[str, ...]]:
    """Return the answers that each source of a row supports; empty for what is no such mapping."""
    sources = value.items() if isinstance(value, Mapping) else ()
    lists = {source: answers for source, answers in sources if isinstance(answers, list)}
    return {source: tuple(answer for answer in answers if isinstance(answer, str)) for source, answers in lists.items()}


def _strata(value: Any) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, Mapping) else {}


def _messages(turns: Sequence[Any], paths: Sequence[Path]) -> tuple[tuple[Message, ...], str]:
    """Return the prompt's messages and the target, which is the last turn."""
    media = [Media(f"{number:064x}", path.suffix) for number, path in enumerate(paths)]
    waiting = list(media)
    messages = []
    for turn in turns:
        role = turn.get("role") if isinstance(turn, Mapping) else None
        if role not in _ROLES:
            raise RowProblem(f"the role of a message is not one of {', '.join(_ROLES)}")
        messages.append(Message(role, tuple(_content(turn.get("content"), waiting))))
    if messages[-1].role != "assistant":
        raise RowProblem("the last message is not the assistant's")
    if all(message.role == "system" for message in messages[:-1]):
        raise RowProblem("there is no message before the answer, except the system's")
    target = "".join(part.text for part in messages[-1].parts if isinstance(part, Text)).strip()
    if not target:
        raise RowProblem("the answer to learn is empty")
    if len(waiting) == len(media):  # the texts say nothing of images, which mlx-vlm then puts first
        first = next(place for place, message in enumerate(messages) if message.role != "system")
        messages[first] = Message(messages[first].role, (*media, *messages[first].parts))
    elif waiting:
        raise RowProblem("the messages name fewer images than the row has")
    return tuple(messages[:-1]), target


def _content(content: Any, waiting: list[Media]) -> Iterator[Part]:
    if not isinstance(content, str | list | NoneType):
        raise RowProblem("a message's content is neither text nor a list")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "image":
            if not waiting:
                raise RowProblem("the messages name more images than the row has")
            yield waiting.pop(0)
        elif kind == "text" and isinstance(text := part.get("text", part.get("content")), str):
            yield Text(text)
        else:
            raise RowProblem("a message's content is neither text nor an image")


# --- writing -------------------------------------------------------------------------------------


def staging_folder(out: Path) -> Path:
    """Return the hidden folder in which a training set is written before it is renamed to ``out``."""
    return out.with_name(f".{out.name}.writing")


def write_training_set(
    benchmark: Benchmark, builds: Sequence[Build], out: Path, options: TrainingOptions, validation_share: float
) -> TrainingSet:
    """Write the training rows of ``builds`` to the staging folder of ``out``; :func:`put_in_place` renames it.

    Examples that share a group or an image stay together. Raises SpecError for options that the benchmark does not have,
    SourceError if no row can be used, an image is gone, or ``out`` cannot be written or is not empty.
    """
    options = _checked(benchmark, builds, options, validation_share)
    if not out.name:
        raise SourceError(f"{out} is not empty; name a new folder.")
    new = staging_folder(out)
    counts: Counter[str] = Counter()
    try:
        if out.exists() and any(folder_entries(out)):
            raise SourceError(f"{out} is not empty; name a new folder.")
        shutil.rmtree(new, ignore_errors=True)
        (new / _IMAGES).mkdir(parents=True)
        with _Rows(new) as rows:
            for build in builds:
                build.require_plain()
                for row in benchmark.training_rows(build, options):
                    rows.add(row, build, benchmark.name, counts)
            if not rows.components.members:
                reasons = "; ".join(f"{count}: {reason}" for reason, count in counts.items()) or "it has none"
                raise SourceError(
                    f"no training row can be made of {', '.join(str(b.path) for b in builds)} ({reasons})."
                )
            counts.update(rows.split(options.seed, validation_share))
        manifest = {
            "format": _FORMAT,
            "benchmark": benchmark.name,
            "builds": [build.digest for build in builds],
            "options": asdict(options) | {"validation_share": validation_share},
            "rows": dict(counts),
        }
        _write_manifest(new, manifest)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        advice = "free some space" if is_disk_full(error) else "name another folder"
        raise SourceError(f"cannot write the training set to {out}: {error.strerror}; {advice}.") from error
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return TrainingSet.open(new)


def put_in_place(out: Path) -> TrainingSet:
    """Rename the staging folder of ``out`` to ``out``. Raises SourceError."""
    try:
        if out.is_dir():
            out.rmdir()
        os.replace(staging_folder(out), out)
    except OSError as error:
        raise SourceError(f"cannot write the training set to {out}: {error.strerror}; name another folder.") from error
    return TrainingSet.open(out)


def discard(out: Path) -> None:
    """Remove the staging folder of ``out``."""
    shutil.rmtree(staging_folder(out), ignore_errors=True)


def record_tests(training_set: TrainingSet, tests: Sequence[str]) -> None:
    """State the digests of the builds that a training set was compared with in its manifest."""
    _write_manifest(training_set.path, {**_manifest(training_set.path), "compared with": list(tests)})


def drop_rows(training_set: TrainingSet, left_out: Iterable[str]) -> int:
    """Remove rows from a training set, given as ``train.jsonl:7``, and count them in its manifest.

    Return the number of rows to learn from that are left.
    """
    names = set(left_out)
    counts: Counter[str] = Counter()
    for part in PARTS:
        file = training_set.path / f"{part}.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        kept = [line for number, line in enumerate(lines, 1) if f"{file.name}:{number}" not in names]
        file.write_bytes(b"".join(kept))
        counts[part] = len(kept)
    manifest = _manifest(training_set.path)
    rows = {**manifest.get("rows", {}), **counts, "left out: test data": len(names)}
    _write_manifest(training_set.path, {**manifest, "rows": rows})
    return counts[PARTS[0]]


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in a folder; empty if there is none, or it cannot be read."""
    try:
        manifest = read_json_file(folder / _MANIFEST)
    except (OSError, OutsideJSONError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")


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

    def add(self, row: TrainingRow, build: Build, benchmark: str, counts: Counter[str]) -> None:
        """Add a row with its images; one that cannot be trained on is counted as left out."""
        media = [part for part in row.instance.parts if isinstance(part, Media)]
        if any(medium.modality != "image" for medium in media):
            counts["left out: sound, video or 3D"] += 1
            return
        if row.instance.id in self._seen:
            counts["left out: repeated"] += 1
            return
        self._seen.add(row.instance.id)
        try:
            images = [self._image(build, medium) for medium in media]
        except MediaError as error:
            raise SourceError(f"{build.path}: {str(error).rstrip('.')}, or build it again.") from error
        assert self._lines is not None
        line = row_to_json(row, images, benchmark, build.digest)
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
            import io

            drawn = io.BytesIO()
            load_image(data, marks=medium.marks).save(drawn, "PNG")
            data, suffix = drawn.getvalue(), ".png"
        name = f"{_IMAGES}/{hashlib.sha256(data).hexdigest()}{suffix}"
        if not (self._folder / name).exists():
            (self._folder / name).write_bytes(data)
        return name
