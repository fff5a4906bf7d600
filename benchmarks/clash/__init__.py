"""CLASH: cross-modal contradiction detection between an image and its caption (Popordanoska et al.)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind
from benchmarks.base import AbstentionRule, Benchmark, DataSource, ImportedAnswer
from benchmarks.build import Build
from benchmarks.clash.clash_constants import (
    CONDITIONS,
    CONFLICT_OPTION,
    CONFLICTING,
    CORRECT,
    LABELS,
    LETTERS,
    WITHOUT_SOURCES,
    is_multiple_choice,
)
from benchmarks.clash.clash_prompts import PROMPT_SETS
from benchmarks.deferred_methods import function, instance, method
from benchmarks.prompt_template import Prompts
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Instance, Table

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion
    from benchmarks.clash.clash_sample import ClashSample
    from benchmarks.rubric import Rubric

__all__ = ["Clash"]


class Clash(Benchmark):
    """Cross-modal contradiction detection: multiple choice and open questions, on conflicting and on original captions."""

    name = "clash"
    title = "CLASH: cross-modal contradiction detection"
    in_plain_words = (
        "A model sees a photograph with a caption, which in some prompts names a wrong object or attribute, and is asked about "
        "it. A good model notices that caption and photograph disagree."
    )
    paper = "Popordanoska, Li, Blaschko, Clash: A Benchmark for Cross-Modal Contradiction Detection"
    conditions = (*CONDITIONS, *WITHOUT_SOURCES)
    without_sources = WITHOUT_SOURCES
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "text", "options")
    sources = (
        DataSource("published", "the published samples, with COCO's train2017 images"),
        DataSource("sugar-crepe", "SugarCrepe's replaced objects and attributes, with COCO's val2017 images"),
        DataSource("coco", "COCO captions, from which a text model constructs samples as in section 3"),
        DataSource("spatial", "COCO captions with a spatial relation, which is reversed"),
        DataSource("rows", "your own samples", own=True),
    )
    build_options = frozenset({"readers", "official_code"})
    stratum = "change"
    judges = ("strict", "relaxed")
    paper_rows = "its 1,289 published samples (multiple choice: about 1,500 in some rows, see docs/published.md)"
    paper_judge = "strict or relaxed string matching, as each table says; in Table 11 Gemini 2.5 Pro and GPT-5"
    paper_prompts = "official, with which the published predictions were made"
    counts_flags = True
    unparsed_label = "INCORRECT"
    conflicts = CONFLICTING
    abstention_phrase = CONFLICT_OPTION.rstrip(".")
    behaviours: Mapping[str, str] = {
        "CONFLICT": "sees the conflict",
        "IMAGE": "follows the image",
        "TEXT": "follows the text",
        "DISTRACTOR": "takes the distractor",
        "INCORRECT": "says what is none of these",
    }
    situations: Mapping[str, str] = {
        "mc-conflicting": "when the caption is wrong and options are offered",
        "open-conflicting": "when the caption is wrong and it answers freely",
        "mc-original": "when the caption is right and options are offered",
        "open-original": "when the caption is right and it answers freely",
    }
    abstention = AbstentionRule(
        CONFLICTING, ("mc-original", "open-original"), dict.fromkeys(CONDITIONS, frozenset({"CONFLICT"}))
    )
    answer_formats: Mapping[str, str] = {
        "published": "the authors' prediction files, multiple choice, open, and with LLM judges",
        "published-original": "the same, of the control with original captions",
    }

    rubric = instance("benchmarks.clash.clash_rubric:ClashRubric")
    review_guide = instance("benchmarks.clash.clash_review:ClashGuide")
    build = function(Benchmark.build, "benchmarks.clash.clash_build:build")

    def official_rubric(self, clone: Path) -> Rubric:
        from benchmarks.clash.clash_official_code import read_prompts
        from benchmarks.clash.clash_rubric import OfficialClashRubric

        return OfficialClashRubric(read_prompts(clone))

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.clash.clash_instances import instances

        return (instance for sample in self._samples(build, prompt_set) for instance in instances(*sample))

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.clash.clash_instances import all_instances

        return (instance for sample in self._samples(build, prompt_set) for instance in all_instances(*sample))

    def _samples(self, build: Build, prompt_set: Prompts) -> Iterator[tuple[ClashSample, Prompts, int]]:
        from benchmarks.clash.clash_sample import ClashSample

        self.check(build, prompt_set)
        return ((ClashSample.from_row(row), prompt_set, build.manifest["seed"]) for row in build.rows())

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        caption = row["conflicting_caption" if instance.condition in CONFLICTING else "original_caption"]
        return (caption,) if caption else ()

    def options(self, instance: Instance) -> tuple[str, ...]:
        return tuple(f"({letter})" for letter in LETTERS) if is_multiple_choice(instance.condition) else ()

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        from benchmarks.audit.blind_question import lettered_question

        return lettered_question(instance, CORRECT[instance.condition].lower(), "mc")

    def correct(self, condition: str, label: str) -> bool:
        return CORRECT[WITHOUT_SOURCES.get(condition, (condition,))[-1]] == label

    def counted_labels(self, kind: AnswerKind, judge: str) -> tuple[str, ...]:
        labels = super().counted_labels(kind, judge)
        if not labels or is_multiple_choice(kind.condition):
            return labels
        # An open question has no distractor.
        return tuple(label for label in labels if label != "DISTRACTOR") or ("INCORRECT",)

    def chooses_none(self, kind: AnswerKind, judge: str) -> bool:
        return super().chooses_none(kind, judge) or self.counted_labels(kind, judge) == ("INCORRECT",)

    table_strata = ("change", "category", "relation")

    tables = method(Benchmark.tables, "benchmarks.clash.clash_tables:tables")

    def build_tables(self, build: Build) -> list[Table]:
        from benchmarks.clash.clash_sample import ClashSample
        from benchmarks.clash.clash_statistics import statistics_tables

        self.check(build, next(iter(self.prompt_sets)))
        return statistics_tables([ClashSample.from_row(row) for row in build.rows()])

    label_metrics = function(Benchmark.label_metrics, "benchmarks.clash.clash_metrics:label_metrics")

    def read_answers(self, path: Path, form: str, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
        from benchmarks.clash.clash_predictions import PredictionsReport, read_answers

        report = PredictionsReport([], [])
        yield from read_answers(path, caption="conflicting" if form == "published" else "original", report=report)
        for skipped in report.skipped:
            left_out(skipped.row, skipped.reason)
        for row in report.unjoined:
            left_out(row, "is not in the published data, so its category is not known; it was imported all the same")

    training_filters = ("filtered", "unfiltered")

    def training_filter(self, builds: Sequence[Build]) -> str:
        options = [build.manifest.get("options", {}) for build in builds]
        return "unfiltered" if any(made.get("rejected") or made.get("unfiltered") for made in options) else ""

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        from benchmarks.clash.clash_training import training_rows

        return training_rows(self.instances(build, options.prompt_set), options)
