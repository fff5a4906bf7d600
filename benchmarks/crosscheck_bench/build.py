"""From sources to a build on disk: one row a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.base import digest
from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.crosscheck_bench.constants import LEVELS, TASKS
from benchmarks.crosscheck_bench.sample import CrossCheckSample, check_boxes, with_frames
from benchmarks.crosscheck_bench.sources import NAMES, PRODUCTS, CrossCheckSourceRow, read
from benchmarks.errors import MediaError, SourceError
from benchmarks.media import image_suffix, load_image
from benchmarks.rows.files import RowProblem, SkippedRow
from benchmarks.rows.sources import most_common, resolved

_REPEATED = "repeated: another row is the same sample"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every row that can be used is taken: ``options.per_stratum`` is a target for what is constructed alone. Raises SpecError
    for unknown source names, SourceError for sources that are not there, of no known layout, or without a sample that can
    be used.
    """
    named = list(dict.fromkeys(resolved("crosscheck-bench", NAMES, sources)))
    samples: dict[str, CrossCheckSample] = {}
    reports: dict[str, Mapping[str, Any]] = {}
    with BuildWriter(out) as writer:
        for name, place in named:
            for row, sample in _samples(name, place, writer, options, reports):
                if sample.id in samples:
                    writer.add_skipped(name, row, _REPEATED)
                    continue
                samples[sample.id] = sample
                writer.add_row({"id": sample.id, **sample.to_row()})
        if not samples:
            raise SourceError(f"the sources have no sample that can be used ({most_common(writer.skipped)}).")
        manifest = _manifest(named, options, list(samples.values()), writer.skipped, reports)
        return writer.finish(manifest, replace=options.replace)


def _samples(
    name: str, place: str, writer: BuildWriter, options: BuildOptions, reports: dict[str, Mapping[str, Any]]
) -> Iterator[tuple[str, CrossCheckSample]]:
    """The samples of one source with their pictures in the build, each with where its row is; the others are noted."""
    if name == PRODUCTS:
        from benchmarks.crosscheck_bench.construction.pipeline import construct

        made = construct(Path(place).expanduser(), writer, options)
        reports[place] = made.report
        yield from ((sample.row_id or sample.product, sample) for sample in made.samples)
        return
    for each in read(place):
        if isinstance(each, SkippedRow):
            writer.add_skipped(each.source, each.row, each.reason)
            continue
        try:
            yield each.row, _with_pictures(each, writer)
        except MediaError as error:
            writer.add_skipped(name, each.row, f"a picture {error.reason}")
        except RowProblem as problem:
            writer.add_skipped(name, each.row, str(problem))


def _with_pictures(found: CrossCheckSourceRow, writer: BuildWriter) -> CrossCheckSample:
    data = [load() for load in found.frames]
    sizes = [load_image(each).size for each in data]
    check_boxes(found.sample, sizes)  # first: of a row that is left out nothing stays in the build
    media = [writer.add_media(each, image_suffix(each) or "") for each in data]
    return with_frames(found.sample, list(zip(media, sizes, strict=True)))


def _manifest(
    named: Sequence[tuple[str, str]],
    options: BuildOptions,
    samples: Sequence[CrossCheckSample],
    skipped: Mapping[str, Counter[str]],
    reports: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    made: dict[str, Any] = {"benchmark": "crosscheck-bench", "seed": options.seed, "options": {}}
    if reports:
        made["options"] = {"per_stratum": options.per_stratum}
        made["models"] = {"writer": options.writer and options.writer.name}
        made["construction"] = list(reports.values())
    tasks = Counter(sample.task for sample in samples)
    levels = Counter(sample.level for sample in samples)
    return made | {
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
