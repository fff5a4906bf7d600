"""CMC-Bench: conflict between a retrieved image and a retrieved text (Catapang, 2026)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind
from benchmarks.base import AbstentionRule, Benchmark, Contradiction, DataSource
from benchmarks.build import Build
from benchmarks.cmc_bench.cmc_constants import (
    ACCURATE,
    AS_FOUND,
    CONDITIONS,
    CONFLICT_CONDITIONS,
    FOUND,
    HUB_IDS,
    LABELS,
    ORIGIN,
    PAPER_CONDITIONS,
)
from benchmarks.cmc_bench.cmc_prompts import PROMPT_SETS
from benchmarks.deferred_methods import function, instance, method
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import closed_book_instance, with_closed_book
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import CLOSED_BOOK, RIGHT_VALUE, Instance, LabelMetrics, Pages, Part

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion

__all__ = ["CMCBench"]


class CMCBench(Benchmark):
    """The Cross-Modal Conflict Benchmark: the paper's four conditions, and each source by itself."""

    name = "cmc-bench"
    title = "CMC-Bench: cross-modal evidence conflict"
    in_plain_words = (
        "Each question comes with an image, such as a chart, and a text about it. In some prompts both state the right value; in "
        "the others they disagree: one states a wrong value, or each states another wrong one. A good model answers what is "
        "right; where both are wrong, it repeats neither."
    )
    paper = "Catapang, When Image and Text Disagree: Cross-Modal Evidence Conflict in Multimodal RAG"
    conditions: tuple[str, ...] = (*CONDITIONS, CLOSED_BOOK)
    without_sources: Mapping[str, tuple[str, ...]] = {CLOSED_BOOK: ("aligned", "image-only", "text-only")}
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "text")
    sources: tuple[DataSource, ...] = (
        DataSource("chartqa", "charts with questions: ChartQA, validation and test", HUB_IDS["chartqa"]),
        DataSource("mmmu", "diagrams with expert questions: six MMMU subjects, validation and test", HUB_IDS["mmmu"]),
        DataSource("rows", "your own images with questions, answers and texts: a CSV, or a folder", own=True),
        DataSource("released", "the instances released by the paper's author"),
    )
    build_options = frozenset({"difficulty"})
    rows_source = "rows"
    stratum = "type"
    judges = ("match",)
    paper_rows = "its own 942 examples, which cannot all be rebuilt (see docs/cmc-bench.md)"
    paper_judge = "gpt-5-mini behind an API (section 4.2)"
    paper_prompts = "paper"
    conflicts: tuple[str, ...] = CONFLICT_CONDITIONS
    conflict_metric = "MFR"
    without_conflict = ("aligned", "image-only", "text-only")
    detection = "CDR"
    behaviours: Mapping[str, str] = {
        "IMAGE": "follows the image",
        "TEXT": "follows the text",
        "BOTH": "gives both",
        "NEITHER": "says what neither supports",
        "ABSTAIN": "abstains",
    }
    situations: Mapping[str, str] = {
        "image-correct": "when only the image is right",
        "text-correct": "when only the text is right",
        "both-wrong": "when both are wrong",
        "aligned": "when image and text agree",
        "image-only": "when it sees the image alone",
        "text-only": "when it sees the text alone",
        CLOSED_BOOK: "when it sees no source",
    }

    inventions = frozenset({"NEITHER"})
    abstention = AbstentionRule(
        CONFLICT_CONDITIONS, ("aligned",), dict.fromkeys(PAPER_CONDITIONS, frozenset({"ABSTAIN"}))
    )

    review_guide = instance("benchmarks.cmc_bench.cmc_review:CMCGuide")
    build = function(Benchmark.build, "benchmarks.cmc_bench.cmc_build:build")
    check_rows = function(Benchmark.check_rows, "benchmarks.cmc_bench.cmc_check_rows:check_rows")
    read_rows = function(Benchmark.read_rows, "benchmarks.cmc_bench.cmc_check_rows:read_rows")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.cmc_bench.cmc_instances import instance_from_row

        self.check(build, prompt_set)
        return (instance_from_row(row, prompt_set) for row in build.rows())

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        return (row["passage"],) if row["passage"] else ()

    def contradiction(self, siblings: Sequence[Instance]) -> Contradiction | None:
        stated = {instance.condition: instance.references.get("text", ()) for instance in siblings}
        truth, value = stated.get("aligned", ()), stated.get("image-correct", ())
        return Contradiction(truth[0], value[0]) if truth and value else None

    def reordered(self, parts: Sequence[Part], passages: Sequence[str], *, text_first: bool) -> tuple[Part, ...]:
        from benchmarks.cmc_bench import cmc_prompts

        changed = cmc_prompts.text_first(parts, passages[0]) if text_first else ()
        return changed or super().reordered(parts, passages, text_first=text_first)

    rubric = instance("benchmarks.cmc_bench.cmc_rubric:CMCRubric")

    def single_source(self, instance: Instance) -> str:
        # A wrong image, shown alone, answers another question.
        alone = instance.condition.endswith("-only") and instance.strata.get("correct") != "none"
        return instance.condition.removesuffix("-only") if alone else ""

    value_labels = frozenset({"IMAGE", "TEXT", "BOTH"})

    def sources_alone(self, instance: Instance) -> Mapping[str, str]:
        from benchmarks.cmc_bench.cmc_instances import CORRECT_SOURCES

        correct = CORRECT_SOURCES.get(instance.condition)
        if correct is None:
            return {}
        return {
            source: f"{instance.group}/{source}-only/{'right' if correct in ('both', source) else 'wrong'}"
            for source in ("image", "text")
        }

    def right_sources(self, instance: Instance) -> Sequence[str]:
        from benchmarks.cmc_bench.cmc_instances import CORRECT_SOURCES

        correct = CORRECT_SOURCES.get(instance.condition, "none")
        return [source for source in ("image", "text") if correct in ("both", source)]

    def pages(self, instance: Instance) -> Pages:
        own, shown = super().pages(instance)
        is_wrong = instance.condition in ("text-correct", "both-wrong") or "/image-only/wrong" in instance.id
        borrowed = is_wrong and instance.strata.get(ORIGIN) != AS_FOUND
        return Pages(own[:-1], (*own[-1:], *shown)) if borrowed else Pages(own, shown)

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        from benchmarks.audit.blind_question import value_question

        if instance.condition not in self.conflicts:
            return None
        right = instance.references.get((*self.right_sources(instance), RIGHT_VALUE)[0], ())
        return value_question(instance, right, [value for values in instance.references.values() for value in values])

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        return with_closed_book(self.instances(build, prompt_set), partial(self._closed_book, prompt_set))

    def _closed_book(self, prompt_set: Prompts, siblings: Sequence[Instance]) -> Instance | None:
        """Return the closed-book instance of an example; None if its right value is unknown."""
        from benchmarks.cmc_bench.cmc_prompts import parts

        values = (i.references.get((*self.right_sources(i), RIGHT_VALUE)[0]) for i in siblings)
        if (right := next(filter(None, values), None)) is None:
            return None
        prompt = parts(prompt_set, siblings[0].question, None, None)
        return closed_book_instance(siblings[0], prompt, {RIGHT_VALUE: right})

    origins = function(Benchmark.origins, "benchmarks.cmc_bench.cmc_tables:origins")

    def origins_clause(self, manifest: Mapping[str, Any]) -> str:
        if not (evidence := manifest.get("evidence")):
            return ""
        as_found = evidence.get(FOUND, 0)
        changed = sum(manifest["conditions"].get(condition, 0) for condition in CONFLICT_CONDITIONS) - as_found
        return f"{as_found:,} conflicts as your rows have them, {changed:,} made by changing a text or an image"

    def score_with_sources(self, kind: AnswerKind, judge: str) -> float | None:
        # A wrong source, shown alone, answers another question.
        return None if kind.strata.get("correct") == "none" else self.counted_score(kind, judge)

    def score_without_sources(self, condition: str, full: str, label: str) -> float:
        return self.score(condition, label)

    def label_metrics(self) -> LabelMetrics:
        from benchmarks.cmc_bench.cmc_metrics import LOWER_IS_BETTER, MAIN_METRICS

        return LabelMetrics(PAPER_CONDITIONS, LABELS, MAIN_METRICS, lower_is_better=LOWER_IS_BETTER)

    def correct(self, condition: str, label: str) -> bool:
        return label in ACCURATE[condition]

    table_strata = ("type", "correct", ORIGIN)

    tables = method(Benchmark.tables, "benchmarks.cmc_bench.cmc_tables:tables")

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        from benchmarks.cmc_bench.cmc_training import training_rows

        return training_rows(self.instances(build, options.prompt_set), options, self.pages)
