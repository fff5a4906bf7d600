"""From sources to a build on disk: one row a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.base import digest
from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.clash.categories import categories, joined, same_categories
from benchmarks.clash.constants import CHANGE_TYPES, RELATIONS
from benchmarks.clash.sample import ClashSample
from benchmarks.clash.sources import CONSTRUCTED, NAMES, ClashSourceRow, read
from benchmarks.errors import MediaError, SourceError
from benchmarks.media import image_suffix, load_image
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.sources import most_common, resolved

_REPEATED = "repeated: another row is the same sample"

Construction = Callable[[Path, BuildWriter, BuildOptions], Iterator[ClashSample]]


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every sample of a source that is read is taken: ``options.per_stratum`` is a target for the sources that are
    constructed alone. Raises SpecError for unknown source names and for a construction without a writer, SourceError for
    sources that are not there, of no known layout, or without a sample that can be used.
    """
    named = list(dict.fromkeys(resolved("clash", NAMES, sources)))
    samples: dict[str, ClashSample] = {}
    with BuildWriter(out) as writer:
        for name, place in named:
            for row, sample in _samples(name, place, writer, options):
                if sample.id in samples:
                    writer.add_skipped(name, row or f"image {sample.image_id}", _REPEATED)
                    continue
                samples[sample.id] = sample
                writer.add_row({"id": sample.id, **sample.to_row()})
        if not samples:
            raise SourceError(f"the sources have no sample that can be used ({most_common(writer.skipped)}).")
        return writer.finish(_manifest(named, options, samples, writer.skipped), replace=options.replace)


def _samples(name: str, place: str, writer: BuildWriter, options: BuildOptions) -> Iterator[tuple[str, ClashSample]]:
    """The samples of one source with their images in the build, each with where its row is; the others are noted."""
    if name in CONSTRUCTED:
        for made in _construction(name)(Path(place).expanduser(), writer, options):
            found = categories(made.change_type, made.changed_original, made.changed_conflicting)
            yield "", replace(made, source=name, category=joined(found, made.change_type))
        return
    for each in read(name, place, options.seed):
        if isinstance(each, SkippedRow):
            writer.add_skipped(each.source, each.row, each.reason)
            continue
        try:
            yield each.row, _with_image(each, writer)
        except MediaError as error:
            writer.add_skipped(name, each.row, f"the image {error.reason}")


def _construction(name: str) -> Construction:
    if name == "coco":
        from benchmarks.clash.construction.pipeline import construct

        return construct
    from benchmarks.clash.construction.spatial import construct_spatial

    return construct_spatial


def _with_image(found: ClashSourceRow, writer: BuildWriter) -> ClashSample:
    data = found.image()
    load_image(data)
    return replace(found.sample, image=writer.add_media(data, image_suffix(data) or ""))


def _manifest(
    named: Sequence[tuple[str, str]],
    options: BuildOptions,
    samples: Mapping[str, ClashSample],
    skipped: Mapping[str, Counter[str]],
) -> dict[str, Any]:
    every = list(samples.values())
    changes = Counter(s.change_type for s in every)
    relations = Counter(s.relation for s in every)
    made: dict[str, Any] = {"benchmark": "clash", "seed": options.seed, "options": {}}
    if any(name in CONSTRUCTED for name, _ in named):
        made["options"] = {"per_stratum": options.per_stratum}
        writer, checker = options.writer, options.checker or options.writer
        made["models"] = {"writer": writer and writer.name, "checker": checker and checker.name}
    return made | {
        "samples": len(every),
        "change_types": {kind: changes[kind] for kind in CHANGE_TYPES if changes[kind]},
        "categories": {
            kind: dict(sorted(Counter(s.category for s in every if s.change_type == kind).items()))
            for kind in ("object", "attribute")
            if changes[kind]
        },
        "relations": {relation: relations[relation] for relation in RELATIONS if relations[relation]},
        "other_category_than_published": sum(
            s.published_category is not None and not same_categories(s.category, s.published_category) for s in every
        ),
        "sources": {
            name: {
                "samples": sum(s.source == name for s in every),
                "samples_sha256": digest([s.to_row() for s in every if s.source == name]),
                "skipped": dict(sorted(skipped.get(name, Counter[str]()).items())),
            }
            for name in dict.fromkeys(name for name, _ in named)
        },
    }
