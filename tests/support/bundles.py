"""Bundles that a test changes: their members, with a manifest that fits them again."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.store.bundles.bundle_layout_and_limits import MANIFEST


def read_members(bundle: Path | bytes) -> dict[str, bytes]:
    """Return the members of a bundle by name."""
    with zipfile.ZipFile(io.BytesIO(bundle) if isinstance(bundle, bytes) else bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def signed(members: Mapping[str, bytes], **manifest: Any) -> dict[str, bytes]:
    """Return the members with a manifest of their digests, in which these values are others."""
    facts = {**json.loads(members[MANIFEST]), **manifest}
    others = {name: data for name, data in members.items() if name != MANIFEST}
    facts.setdefault("members", {})
    if "members" not in manifest:
        facts["members"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in others.items()
        }
    return {MANIFEST: json.dumps(facts).encode(), **others}


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of the members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()
