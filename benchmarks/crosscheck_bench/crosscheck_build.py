"""The build of CrossCheck-Bench: one row per sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.crosscheck_bench.crosscheck_constants import LEVELS, TASKS
from benchmarks.crosscheck_bench.crosscheck_level_votes import vote
from benchmarks.crosscheck_bench.crosscheck_review import LEVEL_VOTES
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample, check_boxes, with_frames
from benchmarks.crosscheck_bench.sources.crosscheck_sample_rows import read_samples
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import ROWS, SOURCE_NAMES, CrossCheckSourceRow
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media import image_suffix, load_image
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import resolve_sources, top_reasons
from benchmarks.vocabulary import digest

if TYPE_CHECKING:
    from benchmarks.crosscheck_bench.construction.crosscheck_construction import ConstructedSamples

_REPEATED = "repeated: another row is the same sample"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every usable row is taken; ``options.per_stratum`` is a target for constructed samples only. Raises SpecError for an
    unknown source name and for an extractor without products, and SourceError for a source that is missing, has an unknown
    layout, or holds no usable sample.
    """
    named = list(dict.fromkeys(resolve_sources("crosscheck-bench", SOURCE_NAMES, sources)))
    if sum(name != ROWS for name, _ in named) > 1:  # whose graphs and origins would be those of the last source
        raise SourceError("a build takes one source of products; build the others with another --out.")
    if options.extractor is not None and all(name == ROWS for name, _ in named):
        raise SpecError("facts are read off products, of which the sources have none; leave --extractor out.")
    samples: dict[str, CrossCheckSample] = {}
    reports: dict[str, ConstructedSamples] = {}
    with BuildWriter(out) as writer:
        for name, place in named:
            for row, sample in _samples(name, place, writer, options, reports):
                if sample.id in samples:
                    writer.add_skipped(name, row, _REPEATED)
                    continue
                samples[sample.id] = sample
        if not samples:
            raise SourceError(f"the sources have no usable sample ({top_reasons(writer.skipped)}).")
        everything = list(samples.values())
        votes = vote(everything, options.readers, options.seed) if options.readers else None
        for sample in everything:
            of_models = {} if votes is None else {LEVEL_VOTES: list(votes.votes[sample.id])}
            writer.add_row({"id": sample.id, **sample.to_row(), **of_models})
        manifest = _manifest(named, options, everything, writer.skipped, reports)
        if votes is not None:
            writer.add_file("level-votes.csv", votes.sheet(everything))
            manifest["level_votes"] = votes.summary({sample.id: sample.level for sample in everything})
        return writer.finish(manifest, replace=options.replace)


def _samples(
    name: str, place: str, writer: BuildWriter, options: BuildOptions, reports: dict[str, ConstructedSamples]
) -> Iterator[tuple[str, CrossCheckSample]]:
    """Yield the samples of one source, each with its place in the source, and add their pictures to the build.

    Rows that cannot be used are recorded with ``writer``.
    """
    if name != ROWS:
        from benchmarks.crosscheck_bench.construction.crosscheck_construction import construct

        constructed = construct(name, Path(place).expanduser(), writer, options)
        reports[f"{name}={place}"] = constructed
        yield from ((sample.row_id or sample.product, sample) for sample in constructed.samples)
        return
    for row in read_samples(place):
        if isinstance(row, SkippedRow):
            writer.add_skipped(row.source, row.row, row.reason)
            continue
        try:
            yield row.row, _with_pictures(row, writer)
        except MediaError as error:
            writer.add_skipped(name, row.row, f"a picture {error.reason}")
        except RowProblem as problem:
            writer.add_skipped(name, row.row, str(problem))


def _with_pictures(row: CrossCheckSourceRow, writer: BuildWriter) -> CrossCheckSample:
    pictures = [load() for load in row.frames]
    sizes = [load_image(picture).size for picture in pictures]
    check_boxes(row.sample, sizes)  # before add_media, so that a skipped row leaves no files in the build
    media = [writer.add_media(picture, image_suffix(picture) or "") for picture in pictures]
    return with_frames(row.sample, list(zip(media, sizes, strict=True)))


def _manifest(
    named: Sequence[tuple[str, str]],
    options: BuildOptions,
    samples: Sequence[CrossCheckSample],
    skipped: Mapping[str, Counter[str]],
    reports: Mapping[str, ConstructedSamples],
) -> dict[str, Any]:
    manifest: dict[str, Any] = {"benchmark": "crosscheck-bench", "seed": options.seed, "options": {}}
    if reports:
        manifest["options"] = {"per_stratum": options.per_stratum}
        manifest["models"] = {"writer": options.writer and options.writer.name}
        if options.extractor is not None:
            manifest["models"]["extractor"] = options.extractor.name
        manifest["construction"] = [constructed.report for constructed in reports.values()]
        for constructed in reports.values():
            if constructed.extraction is not None:
                manifest["extraction"] = constructed.extraction
    tasks = Counter(sample.task for sample in samples)
    levels = Counter(sample.level for sample in samples)
    return manifest | {
        "samples": len(samples),
        "tasks": {task: tasks[task] for task in TASKS if tasks[task]},
        "levels": {level: levels[level] for level in LEVELS if levels[level]},
        "open": sum(not sample.closed for sample in samples),
        "with_boxes": sum(bool(sample.boxes) for sample in samples),
        "sources": {
            name: {
                "samples": sum(sample.source == name for sample in samples),
                "samples_sha256": digest([sample.to_row() for sample in samples if sample.source == name]),
                "skipped": dict(sorted(skipped.get(name, Counter[str]()).items())),
            }
            for name in dict.fromkeys(name for name, _ in named)
        },
    }
