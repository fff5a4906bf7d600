"""The build of CLASH: data sources in, one row per sample out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from benchmarks.build import REJECTED_SUFFIX, Build, BuildOptions, BuildWriter
from benchmarks.clash.clash_categories import join_categories, same_categories, shared_categories
from benchmarks.clash.clash_constants import CHANGE_TYPES, OTHER, RELATIONS
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.clash_statistics import statistics_files
from benchmarks.clash.clash_word_sorting import FILE, Words, read_words, sheet, sort_words, unlisted_words
from benchmarks.clash.sources import read_source
from benchmarks.clash.sources.clash_released import is_unfiltered
from benchmarks.clash.sources.clash_source_row import CONSTRUCTED, SOURCE_NAMES
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media import examine_image, image_suffix
from benchmarks.rows.files import ShownImage, SkippedRow
from benchmarks.rows.sources import resolve_sources, top_reasons
from benchmarks.vocabulary import digest

if TYPE_CHECKING:
    from benchmarks.clash.construction.clash_construction import RejectedSample

_REPEATED = "repeated: another row is the same sample"

Construction = Callable[[Path, BuildWriter, BuildOptions], "Iterator[ClashSample | RejectedSample]"]


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read or construct the samples and write them to ``out`` in source order; see ``Benchmark.build``.

    Sources that are read contribute all their samples; ``options.per_stratum`` is a target for constructed ones only.
    Raises SpecError for unknown source names and for a construction without a writer, SourceError for sources that do
    not exist, have an unknown layout or contain no usable sample.
    """
    named_sources = list(dict.fromkeys(resolve_sources("clash", SOURCE_NAMES, sources)))
    if options.official_code is not None and not any(name in CONSTRUCTED for name, _ in named_sources):
        raise SpecError(
            f"--official-code is for {' and '.join(CONSTRUCTED)}, whose captions a model writes; leave it out."
        )
    samples: dict[str, ClashSample] = {}
    with BuildWriter(out) as writer, _RejectedBuild(out, options) as rejected:
        for name, place in named_sources:
            for row, sample in _samples(name, place, writer, rejected, options):
                if sample.id in samples:
                    writer.add_skipped(name, row or f"image {sample.image_id}", _REPEATED)
                    continue
                samples[sample.id] = sample
        if not samples:
            raise SourceError(f"the sources have no usable sample ({top_reasons(writer.skipped)}).")
        sorted_words = _sorted_words(named_sources, samples.values(), options)
        if any(sorted_words.values()):
            writer.add_sheet(FILE, sheet(sorted_words))
            more = {word: category for words in sorted_words.values() for word, category in words.items()}
            samples = {
                name: _categorised(sample, sample.source, more) if sample.category == OTHER else sample
                for name, sample in samples.items()
            }
        for name, sample in samples.items():
            writer.add_row({"id": name, **sample.to_row()})
        rejected.finish()
        for file_name, data in statistics_files(list(samples.values())).items():
            writer.add_file(file_name, data)
        manifest = _manifest(named_sources, options, samples, writer.skipped)
        if any(sorted_words.values()):
            manifest["sorted_words"] = {who: len(words) for who, words in sorted_words.items() if words}
        return writer.finish(manifest, replace=options.replace)


class _RejectedBuild:
    """The build of rejected samples beside another build; it is not made if there are none."""

    def __init__(self, out: Path, options: BuildOptions) -> None:
        self._writer = BuildWriter(out.with_name(out.name + REJECTED_SUFFIX))
        self._options = options
        self._stack = ExitStack()
        self._samples: dict[str, ClashSample] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, name: str, sample: ClashSample, data: bytes, suffix: str) -> None:
        """Add a sample of the source ``name`` with the bytes of its image, unless it is there already."""
        if not self._samples:
            self._stack.enter_context(self._writer)
        sample = replace(_categorised(sample, name), image=self._writer.add_media(data, suffix))
        if sample.id not in self._samples:
            self._samples[sample.id] = sample
            self._writer.add_row({"id": sample.id, **sample.to_row()})

    def finish(self) -> None:
        """Put the build in its place, if it has samples. Raises AnotherBuildError as ``BuildWriter.finish``."""
        if not self._samples:
            return
        samples = self._samples.values()
        for file_name, data in statistics_files(list(samples)).items():
            self._writer.add_file(file_name, data)
        manifest = {
            "benchmark": "clash",
            "seed": self._options.seed,
            "options": {"rejected": True},
            "samples": len(samples),
            "rejected": dict(sorted(Counter(sample.rejected for sample in samples).items())),
        }
        self._writer.finish(manifest, replace=self._options.replace)


