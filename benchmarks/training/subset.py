"""Parts of a training set: fewer rows of it, such that smaller parts are in larger ones."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path, PurePosixPath

from benchmarks.errors import SourceError
from benchmarks.training.training_set import PARTS, TrainingSet
from benchmarks.untrusted.safe_files import is_disk_full
from benchmarks.vocabulary import digest


def write_subset(training_set: TrainingSet, rows: int, out: Path, *, seed: int) -> TrainingSet:
    """Write ``rows`` random rows to learn from, and all of validation, to the folder ``out``; return the new training set.

    The rows of a smaller subset with the same ``seed`` are among those of a larger one. A folder that exists is returned as it
    is. Raises SourceError if there are not as many rows, or it cannot be written.
    """
    if out.is_dir():
        return TrainingSet.open(out)
    lines = (training_set.path / f"{PARTS[0]}.jsonl").read_bytes().splitlines(keepends=True)
    if not 0 < rows <= len(lines):
        raise SourceError(f"{training_set.path} has {len(lines)} rows to learn from, not {rows}; name fewer.")
    chosen = sorted(sorted(range(len(lines)), key=lambda place: digest([seed, "subset", place]))[:rows])
    contents = {PARTS[0]: b"".join(lines[place] for place in chosen)}
    validation = training_set.path / f"{PARTS[1]}.jsonl"
    if validation.is_file():
        contents[PARTS[1]] = validation.read_bytes()
    new = out.with_name(f".{out.name}-{os.getpid()}")
    try:
        new.mkdir(parents=True)
        for part, content in contents.items():
            (new / f"{part}.jsonl").write_bytes(content)
            for line in content.splitlines():
                _copy_images(json.loads(line), training_set.path, new)
        manifest = {**training_set.manifest, "subset": {"rows": rows, "seed": seed, "of": training_set.digest}}
        (new / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")
        os.rename(new, out)
    except OSError as error:
        advice = "free some space" if is_disk_full(error) else "name another folder"
        raise SourceError(f"cannot write a part of the training set to {out}: {error.strerror}; {advice}.") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return TrainingSet.open(out)


def _copy_images(row: dict[str, object], source: Path, target: Path) -> None:
    """Copy or link the images of a row that lie below ``source`` to the same place below ``target``."""
    images = row.get("images", row.get("image", []))
    for name in [images] if isinstance(images, str) else images if isinstance(images, list) else ():
        path = PurePosixPath(str(name))
        if path.is_absolute() or ".." in path.parts or (target / path).exists():
            continue
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / path, target / path, follow_symlinks=False)
        except OSError:  # another disk
            shutil.copyfile(source / path, target / path)
