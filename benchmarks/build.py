"""A built benchmark: a folder that can be copied to another machine and run there.

::

    manifest.json     what it was made of and how: digests, counts, seed, options; no time, no path
    instances.jsonl   one JSON object a line, in the benchmark's own row format
    skipped.jsonl     one JSON object for every source row that was left out, with the reason
    media/            every medium once, named by the sha256 of its bytes
    ...               what else a construction leaves for people to look at; its benchmark's page says what

A build is written beside its place under a hidden name and renamed when it is complete, so that an interrupted
build leaves nothing that looks like one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from benchmarks.asking import Embedder, TextModel
from benchmarks.base import Media, Modality, canonical_json, digest
from benchmarks.errors import AnotherBuildError, SourceError
from benchmarks.outside_json import OutsideJSONError, parse_json, read_json_file

FORMAT = 1

Renderer = Callable[[bytes, str, Modality], Sequence[bytes]]
"""The pictures (PNG) of a 3D model or a video, from its bytes, suffix and modality. Raises MediaError."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build is asked for: its seed, the target of examples a stratum, and whether to replace another one.

    ``writer`` is the model a construction lets write, ``checker`` the one that checks what was written, ``checkers`` all of
    them. ``captioners`` describe media, by modality, ``embedder`` says which texts are near. ``render`` makes pictures of
    3D models and videos; None where none are asked for.
    """

    seed: int = 0
    per_stratum: int = 250
    replace: bool = False
    writer: TextModel | None = None
    checker: TextModel | None = None
    checkers: tuple[TextModel, ...] = ()
    captioners: Mapping[str, TextModel] = field(default_factory=dict)
    embedder: Embedder | None = None
    render: Renderer | None = None


@dataclass(frozen=True)
class Build:
    """A built benchmark on disk."""

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> Build:
        """The build in folder ``path``. Raises SourceError if it is not one, or its rows were changed."""
        try:
            manifest = read_json_file(path / "manifest.json")
            rows = hashlib.sha256((path / "instances.jsonl").read_bytes()).hexdigest()
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{path} is not a built benchmark ({error.__class__.__name__}): it needs manifest.json, instances.jsonl "
                "and media/; make one with `rashomon build`."
            ) from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or "benchmark" not in manifest:
            raise SourceError(f"{path} was built in another format; build it again with `rashomon build`.")
        if manifest.get("instances_sha256") != rows:
            raise SourceError(f"{path}/instances.jsonl was changed after it was built; build it again.")
        return cls(path, manifest)

    @cached_property
    def digest(self) -> str:
        """sha256 of the manifest, which holds the digests of all the rest."""
        return digest(self.manifest)

    @property
    def benchmark(self) -> str:
        """The name of the benchmark this is a build of."""
        return str(self.manifest["benchmark"])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of ``instances.jsonl``, in order. Raise SourceError at one that is not a JSON object."""
        with (self.path / "instances.jsonl").open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = parse_json(line)
                except OutsideJSONError as error:
                    raise SourceError(f"{lines.name}:{number} is {error}; build the benchmark again.") from error
                if not isinstance(row, dict):
                    raise SourceError(f"{lines.name}:{number} is not a JSON object; build the benchmark again.")
                yield row

    def media_path(self, media: Media) -> Path:
        """Where a medium lies; whether it is there is found when it is opened."""
        return self.path / "media" / media.name


def under_way(out: Path) -> Path:
    """The folder in which a build is written before it is put in place as ``out``."""
    return out.parent / f".{out.name}.building"


