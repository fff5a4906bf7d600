"""MMKC-Bench: the knowledge a model keeps to when its input contradicts what it knows (Jia et al.)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind
from benchmarks.base import AbstentionRule, Benchmark, DataSource, ImportedAnswer
from benchmarks.build import Build
from benchmarks.deferred_methods import function, instance, method
from benchmarks.mmkc_bench.mmkc_constants import (
    ANSWER,
    BASIS,
    COARSE,
    CONDITIONS,
    CONFLICT_CONDITIONS,
    CONTEXT_MEMORY,
    DETECTION_CONDITIONS,
    FINE,
    IMAGE,
    LABELS,
    ORIGINAL_CONDITIONS,
    WITHOUT_CONFLICT,
    WITHOUT_SOURCES,
    asks_for_agreement,
    form_of,
)
from benchmarks.mmkc_bench.mmkc_prompts import PROMPT_SETS
from benchmarks.prompt_template import Prompts
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Instance, Pages, Text

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion
    from benchmarks.mmkc_bench.mmkc_example import Example


__all__ = ["MMKCBench"]

_DETECTS, _ALARMS = frozenset({"CORRECT"}), frozenset({"WRONG"})


class MMKCBench(Benchmark):
    """Multimodal knowledge conflicts: context against memory, two contexts against each other, and conflict detection."""

    name = "mmkc-bench"
    title = "MMKC-Bench: multimodal knowledge conflicts, context-memory and inter-context"
    in_plain_words = (
        "A model is asked what it knows about a person, a logo or a gesture, and then again with evidence that states something "
        "else. Measured is whether it keeps its own answer or takes that of the evidence."
    )
    paper = "Jia et al., Benchmarking Multimodal Knowledge Conflict for Large Multimodal Models"
    conditions = (*CONDITIONS, *WITHOUT_SOURCES)
    without_sources = WITHOUT_SOURCES
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "text")
    sources = (
        DataSource(
            "published", "the published folder: image/, ER.json, IS.json, people_knowledge.json, logo_knowledge.json"
        ),
        DataSource("entities", "entities with texts and images, from which a text model collects true descriptions"),
        DataSource("knowledge", "true descriptions with images, which a text model edits into conflicting ones"),
    )
    build_options = frozenset({"false_text"})
    stratum = "type"
    judges = ("own-answer",)
    paper_judge = "the published code for letters (official); for open answers the paper does not say"
    paper_prompts = "official, which the published code has; the paper prints none"
    paper_decoding = "not told; the published code stops at 512 tokens"
    conflicts = CONFLICT_CONDITIONS
    without_conflict = WITHOUT_CONFLICT
    behaviours: Mapping[str, str] = {
        "ORIGINAL": "keeps to its own answer",
        "COUNTER": "takes the evidence's answer",
        "IRRELEVANT": "says what is neither",
    }
    situations: Mapping[str, str] = {
        "context-memory-mc": "when the evidence contradicts what it knows and options are offered",
        "context-memory-open": "when the evidence contradicts what it knows and it answers freely",
        "inter-context-mc": "when two pieces of evidence disagree and options are offered",
        "inter-context-open": "when two pieces of evidence disagree and it answers freely",
    }
    abstention = AbstentionRule(
        (COARSE[1], FINE[1]),
        (COARSE[0], FINE[0]),
        # A document that does not agree with what the model remembers: right under conflict, needless without.
        {COARSE[1]: _DETECTS, FINE[1]: _DETECTS, COARSE[0]: _ALARMS, FINE[0]: _ALARMS},
    )
    paper_rows = "its 1,573 instances (757 ER, 669 EK, 147 VS)"
    answer_formats: Mapping[str, str] = {
        "published": "the authors' result files: a folder with original/ and output/, or one file of it",
    }

    rubric = instance("benchmarks.mmkc_bench.mmkc_rubric:MMKCRubric")
    review_guide = instance("benchmarks.mmkc_bench.mmkc_review:MMKCGuide")
    build = function(Benchmark.build, "benchmarks.mmkc_bench.mmkc_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.mmkc_bench.mmkc_instances import instances

        return (instance for example in self._examples(build, prompt_set) for instance in instances(*example))

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.mmkc_bench.mmkc_instances import all_instances

        return (instance for example in self._examples(build, prompt_set) for instance in all_instances(*example))

    def _examples(self, build: Build, prompt_set: Prompts) -> Iterator[tuple[Example, Prompts]]:
        from benchmarks.mmkc_bench.mmkc_example import Example

        self.check(build, prompt_set)
        return ((Example.from_row(row), prompt_set) for row in build.rows())

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        if instance.condition in DETECTION_CONDITIONS or instance.condition in ORIGINAL_CONDITIONS:
            return ()
        return tuple(row["wrong"][: 1 if instance.condition in CONTEXT_MEMORY else 2])

    def options(self, instance: Instance) -> tuple[str, ...]:
        if asks_for_agreement(instance.condition):
            return ("Yes", "No")
        return ("A", "B", "C", "D") if form_of(instance.condition) == "mc" else ()

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        from benchmarks.audit.blind_question import YES_NO, BlindOption, blind_question, lettered_question

        texts = [part.text for part in instance.parts if isinstance(part, Text)]
        if instance.condition in DETECTION_CONDITIONS:
            right = YES_NO.index(instance.references[ANSWER][0])
            level = instance.condition.partition("-")[0]
            return blind_question(instance, [*map(BlindOption, YES_NO)], [right], task=level, text=texts[-1])
        return lettered_question(instance, IMAGE, instance.condition, "\n".join(texts[1:-2]))

    def correct(self, condition: str, label: str) -> bool:
        """Return whether ``label`` counts as accurate: CORRECT in detection and without sources, elsewhere ORIGINAL.

        Only false evidence speaks against the model's own answer, so keeping to it is accurate.
        """
        return label == ("CORRECT" if condition in (*DETECTION_CONDITIONS, *WITHOUT_SOURCES) else "ORIGINAL")

    def score_with_sources(self, kind: AnswerKind, judge: str) -> float | None:
        score = self.counted_score(kind, judge)
        if score is None or kind.condition not in ORIGINAL_CONDITIONS:
            return score
        return None if kind.reading.is_true is None else float(kind.reading.is_true)

    def score_without_sources(self, condition: str, full: str, label: str) -> float:
        return self.score(condition, label)

    def left_out(self, kind: AnswerKind) -> str:
        return str(kind.reading.incomparable) if kind.is_answered else ""

    def basis(self, condition: str) -> str | None:
        return BASIS.get(condition)

    table_strata = ("dataset", "type", "instance")

    reading = function(Benchmark.reading, "benchmarks.mmkc_bench.mmkc_reading:read")

    def pages(self, instance: Instance) -> Pages:
        entity = " ".join(filter(None, map(instance.strata.get, ("dataset", "instance"))))
        return Pages((f"entity {entity}",) if entity else ())

    tables = method(Benchmark.tables, "benchmarks.mmkc_bench.mmkc_tables:tables")

    def answer_files(self, path: Path, form: str) -> Sequence[Path]:
        from benchmarks.mmkc_bench.sources.mmkc_result_files import result_files

        return tuple(result.path for result in result_files(path))

    def read_answers(self, path: Path, form: str, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
        from benchmarks.mmkc_bench.sources.mmkc_result_files import read_answers

        return read_answers(path, left_out)

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        from benchmarks.mmkc_bench.mmkc_training import training_rows

        return training_rows(self.instances(build, options.prompt_set), options)
