"""From sources to a build on disk: one row a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.base import Modality, digest
from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.contra4.constants import COMBINATIONS, MODALITIES
from benchmarks.contra4.construction.captions import Captioners, predict
from benchmarks.contra4.media_files import BuildMedia
from benchmarks.contra4.sample import Contra4Sample
from benchmarks.contra4.sources.released import (
    CAPTIONED,
    CHECKS,
    NAMES,
    PUBLISHED,
    Contra4SourceRow,
    media_folders,
    read,
)
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.sources import most_common, resolved

_REPEATED = "repeated: another row is the same sample"
_REPEATED_ID = "repeated id: another row has this id"
_NO_MEDIUM = "no media condition"
_NO_CAPTION = "no captions condition"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out``, in the order of the sources; see ``Benchmark.build``.

    Every published row is taken; ``options.per_stratum`` is a target for what is constructed alone. A row whose media are not
    all there stays, for the conditions that need none; which are missing is noted with its row. Raises SpecError for unknown
    source names and for a construction without models, SourceError for sources that are not there, of no known layout, or
    without a sample that can be used.
    """
    known = list(dict.fromkeys(resolved("contra4", NAMES, [(name or PUBLISHED, place) for name, place in sources])))
    named = media_folders(known)
    if not any(name in (PUBLISHED, CAPTIONED) for name, _ in known):
        raise SpecError(
            f"name what the questions are read from: {PUBLISHED}=FOLDER, or {CAPTIONED}=FOLDER to construct them."
        )
    captioners = _captioners(options)
    report: dict[str, Any] = {}
    with BuildWriter(out) as writer:
        material = BuildMedia(writer, named, options.render)
        samples: dict[str, Contra4Sample] = {}
        ids: set[str] = set()
        for found in _found(known, writer, options, report):
            sample = found.sample
            if sample.id in samples or (sample.row_id and sample.row_id in ids):
                writer.add_skipped(sample.source, found.row, _REPEATED if sample.id in samples else _REPEATED_ID)
                continue
            ids.add(sample.row_id)
            sample = replace(sample, scenes=tuple(material.of(scene, found.file) for scene in sample.scenes))
            _note_media(sample, found.row, writer)
            samples[sample.id] = sample
        made = []
        for sample, problems in predict(list(samples.values()), captioners, options.seed):
            for problem in problems:
                writer.add_skipped(sample.source, sample.row_id or sample.id, f"{_NO_CAPTION}: {problem}")
            made.append(sample)
            writer.add_row({"id": sample.id, **sample.to_row()})
        if not made:
            raise SourceError(f"the sources have no sample that can be used ({most_common(writer.skipped)}).")
        return writer.finish(_manifest(options, made, writer.skipped, captioners, report), replace=options.replace)


def _found(
    known: Sequence[tuple[str, str]], writer: BuildWriter, options: BuildOptions, report: dict[str, Any]
) -> Iterator[Contra4SourceRow]:
    for name, place in known:
        if name == CAPTIONED:
            from benchmarks.contra4.construction.pipeline import construct

            checks = [Path(place).expanduser() for name, place in known if name == CHECKS]
            made = construct(place, writer, options, checks)
            report |= made.report
            yield from made.samples
        elif name == PUBLISHED:
            for found in read(place):
                if isinstance(found, SkippedRow):
                    writer.add_skipped(found.source, found.row, found.reason)
                else:
                    yield found


def _note_media(sample: Contra4Sample, row: str, writer: BuildWriter) -> None:
    for letter, scene in zip(sample.letters, sample.scenes, strict=True):
        if scene.problem:
            what = _NO_MEDIUM if scene.media is None else "no rendered condition"
            where = f"{row} ({sample.row_id}) Scene {letter}, {scene.source}/{scene.name}"
            writer.add_skipped(sample.source, where, f"{what}, {scene.modality} {scene.problem}")


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
    kinds = Counter(f"{len(each.scenes)}-{each.negatives}" for each in samples)
    combinations = Counter(each.modalities for each in samples)
    answers = Counter(f"{len(each.scenes)}-{each.letters[each.answer]}" for each in samples)
    scenes = [scene for each in samples for scene in each.scenes]
    media = {
        name: Counter(bool(scene.media) for scene in scenes if scene.modality == key)
        for key, name in MODALITIES.items()
    }
    return {
        "benchmark": "contra4",
        "seed": options.seed,
        "options": {"rendered": options.render is not None},
        "samples": len(samples),
        "samples_sha256": digest([each.to_row() for each in samples]),
        "splits": dict(sorted(Counter(each.split or each.source for each in samples).items())),
        "kinds": dict(sorted(kinds.items())),
        "combinations": {
            name: combinations[name]
            for name in (*COMBINATIONS, *sorted(set(combinations) - set(COMBINATIONS)))
            if combinations[name]
        },
        "answers": dict(sorted(answers.items())),
        "with_all_media": sum(all(scene.media for scene in each.scenes) for each in samples),
        "rendered": sum(all(scene.shown for scene in each.scenes) for each in samples) if options.render else 0,
        "captioned": sum(all(scene.predicted for scene in each.scenes) for each in samples),
        "scenes": {name: {"there": found[True], "missing": found[False]} for name, found in media.items() if found},
        "captioners": {MODALITIES[modality]: model.name for modality, model in captioners.items()},
        "skipped": {source: dict(sorted(counted.items())) for source, counted in sorted(skipped.items())},
        **report,
    }
