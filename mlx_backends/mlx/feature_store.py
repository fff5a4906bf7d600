"""Vision features on disk: what an encoder made of an image, for later runs, prompt sets, judges and quantisations.

A file holds the features of one image as safetensors, after a sha256 of all that follows. Its name is the sha256 of what decides
them: the processed pixels, the encoder's weights and configuration, the versions of the engine and the machine. A file that
was copied from elsewhere is thus never used, and a damaged one is deleted. The folder lies in the user's cache, not in a
workspace, because a received workspace could hold features that were made up.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    make_folder,
    open_descriptor,
    read_bytes,
    remove_file,
    replace_file,
)
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import canonical_json, digest

LIMIT = "RASHOMON_VISION_CACHE"
"""The environment variable with the most GB that the files may take; 0 stores and reads nothing."""

DEFAULT_GB = 4.0
MIN_FREE_BYTES = 10**9
"""Space on the disk that is left to others."""

_FORMAT = 1
_FOLDER = "vision-features"
_SUFFIX = ".features"
_DIGEST_BYTES = 32
_MAX_BYTES = 2**30
_TREE = "tree"
_ENCODERS, _MAX_ENCODERS, _MOST_ENCODERS = f"{_FOLDER}/encoders.json", 2**20, 1000
_GB = 10**9

_log = logging.getLogger("rashomon.vision-features")


def default_folder() -> Path:
    """Return the user's cache, in which the files have a folder of their own."""
    from platformdirs import user_cache_path

    return user_cache_path("rashomon")


def limit_bytes() -> int:
    """Return the limit that the environment sets in GB, or else the default; 0 where it is no number."""
    text = os.environ.get(LIMIT, "").strip()
    try:
        return max(0, int(float(text or DEFAULT_GB) * _GB))
    except (ValueError, OverflowError):
        return 0


class FeatureStore:
    """Features of one encoder, by the content of the images.

    ``encoder`` returns the identity of the encoder; it is called once, for the first image. A folder that cannot be read or
    written costs time, and no answer: one warning is logged, and from then on nothing is stored.
    """

    def __init__(self, encoder: Callable[[], Mapping[str, Any]], folder: Path | None = None, limit: int | None = None):
        self._encoder = encoder
        self._folder = folder or default_folder()
        self._limit = limit_bytes() if limit is None else limit
        self._identity: str | None = None
        self._size: int | None = None
        self._writes = self._limit > 0

    def get(self, key: Any) -> Any | None:
        """Return the features of ``key``, a JSON value; None where they are not stored, or are damaged."""
        if not self._limit:
            return None
        name = self._name(key)
        try:
            data = read_bytes(self._folder, name, limit=_MAX_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, UnsafeFileError) as error:
            self._stop_writing(error)
            return None
        features = _read(data)
        if features is None:
            _log.warning("%s is damaged; its image is encoded again.", name)
            with suppress(OSError, UnsafeFileError):
                remove_file(self._folder, name)
            return None
        with suppress(OSError, UnsafeFileError):  # the last use decides what is dropped first
            descriptor = open_descriptor(self._folder, name, os.O_RDONLY)
            try:
                os.utime(descriptor)
            finally:
                os.close(descriptor)
        return features

    def put(self, key: Any, features: Any) -> None:
        """Store ``features``, arrays in lists and tuples; what consists of anything else is not stored."""
        if not self._writes or (data := _written(features)) is None or len(data) > min(self._limit, _MAX_BYTES):
            return
        try:
            _make_folder(self._folder)
            if shutil.disk_usage(self._folder).free < MIN_FREE_BYTES + len(data):
                raise OSError("the disk is nearly full")
            self._make_room(len(data))
            replace_file(self._folder, self._name(key), data)
        except (OSError, UnsafeFileError) as error:
            self._stop_writing(error)

    def _name(self, key: Any) -> str:
        if self._identity is None:
            self._identity = canonical_json({"format": _FORMAT, **self._encoder()})
        return f"{_FOLDER}/{digest([self._identity, key])}{_SUFFIX}"

    def _make_room(self, size: int) -> None:
        """Drop the files that were used longest ago, until ``size`` bytes fit below the limit."""
        if self._size is None or self._size + size > self._limit:
            files = _files(self._folder)
            self._size = sum(length for _, length, _ in files)
            for _, length, name in sorted(files):
                if self._size + size <= self._limit:
                    break
                with suppress(FileNotFoundError):  # another process dropped it
                    remove_file(self._folder, name)
                self._size -= length
        self._size += size

    def _stop_writing(self, error: Exception) -> None:
        if self._writes:
            _log.warning("vision features are not stored in %s (%s); the run continues without.", self._folder, error)
        self._writes = False