class BuildWriter:
    """Writes a build beside ``out`` and puts it in place by one rename in :meth:`finish`.

    Use it as a context manager: leaving the block without :meth:`finish` removes what was written. ``skipped`` counts what
    was left out, by source and by the reason up to its first colon. Raises SourceError where ``out`` cannot be written or
    another process is building it.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.skipped: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._folder = under_way(out)
        self._media: set[str] = set()
        self._rows = 0
        self._hash = hashlib.sha256()
        self._in_place = False

    def __enter__(self) -> Self:
        if self.out.exists() and self.out.samefile(Path.cwd()):
            raise SourceError(f"{self.out} is the folder you are in, which cannot be replaced; name another one.")
        taken = f"another process is building {self.out}; wait for it or name another folder."
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._lock), os.stat(self._folder)):
                raise SourceError(taken)  # it was put in place between our two steps
        except BlockingIOError as error:
            os.close(self._lock)
            raise SourceError(taken) from error
        except OSError as error:
            raise SourceError(f"cannot build in {self.out.parent}: {error.strerror}; name another folder.") from error
        for left in self._folder.iterdir():  # an interrupted build's
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        (self._folder / "media").mkdir()
        self._instances: IO[bytes] = (self._folder / "instances.jsonl").open("wb")
        self._skipped: IO[bytes] = (self._folder / "skipped.jsonl").open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._instances.close()
        self._skipped.close()
        if not self._in_place:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def add_media(self, data: bytes, suffix: str) -> Media:
        """Store a medium's bytes once; ``suffix`` with its dot."""
        media = Media(hashlib.sha256(data).hexdigest(), suffix)
        if media.name not in self._media:
            _write_durably(self._folder / "media" / media.name, data)
            self._media.add(media.name)
        return media

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Append one instance row."""
        line = canonical_json(row).encode("utf-8", "backslashreplace") + b"\n"  # JSON's own escape of a lone surrogate
        self._hash.update(line)
        self._instances.write(line)
        self._rows += 1

    def add_skipped(self, source: str, row: str, reason: str) -> None:
        """Note a source row that was left out; ``row`` says which one, as a person would find it."""
        line = canonical_json({"source": source, "row": row, "reason": reason})
        self._skipped.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self.skipped[source][reason.partition(":")[0]] += 1

    def add_file(self, name: str, data: bytes) -> None:
        """Put a file beside the instances that people may look at and no run reads."""
        _write_durably(self._folder / name, data)

    def finish(self, manifest: Mapping[str, Any], *, replace: bool = False) -> Build:
        """Complete the build with ``manifest`` (the writer adds format, counts of rows and media, and digests).

        A build that is already at ``out`` gives way if it is the same one (and so is mended), or if ``replace``; else
        AnotherBuildError.
        """
        whole = {
            **manifest,
            "format": FORMAT,
            "instances": self._rows,
            "instances_sha256": self._hash.hexdigest(),
            "media": len(self._media),
            "media_sha256": digest(sorted(self._media)),
        }
        manifest_text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        _write_durably(self._folder / "manifest.json", manifest_text.encode("utf-8"))
        for stream in (self._instances, self._skipped):
            stream.flush()
            os.fsync(stream.fileno())
        if self.out.exists():
            if not (self.out / "manifest.json").exists() and any(self.out.iterdir()):
                raise SourceError(f"{self.out} holds other files; name an empty or new folder with --out.")
            if not replace and any(self.out.iterdir()) and not self._is_this_build(digest(whole)):
                raise AnotherBuildError(
                    f"{self.out} holds another build, or a damaged one; name another folder with --out, or add --replace."
                )
        self._put_in_place()
        return Build.open(self.out)

    def _is_this_build(self, wanted: str) -> bool:
        try:
            return Build.open(self.out).digest == wanted
        except SourceError:
            return False

    def _put_in_place(self) -> None:
        # The old build goes by a rename too: deleted where it stands, it would for a while be half of one.
        old = self.out.with_name(f".{self.out.name}.replaced")
        shutil.rmtree(old, ignore_errors=True)
        if self.out.exists():
            os.rename(self.out, old)
        os.rename(self._folder, self.out)
        self._in_place = True
        shutil.rmtree(old, ignore_errors=True)


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
