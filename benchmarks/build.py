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
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from benchmarks.base import Media, Modality, canonical_json, digest
from benchmarks.errors import AnotherBuildError, MediaError, SourceError
from benchmarks.media import MISSING, UNSAFE
from benchmarks.text_model import Embedder, TextModel
from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    check_file,
    is_full,
    is_there,
    make_folder,
    open_read,
    open_write,
    read_bytes,
    replace_file,
)
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

FORMAT = 1
_MANIFEST, _ROWS, _SKIPPED, _MEDIA = "manifest.json", "instances.jsonl", "skipped.jsonl", "media"
_LARGEST_MANIFEST = 1 << 26
_LONGEST_ROW = 1 << 26
_MEDIUM = re.compile(r"[0-9a-f]{64}\.[a-z0-9]{1,5}")
_SUFFIXES = {
    "image": ".png .jpg .jpeg .gif .webp .bmp .tif .tiff",
    "audio": ".wav .mp3 .flac .ogg",
    "video": ".mp4 .mov .mkv .webm .avi",
    "point_cloud": ".npy .npz .ply .obj .off .stl .glb",
}

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
            manifest = read_manifest(path)
            with open_read(path, _ROWS) as stream:
                rows = hashlib.file_digest(stream, "sha256").hexdigest()
        except UnsafeFileError as error:
            raise SourceError(str(error)) from error
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
        with open_read(self.path, _ROWS) as lines:
            number = 0
            while line := lines.readline(_LONGEST_ROW + 1):
                number += 1
                try:
                    row = parse_json(line, _LONGEST_ROW)
                except OutsideJSONError as error:
                    raise SourceError(f"{self.path}/{_ROWS}:{number} is {error}; build the benchmark again.") from error
                if not isinstance(row, dict):
                    raise SourceError(f"{self.path}/{_ROWS}:{number} is not a JSON object; build the benchmark again.")
                yield row

    def media_path(self, media: Media) -> Path:
        """Where a medium lies. Raises MediaError where that is no regular file of the build, or no medium's name."""
        return media_path(self.path, media)


def read_manifest(build: Path) -> Any:
    """The manifest of the build in a folder, as JSON. Raises OSError, OutsideJSONError or UnsafeFileError."""
    return parse_json(read_bytes(build, _MANIFEST, limit=_LARGEST_MANIFEST))


def media_path(build: Path, media: Media) -> Path:
    """Where a medium of the build in folder ``build`` lies: never outside it, never a file that could be run.

    Raises MediaError where its name is no medium's, it is not there, or what is there is a link or no regular file.
    """
    name = media.name
    if not _MEDIUM.fullmatch(name) or media.suffix not in _SUFFIXES.get(media.modality, "").split():
        raise MediaError(f"the {media.modality} {name[:80]!r}", "is no name of a medium; build it again")
    try:
        if check_file(build, f"{_MEDIA}/{name}", write=False):
            return build / _MEDIA / name
    except OSError as error:
        raise MediaError(f"the {media.modality} {name!r}", f"cannot be read ({error.strerror})") from error
    except UnsafeFileError as error:
        raise MediaError(f"the {media.modality} {name!r}", UNSAFE) from error
    raise MediaError(f"the {media.modality} {name!r}", MISSING)


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
        self._streams: list[IO[bytes]] = []
        self._in_place = False

    def __enter__(self) -> Self:
        if self.out.exists() and self.out.samefile(Path.cwd()):
            raise SourceError(f"{self.out} is the folder you are in, which cannot be replaced; name another one.")
        taken = f"another process is building {self.out}; wait for it or name another folder."
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(make_folder(self.out.parent, self._folder.name), os.O_RDONLY | os.O_NOFOLLOW)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._lock), os.stat(self._folder)):
                raise SourceError(taken)  # it was put in place between our two steps
        except BlockingIOError as error:
            os.close(self._lock)
            raise SourceError(taken) from error
        except UnsafeFileError as error:
            raise SourceError(str(error)) from error
        except OSError as error:
            if is_full(error):
                raise
            raise SourceError(f"cannot build in {self.out.parent}: {error.strerror}; name another folder.") from error
        try:
            for left in self._folder.iterdir():  # an interrupted build's
                _remove(left)
            make_folder(self._folder, _MEDIA)
            for name in (_ROWS, _SKIPPED):
                self._streams.append(open_write(self._folder, name, new=True))
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        try:
            for stream in self._streams:
                with suppress(OSError):  # a full disk takes no last piece; what is complete was flushed by finish
                    stream.close()
            if not self._in_place:
                shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            os.close(self._lock)

    def add_media(self, data: bytes, suffix: str) -> Media:
        """Store a medium's bytes once; ``suffix`` with its dot."""
        media = Media(hashlib.sha256(data).hexdigest(), suffix)
        if media.name not in self._media:
            replace_file(self._folder, f"{_MEDIA}/{media.name}", data)
            self._media.add(media.name)
        return media

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Append one instance row."""
        line = canonical_json(row).encode("utf-8", "backslashreplace") + b"\n"  # JSON's own escape of a lone surrogate
        self._hash.update(line)
        self._streams[0].write(line)
        self._rows += 1

    def add_skipped(self, source: str, row: str, reason: str) -> None:
        """Note a source row that was left out; ``row`` says which one, as a person would find it."""
        line = canonical_json({"source": source, "row": row, "reason": reason})
        self._streams[1].write(line.encode("utf-8", "backslashreplace") + b"\n")
        self.skipped[source][reason.partition(":")[0]] += 1

    def add_file(self, name: str, data: bytes) -> None:
        """Put a file beside the instances that people may look at and no run reads."""
        replace_file(self._folder, name, data)

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
        replace_file(self._folder, _MANIFEST, manifest_text.encode("utf-8"))
        for stream in self._streams:
            stream.flush()
            os.fsync(stream.fileno())
        if self.out.exists():
            if not is_there(self.out, _MANIFEST) and any(self.out.iterdir()):
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
        with suppress(FileNotFoundError):
            _remove(old)
        if os.path.lexists(self.out):
            os.rename(self.out, old)
        os.rename(self._folder, self.out)
        self._in_place = True
        with suppress(OSError):
            _remove(old)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder with what is in it; nothing that a link leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
