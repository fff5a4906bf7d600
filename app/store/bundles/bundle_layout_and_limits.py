"""Layout of a bundle: a zip of runs, their builds and reports, with a manifest that has the digest of every other member.

::

    bundle.json                   the manifest, the first member
    builds/DIGEST/manifest.json   a build by its digest, with its instances.jsonl
    builds/DIGEST/media/          the media of the runs, named as in a build
    builds/DIGEST/thumbnails/     small pictures (WebP) in place of the media, named by the sha256 of these
    report/BENCHMARK.html         a page to read without Rashomon, and its tables (.md)
    runs/NAME/run.sqlite          a run, with its spec.toml and, if it has one, its title

Extracted, it is a workspace that nothing writes to. All names are of fixed forms in ASCII, so that no name leads elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from app.store.run_database import DATABASE
from app.store.run_titles import TITLE_FILE
from benchmarks.errors import StoreError
from benchmarks.untrusted.file_names import distinct_names
from benchmarks.untrusted.safe_files import read_bytes
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

FORMAT = 1
MANIFEST = "bundle.json"
BUILDS, MEDIA, THUMBNAILS, REPORT, RUNS = "builds", "media", "thumbnails", "report", "runs"
SPEC = "spec.toml"

MAX_MEMBERS = 50_000
MAX_BYTES = 16 << 30
"""The maximum size of all members together."""
MAX_MANIFEST = 16 << 20
MAX_RATIO = 200
"""The maximum ratio of the members' size to the file's, from ``SMALL`` bytes on."""
SMALL = 64 << 20

MediaChoice = Literal["all", "thumbnails", "none"]

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
_SHA256 = r"[0-9a-f]{64}"
_RUN = re.compile(_WORD)
_MEMBER = re.compile(
    rf"{RUNS}/{_WORD}/({re.escape(DATABASE)}|{re.escape(SPEC)}|{TITLE_FILE})|{REPORT}/{_WORD}\.(html|md)|"
    rf"{BUILDS}/{_SHA256}/(manifest\.json|instances\.jsonl|{MEDIA}/{_SHA256}\.[a-z0-9]{{1,5}}|{THUMBNAILS}/{_SHA256}\.webp)"
)


class BundleError(StoreError):
    """A file that is not a bundle, is damaged, or is refused."""


def is_member_name(name: str) -> bool:
    """Return whether a bundle may have a member of this name, beside its manifest."""
    return _MEMBER.fullmatch(name) is not None


def is_sha256(text: object) -> bool:
    """Return whether a value is a sha256 in hexadecimal."""
    return isinstance(text, str) and re.fullmatch(_SHA256, text) is not None


def bundled_names(names: Iterable[str]) -> list[str]:
    """Return a name in a bundle for each run: its own, or a similar one if that is taken or of another form."""
    bases = (
        name if _RUN.fullmatch(name) else re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip("._-")[:70] or "run"
        for name in names
    )
    return distinct_names(bases, "{}-{}", longest=70)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an opened bundle; its values are its author's. Raises BundleError."""
    try:
        manifest = parse_json(read_bytes(folder, MANIFEST, limit=MAX_MANIFEST))
    except (OSError, OutsideJSONError) as error:
        raise BundleError(f"{folder} is no opened bundle; open the file again.") from error
    return manifest if isinstance(manifest, dict) else {}


def member_digests(manifest: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the sha256 and the size of each member by its name. Raises ValueError if the manifest has another form."""
    members = manifest.get("members")
    if not isinstance(members, dict):
        raise ValueError("its manifest lists no members")
    digests: dict[str, tuple[str, int]] = {}
    for name, facts in members.items():
        match facts:
            case {"sha256": str(sha256), "bytes": int(size)} if is_sha256(sha256) and size >= 0:
                digests[name] = sha256, size
            case _:
                raise ValueError(f"its manifest has no digest of {name[:80]!r}")
    return digests
