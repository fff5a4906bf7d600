"""Store of probes in a run's folder, for comparison on this machine or another."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from app.store.run_store import RunStore
from benchmarks.errors import NoAccessError
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, open_read, read_bytes, replace_file
from benchmarks.untrusted.safe_json import parse_json
from benchmarks.vocabulary import digest
from mlx_backends.base import EngineInfo
from mlx_backends.core.engine_probe import Probe

FOLDER = "probes"
"""The name of the subfolder with probes."""

_TEXTS, _PIXELS = "probes.json", "pixels.npz"
_LARGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """The reason why a request could not be probed, a sentence; ``lost`` if a media file is missing."""

    why: str
    lost: bool = False


@dataclass(frozen=True)
class StoredProbes:
    """The stored probes of one engine.

    Attributes:
        engine: The engine, as JSON.
        probes: The probes, one for each request and each forced answer.
        digests: The digest of each request, by its id.
        alone: The sequential answers of a server, by the request's id.
        refused: The requests that could not be probed, by id.
    """

    engine: Mapping[str, Any]
    probes: Sequence[Probe] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, RefusedRequest] = field(default_factory=dict)

    def forced_probe(self, request: str, forced: Sequence[int]) -> Probe | None:
        """Return the probe of a request with the forced tokens ``forced``."""
        return next((p for p in self.probes if p.request_id == request and p.forced == tuple(forced)), None)

    def any_probe(self, request: str) -> Probe | None:
        """Return a probe of a request, preferably one with pixel values."""
        probes = [p for p in self.probes if p.request_id == request]
        return next((p for p in probes if p.pixel_values is not None), probes[0] if probes else None)


def probe_location(run: Path) -> tuple[Path, str]:
    """Return the folder that a run's probes are written to, and the prefix of their names in it.

    That is the run's own folder, or the user's cache for a run of another machine. No link in it is followed.
    """
    with RunStore.read(run) as store:
        if store.own:
            return run, ""
    return cache_folder(), f"foreign-runs/{digest(str(run.absolute()))}/"


def make_probe_location(run: Path) -> tuple[Path, str]:
    """Return :func:`probe_location` after creating its folders. Raises UnsafeFileError and OSError."""
    folder, prefix = probe_location(run)
    if prefix:
        make_folder(make_private(folder), prefix)
    return folder, prefix


def save(run: Path, stored: StoredProbes) -> None:
    """Store the probes of a run, replacing earlier ones.

    Raises:
        StoreError: They cannot be written.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    rows = []
    for number, probe in enumerate(stored.probes):
        row = {name: getattr(probe, name) for name in Probe.__slots__ if name != "pixel_values"}
        for image, values in enumerate(probe.pixel_values or ()):
            arrays[f"{number}/{image}"] = values
        rows.append({**row, "kept": None if probe.pixel_values is None else len(probe.pixel_values)})
    body = {
        **vars(stored),
        "probes": rows,
        "refused": {request: asdict(reason) for request, reason in stored.refused.items()},
    }
    pixels = io.BytesIO()
    np.savez_compressed(pixels, **arrays)
    target = Path(*probe_location(run), FOLDER)
    try:
        folder, prefix = make_probe_location(run)
        make_folder(folder, f"{prefix}{FOLDER}")
        for name, content in ((_PIXELS, pixels.getvalue()), (_TEXTS, json.dumps(body).encode("utf-8", "replace"))):
            replace_file(folder, f"{prefix}{FOLDER}/{name}", content)
    except OSError as error:
        raise NoAccessError(f"cannot write {target}: {error.strerror}; make the folder writable.") from error


def load(run: Path) -> StoredProbes | None:
    """Return the stored probes of a run, from the cache or its folder; None where there are none or they are unreadable.

    Raises:
        UnsafeFileError: A file is not safe to open.
    """
    folder, prefix = probe_location(run)
    return _load(folder, prefix) or (_load(run, "") if prefix else None)


def _load(folder: Path, prefix: str) -> StoredProbes | None:
    import numpy as np

    try:
        body = parse_json(read_bytes(folder, f"{prefix}{FOLDER}/{_TEXTS}", limit=_LARGEST))
        with open_read(folder, f"{prefix}{FOLDER}/{_PIXELS}") as stream, np.load(stream, allow_pickle=False) as arrays:
            probes = tuple(_probe(number, row, arrays) for number, row in enumerate(body.pop("probes")))
        refusals = {request: RefusedRequest(**reason) for request, reason in body.pop("refused").items()}
        return StoredProbes(**body, probes=probes, refused=refusals)
    except UnsafeFileError:
        raise
    except Exception:  # on hostile bytes a decoder can raise anything
        return None


def _probe(number: int, row: dict[str, Any], arrays: Any) -> Probe:
    count = row.pop("kept")
    return Probe(
        request_id=str(row["request_id"]),
        prompt=str(row["prompt"]),
        token_ids=tuple(map(int, row["token_ids"])),
        pixels=tuple(map(str, row["pixels"])),
        pixel_stats=tuple((float(m), float(s), float(maximum)) for m, s, maximum in row["pixel_stats"]),
        pixel_values=None if count is None else tuple(arrays[f"{number}/{image}"] for image in range(count)),
        forced=tuple(map(int, row["forced"])),
        top=tuple(tuple((int(token), float(p)) for token, p in likely_tokens) for likely_tokens in row["top"]),
        logprobs=tuple(map(float, row["logprobs"])),
    )


def engine_json(info: EngineInfo) -> dict[str, Any]:
    """Return an engine as it reads back from JSON."""
    fields: dict[str, Any] = json.loads(json.dumps(asdict(info)))
    return fields
