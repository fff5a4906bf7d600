"""The options and the writer of a built benchmark: a folder that can be copied to another machine and run there.

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
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from benchmarks.built_benchmark import BUILT_ROWS, FORMAT, MANIFEST, MEDIA, ROWS, SKIPPED
from benchmarks.built_benchmark import Build as Build
from benchmarks.built_benchmark import BuiltRow as BuiltRow
from benchmarks.built_benchmark import media_path as media_path
from benchmarks.built_benchmark import read_manifest as read_manifest
from benchmarks.errors import AnotherBuildError, BusyError, NoAccessError, SourceError
from benchmarks.hash_collections import HashOrder
from benchmarks.rows.record_file import RecordFile
from benchmarks.text_model import Embedder, TextModel
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    exists,
    is_disk_full,
    make_folder,
    open_write,
    read_bytes,
    replace_file,
)
from benchmarks.vocabulary import Media, Modality, canonical_json, digest, digest_of_list

WARNINGS = "warnings.jsonl"
_LARGEST_SHEET = 64 << 20

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
            make_folder(self._folder, MEDIA)
            for name in (ROWS, SKIPPED):
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
            replace_file(self._folder, f"{MEDIA}/{media.name}", data)
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
        self._streams[ROWS].write(line)
        self._rows += 1

    def add_skipped(self, source: str, row: str, reason: str, condition: str = "", detail: str = "") -> None:
        """Record a source row that was left out; ``row`` locates it for a person, for example by file and line.

        With ``condition`` the row is used, but not under this condition. ``detail``, such as the name of a missing file, stands
        apart from the reason, so that reasons can be counted.
        """
        fields = {"source": source, "row": row, "reason": reason}
        fields |= ({"condition": condition} if condition else {}) | ({"detail": detail} if detail else {})
        self._write(SKIPPED, fields)
        if not condition:
            self.skipped[source][reason.partition(":")[0]] += 1

    def add_warning(self, row: str, warning: str) -> None:
        """Record a used row whose image or text may be useless."""
        self._write(WARNINGS, {"row": row, "warning": warning})

    def add_built_row(self, row: BuiltRow) -> None:
        """Record a row of the user's table that became an example; a run does not read it."""
        self._write(BUILT_ROWS, asdict(row))

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
        replace_file(self._folder, MANIFEST, manifest_text.encode("utf-8"))
        for stream in self._streams.values():
            stream.flush()
            os.fsync(stream.fileno())
        if self.out.exists():
            if not exists(self.out, MANIFEST) and any(folder_entries(self.out)):
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
