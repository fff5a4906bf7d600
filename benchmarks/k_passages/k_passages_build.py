"""The build of k passages: the examples of a build of CMC-Bench, with passages of other examples as distractors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.errors import NothingUsableError, SpecError
from benchmarks.hash_collections import hash64
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.k_passages.k_passages_texts import is_template, statement, wording_order
from benchmarks.media.image_files import read_media
from benchmarks.rows.record_file import RecordFile
from benchmarks.rows.sources import resolve_sources
from benchmarks.values import compare
from benchmarks.vocabulary import DOCUMENT, Media

SOURCE = "cmc-bench"
MOST_CALLS = 100_000
"""The most calls of a design that needs no confirmation."""

_TRIED = 400
"""The number of other examples that are tried as distractors of an example."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example of CMC-Bench: its question and image, both values, and the passages that state them."""

    id: str
    question: str
    image: tuple[str, str]
    right: str
    wrong: str
    right_passage: str
    wrong_passage: str
    strata: dict[str, str]


class Examples:
    """The examples of a build, in a temporary file; memory holds 12 bytes of each.

    ``left_out`` are the ids of those that have no right or no wrong passage, such as conflicts as found.
    """

    def __init__(self, base: Build) -> None:
        """Read a build. Raises SpecError if it is another benchmark's."""
        if base.benchmark != SOURCE:
            raise SpecError(
                f"{base.path} is a build of {base.benchmark}; k passages are made from a build of {SOURCE}, your own rows "
                "included."
            )
        self._records = RecordFile()
        self.left_out: list[str] = []
        for group, rows in groupby(base.rows(), lambda row: row["group"]):
            if (example := _example({row["condition"]: row for row in rows})) is not None:
                self._records.append(asdict(example))
            else:
                self.left_out.append(group)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, number: int) -> Example:
        fields = self._records[number]
        return Example(**fields | {"image": tuple(fields["image"])})

    def __iter__(self) -> Iterator[Example]:
        return (self[number] for number in range(len(self)))


def _example(rows: dict[str, Any]) -> Example | None:
    """Return the example of its instances' rows; None if it lacks a right or a wrong passage."""
    aligned, wrong = rows.get("aligned"), rows.get("both-wrong") or rows.get("image-correct")
    if aligned is None or wrong is None:
        return None
    return Example(
        aligned["group"],
        aligned["question"],
        (aligned["image"]["sha256"], aligned["image"]["suffix"]),
        aligned["references"]["image"],
        wrong["references"]["text"],
        aligned["passage"],
        wrong["passage"],
        {key: aligned["strata"][key] for key in ("type", "source", "subject", DOCUMENT) if key in aligned["strata"]},
    )


@dataclass(frozen=True, slots=True)
class DesignSize:
    """The number of examples, settings and model calls of a design over a build."""

    examples: int
    cells: int
    calls: int


