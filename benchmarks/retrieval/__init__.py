"""Retrieval: conflicts in a pipeline's own log, found by reading its sources alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.base import AbstentionRule, Benchmark, DataSource
from benchmarks.build import Build
from benchmarks.cmc_bench import CMCBench
from benchmarks.cmc_bench.cmc_constants import PAPER_CONDITIONS
from benchmarks.deferred_methods import function, instance, method
from benchmarks.prompt_template import Prompts
from benchmarks.retrieval.retrieval_constants import ACCURATE, CONDITIONS, CONFLICT_CONDITIONS
from benchmarks.retrieval.retrieval_prompts import text_before_image
from benchmarks.source_agreement import UNDECIDED
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import CLOSED_BOOK, Instance, LabelMetrics, Pages, Part

__all__ = ["Retrieval"]


class Retrieval(CMCBench):
    """Natural conflicts, with CMC-Bench's prompts, labels and metrics; no text and no image is changed."""

    name = "retrieval"
    title = "Retrieval: natural conflicts in your own retrieval log"
    in_plain_words = (
        "Each question comes with the page images and passages that a retrieval system found for it; some of them disagree. A "
        "good model answers what is right, and says so if it cannot tell."
    )
    paper = "no paper; the conditions and metrics of CMC-Bench (Catapang) on questions of your own"
    conditions = (*CONDITIONS, CLOSED_BOOK)
    sources = (
        DataSource(
            "log", "JSON lines of a question, retrieved passages and page images, optionally the right answer", own=True
        ),
        DataSource("misleading-chartqa", "charts that mislead, each with an explanation: Misleading ChartQA"),
    )
    build_options = CMCBench.build_options | {"readers"}
    rows_source = "log"
    paper_rows = "other questions than yours"
    conflicts = CONFLICT_CONDITIONS
    situations: Mapping[str, str] = {
        **CMCBench.situations,
        UNDECIDED: "when nobody knows which is right",
    }

    inventions = frozenset({"NEITHER"})
    abstention = AbstentionRule(
        CONFLICT_CONDITIONS, ("aligned",), dict.fromkeys((*PAPER_CONDITIONS, UNDECIDED), frozenset({"ABSTAIN"}))
    )

    review_guide = instance("benchmarks.retrieval.retrieval_review:RetrievalGuide")
    build = function(Benchmark.build, "benchmarks.retrieval.retrieval_build:build")
    check_rows = function(Benchmark.check_rows, "benchmarks.retrieval.retrieval_check_rows:check_rows")
    read_rows = function(Benchmark.read_rows, "benchmarks.retrieval.retrieval_check_rows:read_rows")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.retrieval.retrieval_instances import instance_from_row

        self.check(build, prompt_set)
        return (instance_from_row(row, prompt_set) for row in build.rows())

    def pages(self, instance: Instance) -> Pages:
        return Benchmark.pages(self, instance)  # what a question retrieved is its own, right or wrong

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        return ("\n\n".join(row["passages"]),) if row["passages"] else ()

    def reordered(self, parts: Sequence[Part], passages: Sequence[str], *, text_first: bool) -> tuple[Part, ...]:
        changed = text_before_image(parts, passages) if text_first else ()
        return changed or super().reordered(parts, passages, text_first=text_first)

    def correct(self, condition: str, label: str) -> bool:
        return label in ACCURATE[condition]

    def label_metrics(self) -> LabelMetrics:
        from benchmarks.retrieval.retrieval_tables import LABEL_METRICS

        return LABEL_METRICS

    tables = method(Benchmark.tables, "benchmarks.retrieval.retrieval_tables:tables")

    training_filters: tuple[str, ...] = ()

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        return super(CMCBench, self).training_rows(build, options)
