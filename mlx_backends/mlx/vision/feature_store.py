"""Vision features on disk: what an encoder made of an image, for later runs, prompt sets, adapters and quantisations.

A file holds the features of an image as safetensors, and after these a sha256 of all before it. Its name is the sha256 of what
decides them: the processed pixels, the encoder's weights and configuration, our code, the versions of the engine and the
machine. The name is part of the content too, so a file that was copied or renamed is never used, and a damaged one is deleted.
The folder lies in the user's cache, not in a workspace, because a received workspace could hold features that were made up.

Files are read, not mapped: if another program truncated a mapped file, the next access would kill the process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from benchmarks.untrusted import private_state
from benchmarks.untrusted.private_folders import make_private
from benchmarks.untrusted.safe_files import (
    UnsafeFileError,
    make_folder,
    open_read,
    read_bytes,
    remove_file,
    replace_file,
    replacing,
)
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import canonical_json, digest
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.mlx.vision.encoder_output_parts import UNUSED, Unused
from mlx_backends.mlx.vision.feature_folder import ENCODERS, FOLDER, SUFFIX, FeatureFolder, default_cache

_FORMAT = 2
_DIGEST_BYTES = 32
_HEADER_BYTES = 500  # at most, of a file and of each array
_PIECE_BYTES = 1 << 20
_MAX_BYTES = 1 << 30
_TREE, _NAME = "tree", "name"
_ENCODERS, _MAX_ENCODERS, _MOST_ENCODERS = f"{FOLDER}/{ENCODERS}", 1 << 20, 1000

_log = logging.getLogger("rashomon.vision-features")


class FeatureStore:
    """Features of one encoder, by the content of the images.

    ``encoder`` returns the identity of the encoder; it is called once, for the first image. A folder that cannot be read or
    written, like any other failure here, costs time, and no answer: one warning is logged, and from then on nothing is stored.
    """

    def __init__(self, encoder: Callable[[], Mapping[str, Any]], folder: FeatureFolder | None = None):
        self._encoder = encoder
        self._folder = folder or FeatureFolder()
        self._identity: str | None = None
        self._reads = self._writes = self._folder.is_on

    def get(self, key: Any) -> Any | None:
        """Return the features of ``key``, a JSON value; None where they are not stored, or are damaged."""
        features = None
        with self._costing_no_answer():
            if self._reads:
                features = self._read(self._name(key))
        return features

    def put(self, key: Any, features: Any) -> None:
        """Store ``features``, arrays in lists and tuples; what consists of anything else is not stored."""
        with self._costing_no_answer(), suppress(_UnknownPartError):
            if self._writes:
                self._write(self._name(key), features)

    def _name(self, key: Any) -> str:
        if self._identity is None:
            self._reads = self._writes = False  # should this fail
            self._identity = canonical_json({"format": _FORMAT, **self._encoder()})
            self._reads = self._writes = True
        return f"{digest([self._identity, key])}{SUFFIX}"

    def _read(self, name: str) -> Any | None:
        with open_read(self._folder.cache, f"{FOLDER}/{name}") as stream:
            features = _loaded(stream, name)
            if features is not None:
                with suppress(OSError):
                    os.utime(stream.fileno())  # the last use decides what is dropped first
                return features
        _log.warning("%s is damaged; its image is encoded again.", name)
        with suppress(OSError, UnsafeFileError):
            remove_file(self._folder.cache, f"{FOLDER}/{name}")
        return None

    def _write(self, name: str, features: Any) -> None:
        import mlx.core as mx

        arrays: dict[str, Any] = {}
        metadata = {_TREE: canonical_json(_described(features, arrays)), _NAME: name}
        size = sum(array.nbytes for array in arrays.values()) + _HEADER_BYTES * (1 + len(arrays))
        if size > _MAX_BYTES or not self._folder.reserve(size):
            return
        with replacing(self._folder.cache, f"{FOLDER}/{name}") as stream:
            hashed: Any = _Hashed(stream)
            mx.save_safetensors(hashed, arrays, metadata=metadata)
            stream.write(hashed.sha256.digest())

    @contextmanager
    def _costing_no_answer(self) -> Iterator[None]:
        """Stop writing after a failure within the block. A file or folder that another process removed is none."""
        try:
            yield
        except FileNotFoundError:
            pass
        except Exception as error:  # a shortcut must not become an obstacle
            if metal_fault(error) is not None:
                raise
            if self._writes or self._identity is None:
                _log.warning(
                    "features are not stored in %s (%s); the run continues without.", self._folder.cache, error
                )
            self._writes = False


class _UnknownPartError(Exception):
    """Features that are not arrays in lists and tuples."""


class _Hashed:
    """A file with the sha256 of what was written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: memoryview) -> int:
        self.sha256.update(data)
        return self._stream.write(data)


