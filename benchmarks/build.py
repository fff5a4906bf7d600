"""A built benchmark: a folder that can be copied to another machine and run there.

::

    manifest.json     provenance: digests, counts, seed, options; no time, no path
    instances.jsonl   one JSON object a line, in the benchmark's own row format
    skipped.jsonl     one JSON object for each source row that was left out, or for a condition of one, with the reason
    warnings.jsonl    one JSON object for each row whose image or text may be useless, with the reason; only if there are any
    rows.jsonl        one JSON object for each row of a user's table that became an example; only if there are any
    media/            each medium once, named by the sha256 of its bytes
    audit.json        the audit of the questions, once it was made (benchmarks/build_audit.py)
    ...               other files for people to look at; the benchmark's documentation page lists them

A build is written to a hidden folder next to its destination and renamed once it is complete, so an interrupted build
leaves nothing that looks like a finished one.
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
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from benchmarks.errors import AnotherBuildError, BusyError, MediaError, NoAccessError, SourceError, SpecError
from benchmarks.hashed import HashOrder
from benchmarks.media import MISSING, UNSAFE
from benchmarks.rows.record_file import RecordFile
from benchmarks.text_model import Embedder, TextModel
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    check_file,
    exists,
    is_disk_full,
    make_folder,
    open_read,
    open_write,
    read_bytes,
    replace_file,
)
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.varied import MANIFEST_KEY
from benchmarks.vocabulary import Media, Modality, canonical_json, digest, digest_of_list

FORMAT = 1
_MANIFEST, _ROWS, _SKIPPED, _MEDIA = "manifest.json", "instances.jsonl", "skipped.jsonl", "media"
WARNINGS = "warnings.jsonl"
_BUILT_ROWS = "rows.jsonl"
_LARGEST_SHEET = 64 << 20
_LARGEST_MANIFEST = 1 << 26
_LONGEST_ROW = 1 << 26
_MEDIUM = re.compile(r"[0-9a-f]{64}\.[a-z0-9]{1,5}")
_SUFFIXES = {
    "image": ".png .jpg .jpeg .gif .webp .bmp .tif .tiff",
    "audio": ".wav .mp3 .flac .ogg",
    "video": ".mp4 .mov .mkv .webm .avi",
    "point_cloud": ".npy .npz .ply .obj .off .stl .glb",
}

REJECTED_SUFFIX = "-rejected"
"""The end of the name of the folder beside a constructed build that holds the samples a check rejected."""

Difficulty = Literal["near", "far"]
FalseText = Literal["first", "random"]

Renderer = Callable[[bytes, str, Modality], Sequence[bytes]]
"""A function from the bytes, suffix and modality of a 3D model or a video to its pictures (PNG). It raises MediaError."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a build: the seed, the target number of examples per stratum, and whether to replace another build.

    ``writer`` is the model that writes for the construction, ``checker`` the one that checks what it wrote, and ``checkers``
    all models that check. ``captioners`` describe media, by modality. ``embedder`` measures how similar texts are.
    ``render`` makes pictures of 3D models and videos; None makes no pictures. ``readers`` read the sources of a retrieval log
    alone. ``cluster`` is the column of the user's own rows that names their documents, if it is none of the known ones, and
    ``mapping`` the keys of their other columns, as ``--map`` has them.
    ``difficulty`` is the distance of generated wrong values from the right ones; None is near for the user's own rows, and the
    paper's construction for other sources. ``false_text`` is which of two false texts is given alone (mmkc-bench).
    ``captions`` is a file of captions by the id and the modality of their media (contra4). ``official_code`` is the user's
    clone of the benchmark's official code, whose prompts construct; None for the paper's (clash). ``extractor`` reads facts off
    pictures and texts (crosscheck-bench).
    """

    seed: int = 0
    per_stratum: int = 250
    cluster: str = ""
    mapping: str = ""
    difficulty: Difficulty | None = None
    false_text: FalseText = "first"
    replace: bool = False
    writer: TextModel | None = None
    checker: TextModel | None = None
    checkers: tuple[TextModel, ...] = ()
    captioners: Mapping[str, TextModel] = field(default_factory=dict)
    captions: Path | None = None
    official_code: Path | None = None
    extractor: TextModel | None = None
    embedder: Embedder | None = None
    readers: tuple[TextModel, ...] = ()
    render: Renderer | None = None


@dataclass(frozen=True, slots=True)
class BuiltRow:
    """A row of a user's table that became an example.

    Attributes:
        row: Its place in the table, such as "rows.csv:3"; the example's id in a build that does not record places.
        group: The example's id.
        cells: Its filled cells by column, with the sha256 of an image in place of its name; empty if they are not recorded.
        picture: The name of the image's file, with the page of a PDF, for people; empty if it has none or is not recorded.
    """

    row: str
    group: str
    cells: Mapping[str, Any]
    picture: str = ""


@dataclass(frozen=True)
class Build:
    """A built benchmark on disk."""

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> Build:
        """Open the build in folder ``path``. Raises SourceError if it is not a build, or if its rows were changed."""
        try:
            manifest = read_manifest(path)
            with open_read(path, _ROWS) as stream:
                rows = hashlib.file_digest(stream, "sha256").hexdigest()
        except UnsafeFileError as error:
            raise SourceError(str(error)) from error
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{path} is not a built benchmark ({_cause(error)}): it needs manifest.json, instances.jsonl "
                "and media/. Create one with `rashomon build`."
            ) from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or "benchmark" not in manifest:
            raise SourceError(f"{path} has another build format; rebuild it with `rashomon build`.")
        if manifest.get("instances_sha256") != rows:
            raise SourceError(f"{path}/instances.jsonl was changed after the build; rebuild the benchmark.")
        return cls(path, manifest)

    @cached_property
    def digest(self) -> str:
        """The sha256 of the manifest, which holds the digests of everything else."""
        return digest(self.manifest)

    @property
    def benchmark(self) -> str:
        """The name of the built benchmark."""
        return str(self.manifest["benchmark"])

    @property
    def is_varied(self) -> bool:
        """True if it repeats the examples of another build under levels of factors."""
        return MANIFEST_KEY in self.manifest

    def require_plain(self) -> None:
        """Raise SpecError for a varied build, whose rows are another build's."""
        if self.is_varied:
            raise SpecError(f"{self.path} repeats the examples of another build; name the build that it was made from.")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of ``instances.jsonl``, in order.

        Raises SourceError at a row that is not a JSON object and, after the last row, if they are not those of the manifest.
        """
        rows = hashlib.sha256()
        with open_read(self.path, _ROWS) as lines:
            number = 0
            while line := lines.readline(_LONGEST_ROW + 1):
                number += 1
                rows.update(line)
                try:
                    row = parse_json(line, _LONGEST_ROW)
                except OutsideJSONError as error:
                    raise SourceError(f"{self.path}/{_ROWS}:{number} is {error}; rebuild the benchmark.") from error
                if not isinstance(row, dict):
                    raise SourceError(f"{self.path}/{_ROWS}:{number} is not a JSON object; rebuild the benchmark.")
                yield row
        if rows.hexdigest() != self.manifest["instances_sha256"]:
            raise SourceError(f"{self.path}/{_ROWS} was changed after the build; rebuild the benchmark.")

    def built_rows(self) -> list[BuiltRow]:
        """Return the rows of the user's table that became examples, in the build's order. Raises SourceError if damaged."""
        try:
            with open_read(self.path, _BUILT_ROWS) as lines:
                rows = [parse_json(line, _LONGEST_ROW) for line in lines]
            return [
                BuiltRow(str(row["row"]), str(row["group"]), dict(row["cells"]), str(row.get("picture", "")))
                for row in rows
            ]
        except FileNotFoundError:
            groups = (str(row["group"]) for row in self.rows() if "group" in row)  # not every benchmark's rows have one
            return [BuiltRow(group, group, {}) for group in dict.fromkeys(groups)]
        except (OSError, UnsafeFileError, ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{self.path}/{_BUILT_ROWS} is damaged; build again.") from error

    def left_out_rows(self) -> frozenset[str]:
        """Return the places of the source rows that became no example under any condition. Raises SourceError if damaged."""
        try:
            with open_read(self.path, _SKIPPED) as lines:
                rows = [parse_json(line, _LONGEST_ROW) for line in lines]
            return frozenset(str(row["row"]) for row in rows if "condition" not in row)
        except (OSError, UnsafeFileError, ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{self.path}/{_SKIPPED} is missing or damaged; build again.") from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise SourceError instead of what a row or a manifest raises where its benchmark cannot read it."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
            raise SourceError(
                f"{self.path} is not as {self.benchmark} writes its builds ({what}); rebuild it with `rashomon build`."
            ) from error

    def media_path(self, media: Media) -> Path:
        """Return the path of a medium. Raises MediaError if its name is invalid or it is no regular file of the build."""
        return media_path(self.path, media)


def _cause(error: Exception) -> str:
    """Return in a few words why a build cannot be opened."""
    if isinstance(error, OSError):
        return (error.strerror or "it cannot be read").lower()
    return f"its manifest is {error}" if isinstance(error, OutsideJSONError) else "its manifest is damaged"


def read_manifest(build: Path) -> Any:
    """Return the manifest of the build in a folder, as JSON. Raises OSError, OutsideJSONError or UnsafeFileError."""
    return parse_json(read_bytes(build, _MANIFEST, limit=_LARGEST_MANIFEST))


def media_path(build: Path, media: Media) -> Path:
    """Return the path of a medium of the build in folder ``build``: never outside the folder, never an executable type.

    Raises MediaError if the name is not a medium's name, or the file is missing, a link or not a regular file.
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


