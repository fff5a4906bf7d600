"""Parts of a training set: fewer rows of it, such that smaller parts are in larger ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.rows.reader_types import open_source
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import is_disk_full, write_error
from benchmarks.vocabulary import digest


def write_subset(training_set: TrainingSet, rows: int, out: Path, *, seed: int) -> TrainingSet:
    """Write ``rows`` random rows to learn from, and all of validation, to the folder ``out``; return the new training set.

    The rows of a smaller subset with the same ``seed`` are among those of a larger one. A folder that exists is returned as it
    is. Raises SourceError if there are not as many rows, or it cannot be written.
    """
    if out.is_dir():
        return TrainingSet.open(out)
    parts = {part: _rows(training_set, part) for part in PARTS}
    learnt = parts[PARTS[0]]
    if not 0 < rows <= len(learnt):
        raise SourceError(f"{training_set.path} has {len(learnt)} rows to learn from, not {rows}; name fewer.")
    chosen = sorted(sorted(range(len(learnt)), key=lambda place: digest([seed, "subset", place]))[:rows])
    parts[PARTS[0]] = [learnt[place] for place in chosen]
    try:
        with OwnFolder(out.parent, mode=0o777) as folder:
            _write(folder.path, training_set, parts, {"rows": rows, "seed": seed, "of": training_set.digest})
            folder.keep_as(out)
    except OSError as error:
        raise write_error(out, error, "free some space" if is_disk_full(error) else "name another folder") from error
    return TrainingSet.open(out)


def _write(
    folder: Path,
    training_set: TrainingSet,
    parts: Mapping[str, Sequence[tuple[bytes, ChatRow]]],
    subset: Mapping[str, Any],
) -> None:
    """Write the rows of ``parts`` with their images, and a manifest that states the subset. Raises OSError."""
    for part, members in parts.items():
        if members:
            (folder / f"{part}.jsonl").write_bytes(b"".join(line for line, _ in members))
        for image in dict.fromkeys(image for _, row in members for image in row.all_images):
            _copy_image(image, training_set.path, folder)
    manifest = {**training_set.manifest, "subset": dict(subset)}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")


def _rows(training_set: TrainingSet, part: str) -> list[tuple[bytes, ChatRow]]:
    """Return the lines of ``train`` or ``validation`` that are not blank, with their rows."""
    rows = list(training_set.rows(part))
    if not rows:
        return []
    with open_source(training_set.path / f"{part}.jsonl") as file:
        return list(zip((line for line in file if line.strip()), rows, strict=True))


def _copy_image(image: Path, source: Path, target: Path) -> None:
    """Copy an image that lies below ``source``, or what it links to, to the same place below ``target``; link it if possible."""
    if (
        not image.is_relative_to(source)
        or ".." in (name := image.relative_to(source)).parts
        or (target / name).exists()
    ):
        return
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(image.resolve(), target / name)  # a relative link would lead elsewhere from there
    except OSError:  # another disk
        shutil.copyfile(image, target / name)
