"""Contra4: contrastive reasoning across audio, video, image and 3D (anonymous ACL submission)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind
from benchmarks.base import Benchmark, DataSource
from benchmarks.build import Build
from benchmarks.contra4.contra4_constants import CONDITIONS, LABELS, WITHOUT_SOURCES
from benchmarks.contra4.contra4_prompts import PROMPT_SETS
from benchmarks.contra4.sources.contra4_released import MEDIA_SOURCES
from benchmarks.deferred_methods import function, instance, method
from benchmarks.prompt_template import Prompts
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Decoding, Instance, Pages, Table

if TYPE_CHECKING:
    from benchmarks.contra4.contra4_sample import Contra4Sample

__all__ = ["Contra4"]


class Contra4(Benchmark):
    """A question about two to four scenes in different modalities, answered by one of them."""

    name = "contra4"
    title = "Contra4: contrastive cross-modal reasoning in audio, video, image and 3D"
    in_plain_words = (
        "A model gets two to four scenes, each an image, a sound, a video or a 3D model, and chooses the "
        "one that fits a question."
    )
    paper = "Contra4: Evaluating Contrastive Cross-Modal Reasoning in Audio, Video, Image, and 3D"
    conditions = (*CONDITIONS, *WITHOUT_SOURCES)
    without_sources = WITHOUT_SOURCES
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "options")
    sources = (
        DataSource("published", "the published test.json and val.json, or rows of your own in their layout"),
        DataSource("captioned", "captioned media, from which questions are constructed and balanced by modality"),
        DataSource(
            "captioned-paper", "captioned media for the paper's construction, which does not balance modalities"
        ),
        DataSource("checks", "a filled-in checks.csv of a construction, for its tables 1, 5 and 7"),
        *(DataSource(name, what) for name, (_, what) in MEDIA_SOURCES.items()),
    )
    build_options = frozenset({"captions"})
    stratum = "kind"
    judges = ("choice", "official")
    paper_rows = "its test rows, of which 2,335 are published; Gemini's without 3D"
    paper_judge = "the published evaluation (official)"
    paper_prompts = "each model's own; the caption baseline's and Gemini's are official"
    unparsed_label = "INCORRECT"
    most_checkers = None
    paper_embedder = "sentence-transformers/all-MiniLM-L6-v2"
    default_conditions = ("media",)
    without_media = (
        "ask by captions (--conditions gold-captions, or captions of a build made with --captioner), or show 3D and videos as "
        "pictures (--conditions rendered of a build made with --rendered)."
    )
    decoding = Decoding(max_tokens=64)

    review_guide = instance("benchmarks.contra4.contra4_review:Contra4Guide")
    build = function(Benchmark.build, "benchmarks.contra4.contra4_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.contra4.contra4_instances import instances

        return (instance for sample in self._samples(build, prompt_set) for instance in instances(*sample))

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.contra4.contra4_instances import all_instances

        return (instance for sample in self._samples(build, prompt_set) for instance in all_instances(*sample))

    def _samples(self, build: Build, prompt_set: Prompts) -> Iterator[tuple[Contra4Sample, Prompts, bool]]:
        from benchmarks.contra4.contra4_sample import Contra4Sample

        self.check(build, prompt_set)
        rendered = bool(build.manifest["options"]["rendered"])
        return ((Contra4Sample.from_row(row), prompt_set, rendered) for row in build.rows())

    options = function(Benchmark.options, "benchmarks.contra4.contra4_instances:answer_forms")
    blind_question = function(Benchmark.blind_question, "benchmarks.contra4.contra4_instances:blind_scenes")

    def choices(self, instance: Instance) -> int:
        return len(instance.references.get("options", ()))

    def correct(self, condition: str, label: str) -> bool:
        return label == "CORRECT"

    table_strata = ("kind", "modalities", "category")

    def with_label(self, kind: AnswerKind, judge: str, label: str) -> AnswerKind:
        kind = super().with_label(kind, judge, label)
        return replace(kind, reading=kind.reading._replace(official=label == "CORRECT"))

    reading = function(Benchmark.reading, "benchmarks.contra4.contra4_reading:read")
    tables = method(Benchmark.tables, "benchmarks.contra4.contra4_tables:tables")

    def build_tables(self, build: Build) -> list[Table]:
        from benchmarks.contra4.contra4_sample import Contra4Sample
        from benchmarks.contra4.contra4_statistics import statistics_tables

        self.check(build, next(iter(self.prompt_sets)))
        return statistics_tables([Contra4Sample.from_row(row) for row in build.rows()])

    def pages(self, instance: Instance) -> Pages:
        own, shown = super().pages(instance)
        return Pages((), (*own, *shown))  # a scene may be among those of many questions

    label_metrics = function(Benchmark.label_metrics, "benchmarks.contra4.contra4_tables:label_metrics")

    training_filters = ("PUF", "MF", "UF", "PMF")

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        from benchmarks.contra4.contra4_sample import Contra4Sample
        from benchmarks.contra4.contra4_training import CANDIDATES, training_rows
        from benchmarks.rows.json_rows import read_json_lines

        file = build.path / CANDIDATES
        candidates = (fields for _, fields in read_json_lines(file)) if file.is_file() else iter(())
        samples = map(Contra4Sample.from_row, build.rows())
        return training_rows(samples, candidates, options, rendered=bool(build.manifest["options"]["rendered"]))
