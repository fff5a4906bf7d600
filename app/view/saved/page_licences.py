"""Licences that decide whether a saved page may have the media themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.errors import SourceError, SpecError
from benchmarks.source_licences import OWN, source_licences


def check_full_media(workspace: Workspace, folders: Sequence[Path]) -> None:
    """Raise SpecError if a licence of the runs' sources is not known to let anyone pass their media on.

    The user's own data is theirs to pass on.
    """
    withheld: dict[str, None] = {}
    for folder in folders:
        with RunStore.read(folder) as store:
            place = workspace.build_of(store)
        try:
            licences = source_licences(Build.open(place).manifest)
        except SourceError:  # there are no media either
            continue
        for name, licence in licences.items():
            if not licence.media and licence != OWN:
                withheld[f"{name} ({licence.text})"] = None
    if withheld:
        raise SpecError(
            f"the full media are not saved, because no licence that lets you pass them on is known for {'; '.join(withheld)}; "
            "leave --media full out, and the page has thumbnails."
        )