def encoder_digest(parameters: Any, model: str | None) -> str:
    """Return the sha256 over an encoder's ``parameters``, computed once for each ``model``, the sha256 of a model's files."""
    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten

    cache = default_cache()
    stored = _encoder_digests(cache).get(str(model))
    if isinstance(stored, str) and re.fullmatch("[0-9a-f]{64}", stored):
        return stored
    combined = hashlib.sha256()
    for name, value in sorted(tree_flatten(parameters)):
        combined.update(f"{name} {value.dtype} {value.shape}\n".encode())
        combined.update(np.ascontiguousarray(np.array(value.view(mx.uint8) if value.ndim else value)).data)
    computed = combined.hexdigest()
    if model is not None:
        with suppress(OSError, UnsafeFileError), private_state.lock():
            make_folder(make_private(cache), FOLDER)
            known = _encoder_digests(cache)
            others = known if len(known) < _MOST_ENCODERS else {}
            replace_file(cache, _ENCODERS, canonical_json({**others, model: computed}).encode())
    return computed


def _encoder_digests(cache: Path) -> dict[str, Any]:
    with suppress(OSError, UnsafeFileError, OutsideJSONError):
        digests = parse_json(read_bytes(cache, _ENCODERS, limit=_MAX_ENCODERS))
        if isinstance(digests, dict):
            return digests
    return {}


def _described(features: Any, arrays: dict[str, Any]) -> Any:
    """Return the structure of features, and put their arrays into ``arrays``. Raises _UnknownPartError."""
    import mlx.core as mx

    if isinstance(features, mx.array):
        arrays[str(len(arrays))] = features
        return len(arrays) - 1
    if type(features) in (list, tuple):
        return [type(features).__name__, *(_described(part, arrays) for part in features)]
    if features is None:
        return None
    if isinstance(features, Unused):
        return repr(UNUSED)
    raise _UnknownPartError


def _loaded(stream: BinaryIO, name: str) -> Any | None:
    """Return the features in a file, or None where they are not as they were written under this name."""
    import mlx.core as mx

    if not _is_as_written(stream):
        return None
    stream.seek(0)
    try:
        loaded: Any = mx.load(stream, format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        if metadata[_NAME] != name:
            return None
        features = _restored(parse_json(metadata[_TREE].encode()), arrays)
        mx.eval(list(arrays.values()))
    except (OutsideJSONError, RuntimeError, ValueError, LookupError, TypeError) as error:
        if metal_fault(error) is not None:
            raise
        return None
    return features


def _is_as_written(stream: BinaryIO) -> bool:
    """Return whether a file ends with the sha256 of all before it."""
    left = os.fstat(stream.fileno()).st_size - _DIGEST_BYTES
    if not 0 <= left <= _MAX_BYTES:
        return False
    computed = hashlib.sha256()
    while left and (piece := stream.read(min(left, _PIECE_BYTES))):
        computed.update(piece)
        left -= len(piece)
    return not left and stream.read() == computed.digest()


def _restored(tree: Any, arrays: Mapping[str, Any]) -> Any:
    match tree:
        case None:
            return None
        case "UNUSED":
            return UNUSED
        case int():
            return arrays[str(tree)]
        case ["list", *items]:
            return [_restored(item, arrays) for item in items]
        case ["tuple", *items]:
            return tuple(_restored(item, arrays) for item in items)
    raise ValueError(tree)
