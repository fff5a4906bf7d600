"""Limits on the values in a model's folder, checked before any library builds a model from them."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.models.broken_file_advice import fetch_again
from mlx_backends.models.weight_files import incomplete

MAX_LAYERS = 1000
"""The deepest published models have some 200."""

MAX_EXPERTS = 1024
MAX_TOTAL_EXPERTS = 65_536

_LIMITS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), most)
    for pattern, most in (
        (r"layers?$|depths?$|n_layer|blocks?$|stages?$", MAX_LAYERS),
        (r"experts", MAX_EXPERTS),
        (r"heads?$", 4096),
        (r"(^|_)groups?$", 4096),
        (r"patch_size|merge_size|kernel|stride|tiles$|crops$", 4096),
        (r"min_pixels|shortest_edge", 1 << 22),
        (r"pixels$|longest_edge", 1 << 30),
        (r"^(height|width)$|image_size|crop_size|tile_size", 16_384),
        (
            r"vocab_size|hidden|intermediate|(^|_)dim$|_size$|channels$|features$|positions?$|embeddings$|frames$",
            1 << 24,
        ),
    )
)
_PROCESSORS = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
_MEGABYTE = 1024 * 1024
_SIZES = {
    "tokenizer.json": 64,
    "vocab.json": 64,
    "tekken.json": 64,
    ".json": 16,
    ".jinja": 1,
    ".model": 64,
    ".tiktoken": 64,
    ".txt": 64,
}
"""Largest size in megabytes of the files that are read whole, by name or suffix."""


def check_config(config: Mapping[str, Any], file: Path) -> None:
    """Raise ModelError where ``config``, of ``file``, has a value far beyond every published model."""
    largest: dict[str, int] = {}
    for name, value in _numbers(config):
        limit = next((limit for pattern, limit in _LIMITS if pattern.search(name)), None)
        if limit is not None and abs(value) > limit:
            raise _refusal(file, name, value, limit)
        kind = "experts" if "experts" in name else "layers" if _LIMITS[0][0].search(name) else ""
        largest[kind] = max(largest.get(kind, 1), int(value))
    if largest.get("experts", 1) * largest.get("layers", 1) > MAX_TOTAL_EXPERTS:
        count = largest["experts"] * largest["layers"]
        raise _refusal(file, "experts of all layers", count, MAX_TOTAL_EXPERTS)


def check_folder(path: Path) -> None:
    """Raise ModelError for a file that a library reads and that is not regular or too large, or for a processor's sizes."""
    try:
        entries = folder_entries(path)
        for entry in entries:
            megabytes = _SIZES.get(entry.name, _SIZES.get(entry.suffix))
            if megabytes is None and entry.suffix != ".safetensors":
                continue
            if entry.is_symlink() and not entry.exists():  # the Hugging Face cache links to what is still being fetched
                raise incomplete(path, f"holds a link to {entry.name}, which is missing")
            status = entry.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{entry} is not a regular file; do not use this model.")
            if megabytes is not None and status.st_size > megabytes * _MEGABYTE:
                raise ModelError(f"{entry} is larger than {megabytes} MiB, and no real one is; {fetch_again(entry)}.")
    except OSError as error:
        raise ModelError(
            f"{error.filename or path} cannot be read ({error.strerror}); fetch the model again."
        ) from error
    for name in _PROCESSORS:
        file = path / name
        if not file.is_file():
            continue
        try:
            settings = read_json_file(file)
        except (OSError, OutsideJSONError) as error:
            raise ModelError(f"{file} cannot be read as JSON; {fetch_again(file)}.") from error
        if not isinstance(settings, dict):
            raise ModelError(f"{file} is not a JSON object; {fetch_again(file)}.")
        check_config(settings, file)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number in ``value``, lists included, with the name of its field; ``value`` is at most 100 levels deep."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _refusal(file: Path, name: str, value: float, limit: int) -> ModelError:
    formatted = f"{value:,}" if abs(value) < 10**15 else f"{float(min(value, 10**300)):.1e}"
    return ModelError(
        f"{file} sets {name[:60]!r} to {formatted}, and no published model exceeds {limit:,}; do not use this model."
    )