def design_size(examples: Examples, design: PassageDesign, limit: int | None = None) -> DesignSize:
    """Return the size of a design. Raises SpecError if it needs more passages or images than the build has."""
    needed = max(design.most_distractors, max(design.images) - 1)
    others = max(len(examples) - 1, 0)
    if needed > others:
        raise SpecError(
            f"{max(design.passages)} passages or {max(design.images)} images need {needed} other examples beside each, and the "
            f"build has {others}; name fewer, or build more examples."
        )
    count = len(examples) if limit is None else min(limit, len(examples))
    cells = sum(1 for _ in design.cells())
    return DesignSize(count, cells, count * cells)


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Build the default design from one build of CMC-Bench; see ``Benchmark.build``."""
    places = [place for _, place in resolve_sources("k-passages", (SOURCE,), sources)]
    if len(places) != 1:
        raise SpecError(f"k passages are made from one build; name it once, as {SOURCE}=FOLDER.")
    base = Build.open(Path(places[0]).expanduser())
    return build_design(base, Examples(base), PassageDesign(), out, seed=options.seed, replace=options.replace)


def build_design(
    base: Build,
    examples: Examples,
    design: PassageDesign,
    out: Path,
    *,
    seed: int = 0,
    limit: int | None = None,
    replace: bool = False,
    progress: Callable[[], None] = lambda: None,
) -> Build:
    """Write the examples with the passages and images that ``design`` needs; see :func:`design_size` for what it raises.

    ``limit`` examples are drawn by the seed. ``progress`` is called after each example. Raises NothingUsableError if no example
    has enough distractors.
    """
    size = design_size(examples, design, limit)
    numbers = sorted(range(len(examples)), key=lambda number: hash64(f"{seed}|draw|{examples[number].id}"))
    written = 0
    with BuildWriter(out) as writer:
        for group in examples.left_out:
            writer.add_skipped(SOURCE, group, "it has no right or no wrong passage")
        for number in sorted(numbers[: size.examples]):
            row = _row(examples, number, design, seed)
            if row is None:
                reason = "too few other examples have another answer than its right and its wrong one"
                writer.add_skipped(SOURCE, examples[number].id, reason)
                continue
            writer.add_row(row)
            for sha256, suffix in row["images"]:
                media = Media(sha256, suffix)
                if not writer.has_media(media):
                    writer.add_media(read_media(base.media_path(media), media), suffix)
            written += 1
            progress()
        if not written:
            raise NothingUsableError("no example has enough distractors; build more examples with other answers.")
        facts = {
            "benchmark": "k-passages",
            "base": base.digest,
            "seed": seed,
            "design": design.to_json(),
            "examples": {"used": written, "left out": size.examples - written + len(examples.left_out)},
            "cells": size.cells,
            "calls": written * size.cells,
        }
        return writer.finish(facts, replace=replace)


def _row(examples: Examples, number: int, design: PassageDesign, seed: int) -> dict[str, Any] | None:
    """Return an example's row: its passages and images, of which each setting shows some; None without enough distractors."""
    example = examples[number]
    others = _others(examples, number, design, seed)
    if others is None:
        return None
    order = wording_order(seed, example.id)
    right = example.right_passage
    if is_template(right, example.right):
        right = statement(order[0], example.question, example.right)
    wrong = [statement(order[place], example.question, example.wrong) for place in range(1, design.most_wrong + 1)]
    if wrong and not is_template(example.wrong_passage, example.wrong):
        wrong[0] = example.wrong_passage  # the row's own text, with the wrong value in it
    distractors = [
        statement(order[-place], other.question, other.right)
        if is_template(other.right_passage, other.right)
        else other.right_passage
        for place, other in enumerate(others[: design.most_distractors], 1)
    ]
    others_images = list(dict.fromkeys(other.image for other in others if other.image != example.image))
    images = [example.image, *others_images[: max(design.images) - 1]] if max(design.images) else []
    return {
        "id": example.id,
        "question": example.question,
        "right": example.right,
        "wrong": example.wrong,
        "right_passage": right,
        "wrong_passages": wrong,
        "distractors": distractors,
        "distractor_answers": [other.right for other in others[: design.most_distractors]],
        "images": [list(image) for image in images],
        "strata": example.strata,
    }


def _others(examples: Examples, number: int, design: PassageDesign, seed: int) -> list[Example] | None:
    """Return examples whose answers are neither the right nor the wrong value, for distractors; None for too few."""
    example = examples[number]
    needed, needed_images = design.most_distractors, max(max(design.images) - 1, 0)
    others: list[Example] = []
    images: set[tuple[str, str]] = set()
    start = hash64(f"{seed}|distractors|{example.id}") % len(examples)
    for step in range(min(len(examples), _TRIED)):
        if len(others) >= needed and len(images) >= needed_images:
            break
        place = (start + step) % len(examples)
        other = examples[place]
        if place == number or other.question == example.question:
            continue
        # It answers another question, so that this one settles nothing about it.
        if any(compare(other.right, answer).verdict != "different" for answer in (example.right, example.wrong)):
            continue
        others.append(other)
        if other.image != example.image:
            images.add(other.image)
    return others if len(others) >= needed and len(images) >= needed_images else None