def staging_folder(out: Path) -> Path:
    """Return the hidden folder in which a build is written before it is renamed to ``out``."""
    return out.parent / f".{out.name}.building"


class BuildWriter:
    """Writer of a build: it fills a hidden folder next to ``out``, which :meth:`finish` renames to ``out``.

    Use it as a context manager: leaving the block without :meth:`finish` removes what was written. ``skipped`` counts the
    rows that were left out, by source and by the reason up to its first colon. Entering the block raises SourceError if
    ``out`` cannot be written or another process is building it.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.skipped: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._folder = staging_folder(out)
        self._media = RecordFile()  # their names
        self._known_media: set[int] = set()  # the first 128 bits of digests of their names
        self._rows = 0
        self._hash = hashlib.sha256()
        self._streams: dict[str, IO[bytes]] = {}
        self._in_place = False

    def __enter__(self) -> Self:
        if self.out.exists() and self.out.samefile(Path.cwd()):
            raise SourceError(f"{self.out} is the current folder, which cannot be replaced; name another folder.")
        busy = f"another process is building {self.out}; wait for it or name another folder."
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(make_folder(self.out.parent, self._folder.name), os.O_RDONLY | os.O_NOFOLLOW)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._lock), os.stat(self._folder)):
                raise BusyError(busy)  # the other process renamed it after we opened it
        except BlockingIOError as error:
            os.close(self._lock)
            raise BusyError(busy) from error
        except UnsafeFileError as error:
            raise SourceError(str(error)) from error
        except OSError as error:
            if is_disk_full(error):
                raise
            raise NoAccessError(f"cannot build in {self.out.parent}: {error.strerror}; name another folder.") from error
        try:
            self._restore_replaced()
            for leftover in self._folder.iterdir():  # of an interrupted build
                _remove(leftover)
            make_folder(self._folder, _MEDIA)
            for name in (_ROWS, _SKIPPED):
                self._open(name)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            for stream in self._streams.values():
                with suppress(OSError):  # on a full disk; finish has flushed a complete build
                    stream.close()
            if not self._in_place:
                shutil.rmtree(self._folder, ignore_errors=True)
        finally:
            os.close(self._lock)

    def add_media(self, data: bytes, suffix: str) -> Media:
        """Store a medium's bytes, once for equal bytes; ``suffix`` includes the dot."""
        media = Media(hashlib.sha256(data).hexdigest(), suffix)
        if not self.has_media(media):
            replace_file(self._folder, f"{_MEDIA}/{media.name}", data)
            self._media.append(media.name)
            self._known_media.add(_media_key(media))
        return media

    def has_media(self, media: Media) -> bool:
        """Return whether :meth:`add_media` has stored this medium."""
        return _media_key(media) in self._known_media

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Append one instance row."""
        line = (
            canonical_json(row).encode("utf-8", "backslashreplace") + b"\n"
        )  # writes a lone surrogate as JSON escapes it
        self._hash.update(line)
        self._streams[_ROWS].write(line)
        self._rows += 1

    def add_skipped(self, source: str, row: str, reason: str, condition: str = "", detail: str = "") -> None:
        """Record a source row that was left out; ``row`` locates it for a person, for example by file and line.

        With ``condition`` the row is used, but not under this condition. ``detail``, such as the name of a missing file, stands
        apart from the reason, so that reasons can be counted.
        """
        fields = {"source": source, "row": row, "reason": reason}
        fields |= ({"condition": condition} if condition else {}) | ({"detail": detail} if detail else {})
        self._write(_SKIPPED, fields)
        if not condition:
            self.skipped[source][reason.partition(":")[0]] += 1

    def add_warning(self, row: str, warning: str) -> None:
        """Record a used row whose image or text may be useless."""
        self._write(WARNINGS, {"row": row, "warning": warning})

    def add_built_row(self, row: BuiltRow) -> None:
        """Record a row of the user's table that became an example; a run does not read it."""
        self._write(_BUILT_ROWS, asdict(row))

    def _open(self, name: str) -> IO[bytes]:
        if name not in self._streams:
            self._streams[name] = open_write(self._folder, name, new=True)
        return self._streams[name]

    def _write(self, name: str, line: Mapping[str, Any]) -> None:
        self._open(name).write(canonical_json(line).encode("utf-8", "backslashreplace") + b"\n")

    def add_file(self, name: str, data: bytes) -> None:
        """Add a file for people to look at, which no run reads."""
        replace_file(self._folder, name, data)

    def add_sheet(self, name: str, data: bytes) -> None:
        """Add a file for people to fill in. One of the replaced build that differs is kept, as ``previous-NAME``."""
        self.add_file(name, data)
        for candidate in (name, f"previous-{name}"):
            with suppress(OSError, UnsafeFileError):
                previous = read_bytes(self.out, candidate, limit=_LARGEST_SHEET)
                if previous != data:
                    self.add_file(f"previous-{name}", previous)
                    return

    def finish(self, manifest: Mapping[str, Any], *, replace: bool = False) -> Build:
        """Complete the build with ``manifest``, to which the format, counts of rows and media, and digests are added.

        An existing build at ``out`` is replaced if it is the same one (which repairs it) or if ``replace`` is true. Raises
        AnotherBuildError otherwise, and SourceError if ``out`` holds other files.
        """
        contents = {
            **manifest,
            "format": FORMAT,
            "instances": self._rows,
            "instances_sha256": self._hash.hexdigest(),
            "media": len(self._media),
            "media_sha256": self._media_digest(),
        }
        manifest_text = json.dumps(contents, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        replace_file(self._folder, _MANIFEST, manifest_text.encode("utf-8"))
        for stream in self._streams.values():
            stream.flush()
            os.fsync(stream.fileno())
        if self.out.exists():
            if not exists(self.out, _MANIFEST) and any(folder_entries(self.out)):
                raise SourceError(f"{self.out} contains other files; name a new or empty folder with --out.")
            if not replace and any(folder_entries(self.out)) and not self._has_digest(digest(contents)):
                raise AnotherBuildError(
                    f"{self.out} contains another or a damaged build; name another folder with --out, or add --replace."
                )
        self._put_in_place()
        return Build.open(self.out)

    def _media_digest(self) -> str:
        """Return the digest of the sorted names of the media."""
        order = HashOrder()
        for number in range(len(self._media)):
            order.add(int(self._media[number][:16], 16), number)
        return digest_of_list(
            name for _, group in groupby(order, key=itemgetter(0)) for name in sorted(self._media[n] for _, n in group)
        )

    def _has_digest(self, expected: str) -> bool:
        """Return whether the build that is already at ``out`` has this digest."""
        try:
            return Build.open(self.out).digest == expected
        except SourceError:
            return False

    def _restore_replaced(self) -> None:
        """Put the build back that a killed process had moved away, and not yet replaced."""
        old = self._replaced
        if not os.path.lexists(self.out) and old.is_dir() and not old.is_symlink():
            os.rename(old, self.out)

    @property
    def _replaced(self) -> Path:
        return self.out.with_name(f".{self.out.name}.replaced")

    def _put_in_place(self) -> None:
        # The old build is renamed before it is deleted, so that no half-deleted build is ever at ``out``.
        old = self._replaced
        with suppress(FileNotFoundError):
            _remove(old)
        if os.path.lexists(self.out):
            os.rename(self.out, old)
        os.rename(self._folder, self.out)
        self._in_place = True
        with suppress(OSError):
            _remove(old)


def _media_key(media: Media) -> int:
    return int.from_bytes(hashlib.sha256(media.name.encode()).digest()[:16], "big")


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder and its contents; never the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
