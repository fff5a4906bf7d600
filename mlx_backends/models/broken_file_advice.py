"""Advice on a file of a model that cannot be used, which may be exactly as the Hub publishes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from benchmarks.fetch.remote_file import Digest

_KINDS: dict[int, Literal["git-sha1", "sha256"]] = {40: "git-sha1", 64: "sha256"}


def fetch_again(file: Path) -> str:
    """Return what to do about a broken ``file``: to fetch the model again, unless that would bring the same file."""
    if is_as_published(file):
        return "choose another model, since its owner publishes this file like this"
    return "fetch the model again"


def is_as_published(file: Path) -> bool:
    """Return whether ``file`` is in the Hugging Face cache, with the digest that the Hub states."""
    try:
        blob = file.resolve(strict=True)
        kind = _KINDS.get(len(blob.name)) if blob.parent.name == "blobs" else None
        return kind is not None and Digest(kind, blob.name).matches(blob)
    except OSError:
        return False
