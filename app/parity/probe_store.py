"""Probes in a run's folder: what one engine makes of some of the run's requests, kept to be compared here or elsewhere."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from app.store.run import RunStore
from benchmarks.base import digest
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, open_read, read_bytes, replace_file
from benchmarks.untrusted.safe_json import parse_json
from mlx_backends.base import EngineInfo
from mlx_backends.core.probe import Probe

FOLDER = "probes"
"""The folder in a run's."""

_TEXTS, _PIXELS = "probes.json", "pixels.npz"
_LARGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Why a request could not be shown to a model, a sentence; ``lost``: because the file of one of its media is not there."""

    why: str
    lost: bool = False


@dataclass(frozen=True)
class StoredProbes:
    """What was kept of an engine. ``probes`` are its probes, one for each request and each answer that it was led through.

    ``digests`` maps a request's id to the request's digest; ``engine`` is what answered; ``alone`` the answers of a server that
    was asked again, one at a time, by the request's id; ``refused`` are the requests that could not be probed, by id.
    """

    engine: Mapping[str, Any]
    probes: Sequence[Probe] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, RefusedRequest] = field(default_factory=dict)

    def of(self, request: str, forced: Sequence[int]) -> Probe | None:
        """The probe of a request that was led through ``forced``."""
        return next((p for p in self.probes if p.request_id == request and p.forced == tuple(forced)), None)

    def any(self, request: str) -> Probe | None:
        """A probe of a request, one with pixel values if there is one."""
        found = [p for p in self.probes if p.request_id == request]
        return next((p for p in found if p.pixel_values is not None), found[0] if found else None)


def place_of(run: Path) -> tuple[Path, str]:
    """Return where probes of a run are written: a folder, and what their names in it begin with.

    That is the run's own folder, or the user's cache for a foreign run, in which no link is followed either.
    """
    with RunStore.read(run) as store:
        if store.own:
            return run, ""
    from platformdirs import user_cache_path

    return user_cache_path("rashomon"), f"foreign-runs/{digest(str(run.absolute()))}/"


def make_place(run: Path) -> tuple[Path, str]:
    """Return :func:`place_of` after making what is missing of it. Raises UnsafeFileError, OSError."""
    folder, inside = place_of(run)
    folder.mkdir(parents=True, exist_ok=True)
    if inside:
        make_folder(folder, inside)
    return folder, inside


def save(run: Path, kept: StoredProbes) -> None:
    """Keep probes of a run, in the place of what was kept. Raises StoreError where they cannot be written."""
    import numpy as np

    arrays: dict[str, Any] = {}
    rows = []
    for number, probe in enumerate(kept.probes):
        row = {name: getattr(probe, name) for name in Probe.__slots__ if name != "pixel_values"}
        for image, values in enumerate(probe.pixel_values or ()):
            arrays[f"{number}/{image}"] = values
        rows.append({**row, "kept": None if probe.pixel_values is None else len(probe.pixel_values)})
    body = {**vars(kept), "probes": rows, "refused": {request: asdict(why) for request, why in kept.refused.items()}}
    pixels = io.BytesIO()
    np.savez_compressed(pixels, **arrays)
    place = Path(*place_of(run), FOLDER)
    try:
        folder, inside = make_place(run)
        make_folder(folder, f"{inside}{FOLDER}")
        for name, content in ((_PIXELS, pixels.getvalue()), (_TEXTS, json.dumps(body).encode("utf-8", "replace"))):
            replace_file(folder, f"{inside}{FOLDER}/{name}", content)
    except OSError as error:
        raise StoreError(f"cannot write {place}: {error.strerror}; make the folder writable.") from error


def load(run: Path) -> StoredProbes | None:
    """What is kept of a run, here or in its folder; None where that is nothing, or cannot be read. Raises UnsafeFileError."""
    folder, inside = place_of(run)
    return _load(folder, inside) or (_load(run, "") if inside else None)


def _load(folder: Path, inside: str) -> StoredProbes | None:
    import numpy as np

    try:
        body = parse_json(read_bytes(folder, f"{inside}{FOLDER}/{_TEXTS}", limit=_LARGEST))
        with open_read(folder, f"{inside}{FOLDER}/{_PIXELS}") as stream, np.load(stream, allow_pickle=False) as arrays:
            probes = tuple(_probe(number, row, arrays) for number, row in enumerate(body.pop("probes")))
        refused = {request: RefusedRequest(**why) for request, why in body.pop("refused").items()}
        return StoredProbes(**body, probes=probes, refused=refused)
    except UnsafeFileError:
        raise
    except Exception:  # a decoder that is given hostile bytes can raise anything
        return None


def _probe(number: int, row: dict[str, Any], arrays: Any) -> Probe:
    count = row.pop("kept")
    return Probe(
        request_id=str(row["request_id"]),
        prompt=str(row["prompt"]),
        token_ids=tuple(map(int, row["token_ids"])),
        pixels=tuple(map(str, row["pixels"])),
        pixel_stats=tuple((float(m), float(s), float(most)) for m, s, most in row["pixel_stats"]),
        pixel_values=None if count is None else tuple(arrays[f"{number}/{image}"] for image in range(count)),
        forced=tuple(map(int, row["forced"])),
        top=tuple(tuple((int(token), float(p)) for token, p in likely) for likely in row["top"]),
        logprobs=tuple(map(float, row["logprobs"])),
    )


def plain(info: EngineInfo) -> dict[str, Any]:
    """What answered, as JSON keeps it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(info)))
    return found
