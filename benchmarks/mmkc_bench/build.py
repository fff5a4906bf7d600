"""From sources to a build on disk: one row an example."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.base import did_you_mean, digest
from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media import image_suffix, load_image
from benchmarks.mmkc_bench.constants import DATASETS, TYPES, WEIGHTS
from benchmarks.mmkc_bench.example import Example
from benchmarks.mmkc_bench.sources.released import PUBLISHED, MMKCSourceRow, read
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.sources import most_common

KNOWLEDGE = "knowledge"
NAMES = (PUBLISHED, KNOWLEDGE)

_REPEATED = "repeated: another row is the same example"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the examples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every row is taken: ``options.per_stratum`` is not used. Raises SpecError for unknown source names and for a
    construction without a writer, SourceError for sources that are not there, of no known layout, or without an example
    that can be used.
    """
    for name, _ in sources:
        if name and name not in NAMES:
            raise SpecError(f"mmkc-bench has no source {name!r}; {did_you_mean(name, NAMES)}")
    examples: dict[str, Example] = {}
    models: dict[str, str] = {}
    with BuildWriter(out) as writer:
        for source, place in dict.fromkeys((name or PUBLISHED, place) for name, place in sources):
            for found in _found(source, place, options, models):
                made = found if isinstance(found, SkippedRow) else _with_images(found, writer, source)
                if not isinstance(made, SkippedRow) and made.id in examples:
                    assert isinstance(found, MMKCSourceRow)
                    made = SkippedRow(source, found.row, _REPEATED)
                if isinstance(made, SkippedRow):
                    writer.add_skipped(made.source, made.row, made.reason)
                    continue
                examples[made.id] = made
                writer.add_row({"id": made.id, **made.to_row()})
        if not examples:
            raise SourceError(f"the sources have no example that can be used ({most_common(writer.skipped)}).")
        skipped = sum(writer.skipped.values(), Counter[str]())
        manifest = _manifest(options, list(examples.values()), skipped) | ({"models": models} if models else {})
        return writer.finish(manifest, replace=options.replace)


def _found(
    source: str, place: str, options: BuildOptions, models: dict[str, str]
) -> Iterator[MMKCSourceRow | SkippedRow]:
    if source == PUBLISHED:
        return read(place, options.seed)
    from benchmarks.mmkc_bench.construction.pipeline import construct

    found = construct(place, options)
    models |= {
        role: model.name
        for role, model in (("writer", options.writer), ("checker", options.checker))
        if model is not None
    }
    return found


def _with_images(found: MMKCSourceRow, writer: BuildWriter, source: str) -> Example | SkippedRow:
    """The example with its images in the build, or why one of them cannot be used."""
    try:
        pictures = [loader() for loader in found.images]
        for data in pictures:
            load_image(data)
    except MediaError as error:
        return SkippedRow(source, found.row, f"the image {error.reason}")
    images = tuple(writer.add_media(data, image_suffix(data) or "") for data in pictures)
    return replace(found.example, images=images)


def _manifest(options: BuildOptions, examples: Sequence[Example], skipped: Mapping[str, int]) -> dict[str, Any]:
    kinds = Counter(example.kind for example in examples)
    names: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        names[example.kind][example.instance] += 1
    repeated = {
        kind: {name: count for name, count in sorted(found.items()) if count > 1} for kind, found in names.items()
    }
    return {
        "benchmark": "mmkc-bench",
        "seed": options.seed,
        "examples": len(examples),
        "examples_sha256": digest([example.to_row() for example in examples]),
        "datasets": {
            dataset: {
                "examples": sum(example.dataset == dataset for example in examples),
                "in the paper": WEIGHTS[dataset],
            }
            for dataset in DATASETS
        },
        "types": {kind: kinds[kind] for kind in TYPES if kinds[kind]},
        "options_made_here": sum(example.constructed_options for example in examples),
        "no_true_text": sum(not example.right for example in examples),
        "no_single_altered_sentence": sum(
            example.dataset == "EK" and not all(example.sentences) for example in examples
        ),
        "no_counter_answers_in_words": sum(not all(example.counter_answers) for example in examples),
        "instances_of_the_same_name": {kind: found for kind, found in repeated.items() if found},
        "skipped": dict(sorted(skipped.items())),
    }