def encoder_digest(encoder: Any, model: str | None) -> str:
    """Return the sha256 over an encoder's weights, computed once for each ``model``, the sha256 of a model's files."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten

    folder, digests = default_folder(), dict[str, Any]()
    with suppress(OSError, UnsafeFileError, OutsideJSONError):
        digests = parse_json(read_bytes(folder, _ENCODERS, limit=_MAX_ENCODERS))
    stored = digests.get(str(model)) if isinstance(digests, dict) else None
    if isinstance(stored, str) and re.fullmatch("[0-9a-f]{64}", stored):
        return stored
    combined = hashlib.sha256()
    for name, value in sorted(tree_flatten(encoder.parameters())):
        combined.update(f"{name} {value.dtype} {value.shape}\n".encode())
        combined.update(np.ascontiguousarray(np.array(value.view(mx.uint8) if value.ndim else value)).data)
    computed = combined.hexdigest()
    if model is not None and limit_bytes():
        with suppress(OSError, UnsafeFileError):
            _make_folder(folder)
            known = digests if isinstance(digests, dict) and len(digests) < _MOST_ENCODERS else {}
            replace_file(folder, _ENCODERS, canonical_json({**known, model: computed}).encode())
    return computed


def _make_folder(folder: Path) -> None:
    """Create the folder of the files in the user's cache. Raises UnsafeFileError if it is a link."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_folder(folder, _FOLDER)


def _files(folder: Path) -> list[tuple[int, int, str]]:
    """Return the time of the last use, the size and the name of each file of features in the user's cache ``folder``."""
    files = []
    with os.scandir(folder / _FOLDER) as entries:
        for entry in entries:
            if entry.name.endswith((_SUFFIX, ".part")) and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    files.append((status.st_mtime_ns, status.st_size, f"{_FOLDER}/{entry.name}"))
    return files


def _written(features: Any) -> bytes | None:
    """Return the bytes of a file, or None where ``features`` are more than arrays in lists and tuples."""
    import mlx.core as mx

    arrays: dict[str, Any] = {}

    def described(value: Any) -> Any:
        if isinstance(value, mx.array):
            arrays[str(len(arrays))] = value
            return len(arrays) - 1
        if type(value) in (list, tuple):
            return [type(value).__name__, *map(described, value)]
        if value is None:
            return None
        raise TypeError

    try:
        tree = described(features)
    except TypeError:
        return None
    stream = io.BytesIO()
    mx.save_safetensors(stream, arrays, metadata={_TREE: canonical_json(tree)})
    data = stream.getvalue()
    return hashlib.sha256(data).digest() + data


def _read(data: bytes) -> Any | None:
    """Return the features in the bytes of a file, or None where they are not as they were written."""
    import mlx.core as mx

    content = memoryview(data)[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != data[:_DIGEST_BYTES]:
        return None
    try:
        loaded: Any = mx.load(io.BytesIO(content), format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        features = _restored(parse_json(metadata[_TREE].encode()), arrays)
        mx.eval(list(arrays.values()))
    except (OutsideJSONError, RuntimeError, ValueError, LookupError, TypeError):
        return None
    return features


def _restored(tree: Any, arrays: Mapping[str, Any]) -> Any:
    match tree:
        case None:
            return None
        case int():
            return arrays[str(tree)]
        case ["list", *items]:
            return [_restored(item, arrays) for item in items]
        case ["tuple", *items]:
            return tuple(_restored(item, arrays) for item in items)
    raise ValueError(tree)