def _sorted_words(
    sources: Sequence[tuple[str, str]], samples: Iterable[ClashSample], options: BuildOptions
) -> dict[str, Words]:
    """Return the categories of words that the printed lists lack, by who assigned them: people, or the reading model."""
    by_people: dict[tuple[str, str], str] = {}
    for _, place in sources:
        by_people |= read_words(Path(place).expanduser())
    words: dict[str, Words] = {"people": by_people}
    for model in options.readers[:1]:
        unsorted = [word for word in unlisted_words(samples) if word not in by_people]
        words[model.name] = sort_words(unsorted, model, options.seed)
    return words


def _categorised(sample: ClashSample, name: str, more: Words = MappingProxyType({})) -> ClashSample:
    names = shared_categories(sample.change_type, sample.changed_original, sample.changed_conflicting, more)
    return replace(sample, source=name, category=join_categories(names, sample.change_type))


def _samples(
    name: str, place: str, writer: BuildWriter, rejected: _RejectedBuild, options: BuildOptions
) -> Iterator[tuple[str, ClashSample]]:
    """Yield each sample of a source, its image stored in the build, with its row; record unusable rows as skipped."""
    if name in CONSTRUCTED:
        for sample in _construction(name)(Path(place).expanduser(), writer, options):
            if isinstance(sample, ClashSample):
                yield "", _categorised(sample, name)
            else:
                rejected.add(name, sample.sample, sample.data, sample.suffix)
        return
    for row in read_source(name, place, options.seed):
        if isinstance(row, SkippedRow):
            writer.add_skipped(row.source, row.row, row.reason)
            continue
        try:
            data = row.image()
            warnings = examine_image(data).warnings
        except MediaError as error:
            writer.add_skipped(name, row.row, f"the image {error.reason}")
            continue
        if warnings and isinstance(row.image, ShownImage):
            writer.add_warning(row.row, "; ".join(warnings))
        suffix = image_suffix(data) or ""
        if row.sample.rejected:
            writer.add_skipped(name, row.row, f"{row.sample.rejected}: among the rejected samples")
            rejected.add(name, row.sample, data, suffix)
        else:
            yield row.row, replace(row.sample, image=writer.add_media(data, suffix))


def _construction(name: str) -> Construction:
    if name == "coco":
        from benchmarks.clash.construction.clash_construction import construct

        return construct
    from benchmarks.clash.construction.spatial_subset import construct_spatial

    return construct_spatial


def _manifest(
    named: Sequence[tuple[str, str]],
    options: BuildOptions,
    samples: Mapping[str, ClashSample],
    skipped: Mapping[str, Counter[str]],
) -> dict[str, Any]:
    all_samples = list(samples.values())
    changes = Counter(s.change_type for s in all_samples)
    relations = Counter(s.relation for s in all_samples)
    return {
        "benchmark": "clash",
        "seed": options.seed,
        **_options(named, options),
        "samples": len(all_samples),
        "change_types": {kind: changes[kind] for kind in CHANGE_TYPES if changes[kind]},
        "categories": {
            kind: dict(sorted(Counter(s.category for s in all_samples if s.change_type == kind).items()))
            for kind in ("object", "attribute")
            if changes[kind]
        },
        "relations": {relation: relations[relation] for relation in RELATIONS if relations[relation]},
        "other_category_than_published": sum(
            s.published_category is not None and not same_categories(s.category, s.published_category)
            for s in all_samples
        ),
        "sources": {
            name: _source([s for s in all_samples if s.source == name], skipped.get(name, Counter[str]()))
            for name in dict(named)
        },
    }


def _options(named: Sequence[tuple[str, str]], options: BuildOptions) -> dict[str, Any]:
    """Return the options that the samples depend on, and the models of a construction."""
    chosen: dict[str, Any] = {}
    models: dict[str, Any] = {}
    if any(name in CONSTRUCTED for name, _ in named):
        chosen["per_stratum"] = options.per_stratum
        if options.official_code is not None:
            chosen["prompts"] = "official"
        writer, checker = options.writer, options.checker or options.writer
        models["models"] = {"writer": writer and writer.name, "checker": checker and checker.name}
    if any(name == "published" and is_unfiltered(place) for name, place in named):
        chosen["unfiltered"] = True
    return {"options": chosen, **models}


def _source(samples: Sequence[ClashSample], skipped: Counter[str]) -> dict[str, Any]:
    return {
        "samples": len(samples),
        "samples_sha256": digest([sample.to_row() for sample in samples]),
        "skipped": dict(sorted(skipped.items())),
    }
