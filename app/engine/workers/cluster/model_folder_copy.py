"""Copies of a model's or an adapter's files on nodes that lack them, named by their digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from app.system.project_paths import free_space
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.own_files import OwnFolder, sweep
from benchmarks.untrusted.private_folders import cache_folder, make_private
from mlx_backends.models.adapter_folder import CONFIG, WEIGHTS, adapter_files
from mlx_backends.models.model_discovery import resolve
from mlx_backends.models.weight_files import DECIDING, files_digest, weights_digest

PIECE_BYTES = 16 << 20
"""The bytes that are sent at a time."""


CopiedPart = Literal["model", "adapter"]
"""What a node may lack of the model that it is to answer as."""


def part_files(part: CopiedPart, name: str) -> list[Path]:
    """Return the files on this machine that decide the answers of a model, or of an adapter in the folder ``name``.

    Raises ModelError if it is not here.
    """
    if part == "adapter":
        return list(adapter_files(Path(name)))
    return [file for file in folder_entries(resolve(name)) if file.suffix in DECIDING and file.is_file()]


def pieces(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the names of files with their contents, a piece at a time."""
    for path in files:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE_BYTES):
                yield path.name, piece


def copied_folder(part: CopiedPart, name: str, digest: str | None) -> str | None:
    """Return the folder of the copy with this digest on this machine; None if there is none."""
    folder = _folder(part, name, digest or "")
    return str(folder) if digest and folder.is_dir() else None


def remove_partial_copies() -> None:
    """Remove the copies on this machine whose worker ended while it received them."""
    for folder in cache_folder().glob("*/*/"):
        sweep(folder)


def _folder(part: CopiedPart, name: str, digest: str) -> Path:
    return cache_folder() / f"{part}s" / digest / Path(name).name


def _may_be_sent(part: CopiedPart, file: str) -> bool:
    allowed = file in (CONFIG, WEIGHTS) if part == "adapter" else Path(file).suffix in DECIDING
    return allowed and Path(file).name == file


class FolderCopy:
    """A copy of a folder that is being received. Every method returns why it failed, or an empty text."""

    def __init__(self, part: CopiedPart, name: str, digest: str, files: Mapping[str, int]) -> None:
        self._part = part
        self._digest = digest
        self._sizes = files
        self._final = _folder(part, name, digest)
        self._partial: OwnFolder | None = None

    def begin(self) -> str:
        """Make the folder, if there is room."""
        if not all(_may_be_sent(self._part, name) for name in self._sizes):
            return f"the driver sent a file that does not belong to {'an adapter' if self._part == 'adapter' else 'a model'}"
        needed = sum(self._sizes.values())
        try:
            if free_space(self._final) < needed:
                return f"its disk has no room for the {self._part}'s {needed / 1e9:.1f} GB"
            make_private(cache_folder())
            self._partial = OwnFolder(self._final.parent)
        except OSError as error:
            return f"its folder {self._final.parent} cannot be written ({error.strerror})"
        return ""

    def add(self, name: str, data: bytes) -> str:
        """Append to a file."""
        assert self._partial is not None
        path = self._partial.path / name
        try:
            if name not in self._sizes or (path.stat().st_size if path.exists() else 0) + len(data) > self._sizes[name]:
                return "the driver sent more than it announced"
            with path.open("ab") as stream:
                stream.write(data)
        except OSError as error:
            return f"the {self._part} cannot be written there ({error.strerror})"
        return ""

    def end(self) -> str:
        """Keep the files if they are the right ones."""
        assert self._partial is not None
        try:
            if self._received_digest(self._partial.path) != self._digest:
                return f"the {self._part} arrived damaged"
            self._partial.keep_as(self._final)
        except OSError as error:
            if not self._final.is_dir():  # otherwise another worker was faster
                return f"the {self._part} cannot be written there ({error.strerror})"
        finally:
            self.remove()
        return ""

    def remove(self) -> None:
        """Remove what was received, unless it is kept."""
        if self._partial is not None:
            self._partial.remove()
            with suppress(OSError):  # where it holds nothing
                self._final.parent.rmdir()

    def _received_digest(self, folder: Path) -> str:
        return files_digest(adapter_files(folder)) if self._part == "adapter" else weights_digest(folder)
