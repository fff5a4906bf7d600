"""Copies of a model's files on nodes that lack them, named by the digest of the weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.system.paths import free_space
from benchmarks.untrusted.finder_files import folder_entries
from mlx_backends.models.adapters import split_adapter
from mlx_backends.models.discovery import resolve
from mlx_backends.models.weights import DECIDING, weights_digest
from mlx_backends.pytorch.spec import split_name

PIECE_BYTES = 16 << 20
"""The bytes that are sent at a time."""


def model_files(model: str) -> list[Path]:
    """Return the files that decide the answers of a model on this machine. Raises ModelError if it is not here."""
    _, name, _ = split_name(model)
    return [file for file in folder_entries(resolve(name)) if file.suffix in DECIDING and file.is_file()]


def pieces(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the names of files with their contents, a piece at a time."""
    for path in files:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE_BYTES):
                yield path.name, piece


def can_be_copied(model: str) -> bool:
    """Return whether a node may get the model's files from the driver: not those of an adapter."""
    return split_adapter(split_name(model)[1])[1] is None


def copied_model(model: str, weights: str | None) -> str | None:
    """Return the name of the copy with these weights on this machine; None if there is none."""
    prefix, name, suffix = split_name(model)
    folder = _folder(name, weights or "")
    return f"{prefix}{folder}{suffix}" if weights and folder.is_dir() else None


def _folder(name: str, weights: str) -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("rashomon") / "models" / weights / Path(name).name


class WeightsCopy:
    """A copy of a model's files that is being received. Every method returns why it failed, or an empty text."""

    def __init__(self, model: str, weights: str, files: Mapping[str, int]) -> None:
        self._weights = weights
        self._sizes = files
        self._final = _folder(split_name(model)[1], weights)
        self._partial = self._final.parent / f".partial-{os.getpid()}"

    def begin(self) -> str:
        """Make the folder, if there is room."""
        if any(Path(name).name != name or Path(name).suffix not in DECIDING for name in self._sizes):
            return "the driver sent a file that is none of a model's"
        needed = sum(self._sizes.values())
        try:
            if free_space(self._partial) < needed:
                return f"its disk has no room for the model's {needed / 1e9:.1f} GB"
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True)
        except OSError as error:
            return f"its folder {self._final.parent} cannot be written ({error.strerror})"
        return ""

    def add(self, name: str, data: bytes) -> str:
        """Append to a file."""
        path = self._partial / name
        try:
            if name not in self._sizes or (path.stat().st_size if path.exists() else 0) + len(data) > self._sizes[name]:
                return "the driver sent more than it announced"
            with path.open("ab") as stream:
                stream.write(data)
        except OSError as error:
            return f"the model cannot be written there ({error.strerror})"
        return ""

    def end(self) -> str:
        """Keep the files if they are the right ones."""
        try:
            if weights_digest(self._partial) != self._weights:
                return "the model arrived damaged"
            if not self._final.exists():
                os.rename(self._partial, self._final)
        except OSError as error:
            return f"the model cannot be written there ({error.strerror})"
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)
        return ""
