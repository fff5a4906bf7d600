"""The build of Contra4: data sources in, one row per sample out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.contra4.construction.predicted_captions import Captioners, predict_captions
from benchmarks.contra4.contra4_constants import COMBINATIONS, MODALITIES
from benchmarks.contra4.contra4_media_files import BuildMedia
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene
from benchmarks.contra4.sources.contra4_released import (
    CAPTIONED,
    CAPTIONED_PAPER,
    CHECKS,
    PUBLISHED,
    SOURCE_NAMES,
    Contra4SourceRow,
    media_folders,
    read_samples,
)
from benchmarks.contra4.sources.imported_captions import read_captions
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.sources import resolve_sources, top_reasons
from benchmarks.vocabulary import Modality, digest

_REPEATED = "repeated: another row is the same sample"
_REPEATED_ID = "repeated id: another row has this id"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    All published rows are used; ``options.per_stratum`` is a target for constructed samples only. A row with missing media
    stays, for the conditions that need none; the missing media are recorded with its row. Raises SpecError for unknown
    source names and for a construction without models, SourceError for sources that do not exist, have an unknown layout
    or contain no usable sample.
    """
    known = list(
        dict.fromkeys(resolve_sources("contra4", SOURCE_NAMES, [(name or PUBLISHED, place) for name, place in sources]))
    )
    folders = media_folders(known)
    constructions = [name for name, _ in known if name in (CAPTIONED, CAPTIONED_PAPER)]
    if len(constructions) > 1:
        raise SpecError(f"a build has one construction; name {CAPTIONED} or {CAPTIONED_PAPER} once.")
    if not constructions and not any(name == PUBLISHED for name, _ in known):
        raise SpecError(
            f"no source of questions; name {PUBLISHED}=FOLDER to read them, or {CAPTIONED}=FOLDER to construct them."
        )
    captioners = _captioners(options)
    report: dict[str, Any] = {}
    with BuildWriter(out) as writer:
        media = BuildMedia(writer, folders, options.render)
        imported = read_captions(options.captions, writer)
        samples: dict[str, Contra4Sample] = {}
        ids: set[str] = set()
        for source_row in _found(known, writer, options, report):
            sample = source_row.sample
            if sample.id in samples or (sample.row_id and sample.row_id in ids):
                writer.add_skipped(sample.source, source_row.row, _REPEATED if sample.id in samples else _REPEATED_ID)
                continue
            ids.add(sample.row_id)
            sample = replace(sample, scenes=tuple(media.of(scene, source_row.file) for scene in sample.scenes))
            sample = imported.on(sample)
            _note_media(sample, source_row.row, writer)
            samples[sample.id] = sample
        captioned_samples = []
        for sample, problems in predict_captions(list(samples.values()), captioners, options.seed):
            for problem in problems:
                writer.add_skipped(sample.source, sample.row_id or sample.id, problem, "captions")
            captioned_samples.append(sample)
            writer.add_row({"id": sample.id, **sample.to_row()})
        if not captioned_samples:
            raise SourceError(f"the sources have no usable sample ({top_reasons(writer.skipped)}).")
        if options.captions is not None:
            report["captions"] = imported.counts()
        return writer.finish(
            _manifest(options, captioned_samples, writer.skipped, captioners, report), replace=options.replace
        )


def _found(
    known: Sequence[tuple[str, str]], writer: BuildWriter, options: BuildOptions, report: dict[str, Any]
) -> Iterator[Contra4SourceRow]:
    for name, place in known:
        if name in (CAPTIONED, CAPTIONED_PAPER):
            from benchmarks.contra4.construction.contra4_construction import construct

            checks = [Path(place).expanduser() for name, place in known if name == CHECKS]
            constructed = construct(place, writer, options, checks, source=name)
            report |= constructed.report
            yield from constructed.samples
        elif name == PUBLISHED:
            for source_row in read_samples(place):
                if isinstance(source_row, SkippedRow):
                    writer.add_skipped(source_row.source, source_row.row, source_row.reason)
                else:
                    yield source_row


def _note_media(sample: Contra4Sample, row: str, writer: BuildWriter) -> None:
    for letter, scene in zip(sample.letters, sample.scenes, strict=True):
        if scene.problem:
            condition = "media" if scene.media is None else "rendered"
            reason = f"{scene.modality} {scene.problem}: Scene {letter}, {scene.source}/{scene.name}"
            writer.add_skipped(sample.source, f"{row} ({sample.row_id})", reason, condition)


def _captioners(options: BuildOptions) -> Captioners:
    known: dict[Modality, Any] = {
        modality: options.captioners[modality] for modality in MODALITIES if modality in options.captioners
    }
    return known


def _manifest(
    options: BuildOptions,
    samples: Sequence[Contra4Sample],
    skipped: Mapping[str, Counter[str]],
    captioners: Captioners,
    report: Mapping[str, Any],
) -> dict[str, Any]:
    kinds = Counter(f"{len(sample.scenes)}-{sample.negatives}" for sample in samples)
    combinations = Counter(sample.modalities for sample in samples)
    answers = Counter(f"{len(sample.scenes)}-{sample.letters[sample.answer]}" for sample in samples)
    return {
        "benchmark": "contra4",
        "seed": options.seed,
        "options": {"rendered": options.render is not None},
        "samples": len(samples),
        "samples_sha256": digest([sample.to_row() for sample in samples]),
        "splits": dict(sorted(Counter(sample.split or sample.source for sample in samples).items())),
        "kinds": dict(sorted(kinds.items())),
        "combinations": {
            name: combinations[name] for name in (*COMBINATIONS, *sorted(combinations)) if combinations[name]
        },
        "answers": dict(sorted(answers.items())),
        "with_all_media": _complete(samples, lambda scene: scene.media),
        "rendered": _complete(samples, lambda scene: scene.shown) if options.render else 0,
        "captioned": _complete(samples, lambda scene: scene.predicted),
        "scenes": _media_counts(samples),
        "captioners": {MODALITIES[modality]: model.name for modality, model in captioners.items()},
        "skipped": {source: dict(sorted(counted.items())) for source, counted in sorted(skipped.items())},
        **report,
    }


def _complete(samples: Sequence[Contra4Sample], has: Callable[[Scene], object]) -> int:
    """Return the number of samples of which every scene has something."""
    return sum(all(map(has, sample.scenes)) for sample in samples)


def _media_counts(samples: Sequence[Contra4Sample]) -> dict[str, dict[str, int]]:
    """Return how many scenes of each modality have their medium, and how many do not."""
    scenes = [scene for sample in samples for scene in sample.scenes]
    media = {
        name: Counter(bool(scene.media) for scene in scenes if scene.modality == key)
        for key, name in MODALITIES.items()
    }
    return {name: {"there": counts[True], "missing": counts[False]} for name, counts in media.items() if counts}
