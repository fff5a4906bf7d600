"""A model's weight files: their names, their integrity, and the digest that identifies them."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json, read_json_file
from mlx_backends.models.broken_file_advice import fetch_again

_INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
"""Suffixes of files that are pickled, and therefore never opened."""

DECIDING = (".safetensors", ".json", ".jinja", ".model", ".tiktoken", ".txt")
"""Suffixes of the files that decide a model's answers."""

_BLOB = re.compile(r"[0-9a-f]{64}")
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32}
_BITS |= {"U64": 64, "I64": 64, "F64": 64}
_TYPES = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F64": "fp64"}
_LARGEST_CACHE = 1 << 26
_MAX_HEADER = 16 * 1024 * 1024  # some 100,000 tensors


class IncompleteModelError(ModelError):
    """A model's folder that lacks a file or holds a part of one; ``problem`` is what is wrong with it, after its name."""

    def __init__(self, message: str, problem: str = "") -> None:
        super().__init__(message)
        self.problem = problem


def incomplete(path: Path, problem: str, advice: str = "fetch the whole model") -> IncompleteModelError:
    """Return the error of a model's folder ``path`` that is not whole."""
    return IncompleteModelError(f"{path} {problem}; {advice}.", problem)


def weight_files(path: Path) -> list[Path]:
    """Return the safetensors files of the model in folder ``path``, by name.

    Raises ModelError where there are none, where only pickled weights are, where one that the index names is missing,
    and where one is truncated.
    """
    entries = folder_entries(path)
    files = _indexed(path) or [
        f for f in entries if f.suffix == ".safetensors" and f.name != "consolidated.safetensors"
    ]
    if not files and any(f.suffix in PICKLES for f in entries):
        raise ModelError(f"{path} holds only pickled weights, which can run any code; fetch a version in safetensors.")
    if not files:
        raise incomplete(path, "holds no weights (*.safetensors)", "fetch the whole model, or convert it")
    for file in files:
        _stored(file)
    return files


def stored_dtype(files: Sequence[Path]) -> str | None:
    """Return the floating-point type in which most bytes of the weights are stored: "bf16", "fp16", "fp32", or None."""
    sizes: Counter[str] = Counter()
    for file in files:
        sizes += _stored(file)
    return _TYPES.get(sizes.most_common(1)[0][0]) if sizes else None


def weights_digest(path: Path) -> str:
    """Return the sha256, in hex, over the names and contents of the files that decide the answers of the model in ``path``.

    These are its safetensors, configuration, tokenizer and processor files; documentation and code are left out. A
    model has the same digest in a Hugging Face cache and in a plain folder.
    """
    return files_digest(f for f in folder_entries(path) if f.suffix in DECIDING and f.is_file())


def files_digest(files: Iterable[Path]) -> str:
    """Return the sha256, in hex, over the names and contents of ``files``, in this order."""
    digests = _DigestCache()
    combined = hashlib.sha256()
    for file in files:
        combined.update(f"{file.name}\0{digests.digest(file)}\n".encode("utf-8", "surrogateescape"))
    digests.save()
    return combined.hexdigest()


def _indexed(path: Path) -> list[Path]:
    index = path / _INDEX
    if not index.is_file():
        return []
    try:
        names = sorted(set(read_json_file(index)["weight_map"].values()))
        outer_names = [name for name in names if Path(name).name != name]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(f"{index} is not an index of weights; {fetch_again(index)}.") from error
    if outer_names:
        raise ModelError(
            f"{index} names a weight file outside the model's folder ({outer_names[0]!r}); do not use this model."
        )
    missing = [name for name in names if not (path / name).is_file()]
    if missing:
        raise incomplete(path, f"lacks {len(missing)} of its {len(names)} weight files ({missing[0]!r} ...)")
    return [path / name for name in names]


def tensor_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors in a safetensors file, by name. Raises ModelError unless the file is whole."""
    return {name: tuple(tensor["shape"]) for name, tensor in _declared(file).items()}


def _stored(file: Path) -> Counter[str]:
    """Return the bytes of each type in a safetensors file. Raises ModelError unless the file holds all it declares."""
    sizes: Counter[str] = Counter()
    for tensor in _declared(file).values():
        start, end = tensor["data_offsets"]
        sizes[str(tensor["dtype"])] += int(end) - int(start)
    return sizes


def _declared(file: Path) -> dict[str, Any]:
    """Return the header of a safetensors file without its metadata. Raises ModelError unless the file holds all it declares."""
    last = 0
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = parse_json(stream.read(length) if length <= _MAX_HEADER else b"", _MAX_HEADER)
        declared = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        for tensor in declared.values():
            start, end = map(int, tensor["data_offsets"])
            bits = _BITS.get(tensor["dtype"])
            if not 0 <= start <= end or (bits and math.prod(tensor["shape"]) * bits != 8 * (end - start)):
                raise ValueError("a tensor's shape is not that of its bytes")
            last = max(last, end)
        actual, expected = file.stat().st_size, 8 + length + last
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        struct.error,
    ) as error:
        raise ModelError(f"{file} is not a whole safetensors file; fetch or copy it again.") from error
    if actual < expected:
        problem = f"holds only {actual:,} of the {expected:,} bytes of {file.name}"
        raise incomplete(file.parent, problem, "fetch or copy the file again")
    return declared


class _DigestCache:
    """Digests of files by path, size and modification time. Losing or damaging its file only costs time."""

    def __init__(self) -> None:
        self._file = cache_folder() / "weights.json"
        try:
            stored_digests = parse_json(read_bytes(self._file.parent, self._file.name, limit=_LARGEST_CACHE))
        except (OSError, OutsideJSONError, UnsafeFileError):
            stored_digests = None
        self._digests: dict[str, Any] = stored_digests if isinstance(stored_digests, dict) else {}
        self._changed = False

    def digest(self, file: Path) -> str:
        blob = file.resolve()
        if file.is_symlink() and blob.parent.name == "blobs" and _BLOB.fullmatch(blob.name):
            return blob.name  # the Hugging Face cache names a large file by its sha256
        stat = blob.stat()
        state = [stat.st_size, stat.st_mtime_ns]
        match self._digests.get(str(blob)):
            case [size, changed, str(digest)] if [size, changed] == state and _BLOB.fullmatch(digest):
                return digest
        with blob.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        self._digests[str(blob)] = [*state, digest]
        self._changed = True
        return digest

    def save(self) -> None:
        if not self._changed:
            return
        current = {path: entry for path, entry in self._digests.items() if Path(path).exists()}
        with suppress(OSError):
            make_private(self._file.parent)
            replace_file(self._file.parent, self._file.name, json.dumps(current).encode("utf-8"))
