"""The build of MMKC-Bench: one row per example."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.errors import MediaError, SourceError, SpecError, did_you_mean
from benchmarks.media import image_suffix, load_image
from benchmarks.mmkc_bench.mmkc_constants import DATASETS, PAPER_COUNTS, ROW_TYPES
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.mmkc_bench.mmkc_statistics import statistics
from benchmarks.mmkc_bench.sources.altered_text import altered_sentence
from benchmarks.mmkc_bench.sources.mmkc_released import PUBLISHED, MMKCSourceRow, read_released
from benchmarks.rows.files import RawRow, SkippedRow
from benchmarks.rows.sources import top_reasons
from benchmarks.vocabulary import canonical_json, digest

KNOWLEDGE = "knowledge"
ENTITIES = "entities"
SOURCE_NAMES = (PUBLISHED, KNOWLEDGE, ENTITIES)

UNNAMED = "unknown: the paper does not name this type"

_REPEATED = "repeated: another row is the same example"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the examples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every row is taken; ``options.per_stratum`` is the most entities of a type that are collected.
    Raises SpecError for an unknown source name and for a
    construction without a writer, and SourceError for a source that is missing, has an unknown layout, or holds no
    usable example.
    """
    for name, _ in sources:
        if name and name not in SOURCE_NAMES:
            raise SpecError(f"mmkc-bench has no source {name!r}; {did_you_mean(name, SOURCE_NAMES)}")
    examples: dict[str, Example] = {}
    models: dict[str, str] = {}
    with BuildWriter(out) as writer:
        for source, place in dict.fromkeys((name or PUBLISHED, place) for name, place in sources):
            for row in _read_source(source, place, writer, options, models):
                outcome = row if isinstance(row, SkippedRow) else _with_images(row, writer, source)
                if not isinstance(outcome, SkippedRow) and options.false_text == "random":
                    outcome = _with_drawn_text(outcome, options.seed)
                if not isinstance(outcome, SkippedRow) and outcome.id in examples:
                    assert isinstance(row, MMKCSourceRow)
                    outcome = SkippedRow(source, row.row, _REPEATED)
                if isinstance(outcome, SkippedRow):
                    writer.add_skipped(outcome.source, outcome.row, outcome.reason)
                    continue
                examples[outcome.id] = outcome
                writer.add_row({"id": outcome.id, **outcome.to_row()})
        if not examples:
            raise SourceError(f"the sources have no usable example ({top_reasons(writer.skipped)}).")
        writer.add_file("statistics.csv", statistics(list(examples.values())))
        skipped = sum(writer.skipped.values(), Counter[str]())
        manifest = _manifest(options, list(examples.values()), skipped) | ({"models": models} if models else {})
        if options.false_text == "random":
            manifest["options"] = {"false_text": "random"}
        return writer.finish(manifest, replace=options.replace)


def _read_source(
    source: str, place: str, writer: BuildWriter, options: BuildOptions, models: dict[str, str]
) -> Iterator[MMKCSourceRow | SkippedRow]:
    if source == PUBLISHED:
        return read_released(place, options.seed)
    from benchmarks.mmkc_bench.construction.mmkc_construction import construct

    collected = _collect(place, writer, options) if source == ENTITIES else None
    rows = construct(place, options, collected)
    models |= {
        role: model.name
        for role, model in (("writer", options.writer), ("checker", options.checker))
        if model is not None
    }
    return rows


def _collect(place: str, writer: BuildWriter, options: BuildOptions) -> list[RawRow | SkippedRow]:
    """Return the rows collected for the entities in ``place``, and store them as ``knowledge.jsonl``, for people to read."""
    from benchmarks.mmkc_bench.construction.knowledge_collection import collect

    if options.writer is None:
        raise SpecError("the collection needs a model that lists, summarises and asks: add --writer MODEL.")
    collected = collect(place, options, options.writer)
    lines = "".join(canonical_json(row.fields) + "\n" for row in collected if isinstance(row, RawRow))
    writer.add_file("knowledge.jsonl", lines.encode("utf-8", "backslashreplace"))
    return collected


def _with_images(row: MMKCSourceRow, writer: BuildWriter, source: str) -> Example | SkippedRow:
    """Return the example with its images added to the build, or the row as skipped if an image is unusable."""
    try:
        pictures = [loader() for loader in row.images]
        for data in pictures:
            load_image(data)
    except MediaError as error:
        return SkippedRow(source, row.row, f"the image {error.reason}")
    images = tuple(writer.add_media(data, image_suffix(data) or "") for data in pictures)
    return replace(row.example, images=images)


def _with_drawn_text(example: Example, seed: int) -> Example:
    """Return the example with one of its two false texts, drawn by ``seed``, as the first, with its image and answer."""
    if int(digest([seed, "false text", example.id]), 16) % 2 == 0:
        return example
    return replace(
        example,
        paths=(*example.paths[:1], *reversed(example.paths[1:])),
        images=(*example.images[:1], *reversed(example.images[1:])),
        wrong=example.wrong[::-1],
        counter_answers=example.counter_answers[::-1],
        counter_letters=example.counter_letters[::-1],
        sentences=altered_sentence(example.wrong[1], example.right) if all(example.sentences) else example.sentences,
    )


def _manifest(options: BuildOptions, examples: Sequence[Example], skipped: Mapping[str, int]) -> dict[str, Any]:
    kinds = Counter(example.kind for example in examples)
    names: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        names[example.kind][example.instance] += 1
    repeated = {
        kind: {name: count for name, count in sorted(counts.items()) if count > 1} for kind, counts in names.items()
    }
    return {
        "benchmark": "mmkc-bench",
        "seed": options.seed,
        "examples": len(examples),
        "examples_sha256": digest([example.to_row() for example in examples]),
        "datasets": {
            dataset: {
                "examples": sum(example.dataset == dataset for example in examples),
                "in the paper": PAPER_COUNTS.get(dataset, UNNAMED),
            }
            for dataset in (*DATASETS, *sorted({example.dataset for example in examples}.difference(DATASETS)))
        },
        "types": {kind: kinds[kind] for kind in (*ROW_TYPES, *sorted(set(kinds).difference(ROW_TYPES))) if kinds[kind]},
        "options_made_here": sum(example.constructed_options for example in examples),
        "no_true_text": sum(not example.right for example in examples),
        "no_single_altered_sentence": sum(
            example.dataset == "EK" and not all(example.sentences) for example in examples
        ),
        "no_counter_answers_in_words": sum(not all(example.counter_answers) for example in examples),
        "instances_of_the_same_name": {kind: counts for kind, counts in repeated.items() if counts},
        "skipped": dict(sorted(skipped.items())),
    }
