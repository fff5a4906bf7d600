"""A built benchmark on disk, as a run reads it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media import MISSING, UNSAFE
from benchmarks.untrusted.safe_files import UnsafeFileError, check_file, open_read, read_bytes
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.varied_names import MANIFEST_KEY
from benchmarks.vocabulary import Media, digest

FORMAT = 1
MANIFEST, ROWS, SKIPPED, MEDIA = "manifest.json", "instances.jsonl", "skipped.jsonl", "media"
BUILT_ROWS = "rows.jsonl"
_LARGEST_MANIFEST = 1 << 26
_LONGEST_ROW = 1 << 26
_MEDIUM = re.compile(r"[0-9a-f]{64}\.[a-z0-9]{1,5}")
_SUFFIXES = {
    "image": ".png .jpg .jpeg .gif .webp .bmp .tif .tiff",
    "audio": ".wav .mp3 .flac .ogg",
    "video": ".mp4 .mov .mkv .webm .avi",
    "point_cloud": ".npy .npz .ply .obj .off .stl .glb",
}


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
            with open_read(path, ROWS) as stream:
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
        with open_read(self.path, ROWS) as lines:
            number = 0
            while line := lines.readline(_LONGEST_ROW + 1):
                number += 1
                rows.update(line)
                try:
                    row = parse_json(line, _LONGEST_ROW)
                except OutsideJSONError as error:
                    raise SourceError(f"{self.path}/{ROWS}:{number} is {error}; rebuild the benchmark.") from error
                if not isinstance(row, dict):
                    raise SourceError(f"{self.path}/{ROWS}:{number} is not a JSON object; rebuild the benchmark.")
                yield row
        if rows.hexdigest() != self.manifest["instances_sha256"]:
            raise SourceError(f"{self.path}/{ROWS} was changed after the build; rebuild the benchmark.")

    def built_rows(self) -> list[BuiltRow]:
        """Return the rows of the user's table that became examples, in the build's order. Raises SourceError if damaged."""
        try:
            with open_read(self.path, BUILT_ROWS) as lines:
                rows = [parse_json(line, _LONGEST_ROW) for line in lines]
            return [
                BuiltRow(str(row["row"]), str(row["group"]), dict(row["cells"]), str(row.get("picture", "")))
                for row in rows
            ]
        except FileNotFoundError:
            groups = (str(row["group"]) for row in self.rows() if "group" in row)  # not every benchmark's rows have one
            return [BuiltRow(group, group, {}) for group in dict.fromkeys(groups)]
        except (OSError, UnsafeFileError, ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{self.path}/{BUILT_ROWS} is damaged; build again.") from error

    def left_out_rows(self) -> frozenset[str]:
        """Return the places of the source rows that became no example under any condition. Raises SourceError if damaged."""
        try:
            with open_read(self.path, SKIPPED) as lines:
                rows = [parse_json(line, _LONGEST_ROW) for line in lines]
            return frozenset(str(row["row"]) for row in rows if "condition" not in row)
        except (OSError, UnsafeFileError, ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{self.path}/{SKIPPED} is missing or damaged; build again.") from error

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
    return parse_json(read_bytes(build, MANIFEST, limit=_LARGEST_MANIFEST))


def media_path(build: Path, media: Media) -> Path:
    """Return the path of a medium of the build in folder ``build``: never outside the folder, never an executable type.

    Raises MediaError if the name is not a medium's name, or the file is missing, a link or not a regular file.
    """
    name = media.name
    if not _MEDIUM.fullmatch(name) or media.suffix not in _SUFFIXES.get(media.modality, "").split():
        raise MediaError(f"the {media.modality} {name[:80]!r}", "is no name of a medium; build it again")
    try:
        if check_file(build, f"{MEDIA}/{name}", write=False):
            return build / MEDIA / name
    except OSError as error:
        raise MediaError(f"the {media.modality} {name!r}", f"cannot be read ({error.strerror})") from error
    except UnsafeFileError as error:
        raise MediaError(f"the {media.modality} {name!r}", UNSAFE) from error
    raise MediaError(f"the {media.modality} {name!r}", MISSING)
