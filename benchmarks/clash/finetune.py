"""The training split (section 4.4, Appendix A.3): chat rows for ``python -m mlx_vlm.train``."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.build import Build
from benchmarks.clash.constants import CONFLICT_OPTION
from benchmarks.clash.prompts import prompt
from benchmarks.clash.sample import ClashSample
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.vocabulary import Media, digest

CONFLICT_ANSWER = CONFLICT_OPTION.rstrip(".")
"""The answer that the open-ended instruction requires on a conflict (Appendix B.3, without a full stop)."""

_DEFAULT_SET = "official"


def training_rows(
    samples: Iterable[ClashSample], seed: int, *, image: Callable[[Media], str] = lambda media: media.name
) -> Iterator[dict[str, Any]]:
    """Yield a row ``{"images": [path], "messages": [...]}`` per sample: the open task on one of its captions.

    The conflicting or the original caption with equal probability (Appendix A.3); which one is drawn by ``seed`` and the
    sample alone. The target is the conflict sentence, or the image-grounded answer. ``image`` says where a medium lies. Samples
    without an image are left out.
    """
    for sample in samples:
        if sample.image is None:
            continue
        conflicting = random.Random(digest([seed, "caption", sample.id])).random() < 0.5
        caption = sample.conflicting_caption if conflicting else sample.original_caption
        user_prompt = prompt(_DEFAULT_SET, "open", caption, sample.question)
        target = CONFLICT_ANSWER if conflicting else sample.image_only
        yield {
            "images": [image(sample.image)],
            "messages": [_turn("user", {"type": "image"}, _text(user_prompt)), _turn("assistant", _text(target))],
        }


def write_training(build: Build, out: Path, seed: int, validation_share: float = 0.1) -> Mapping[str, int]:
    """Write ``train.jsonl`` and ``validation.jsonl`` of a build to folder ``out``; return the number of rows of each.

    Samples of one image stay together. Rows name the build's images by their absolute paths. Raises SpecError for a share
    that is not in [0, 1), SourceError where the build is not CLASH's, an image of it is gone, or ``out`` cannot be written
    or holds a training set already.
    """
    if not 0 <= validation_share < 1:
        raise SpecError(f"the validation share is {validation_share}; it must be at least 0 and less than 1.")
    if build.benchmark != "clash":
        raise SourceError(f"{build.path} is a build of {build.benchmark}, not of clash; name another folder.")
    samples = [ClashSample.from_row(row) for row in build.rows()]
    images = sorted({sample.image.sha256 for sample in samples if sample.image})
    ranked = sorted(images, key=lambda sha256: digest([seed, "validation", sha256]))
    held_out = set(ranked[: round(validation_share * len(ranked))])
    parts: dict[str, list[ClashSample]] = {"train": [], "validation": []}
    for sample in samples:
        if sample.image is not None:
            parts["validation" if sample.image.sha256 in held_out else "train"].append(sample)
    new = out.with_name(f".{out.name}.writing")
    try:
        if out.exists() and any(folder_entries(out)):
            raise SourceError(f"{out} is not empty; name a new folder.")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        for name, chosen_rows in parts.items():
            with (new / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
                for row in training_rows(chosen_rows, seed, image=lambda media: _path(build, media)):
                    lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        os.replace(new, out)
    except OSError as error:
        raise SourceError(f"cannot write the training set to {out}: {error.strerror}; name another folder.") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return {name: len(chosen_rows) for name, chosen_rows in parts.items()}


def _path(build: Build, media: Media) -> str:
    try:
        return str(build.media_path(media).resolve())
    except MediaError as error:
        raise SourceError(f"{build.path}: {str(error).rstrip('.')}, or build it again.") from error


def _turn(role: str, *content: dict[str, str]) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
