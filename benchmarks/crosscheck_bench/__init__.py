"""CrossCheck-Bench: compositional failures in resolving multimodal conflicts (Tian, Si, Wang, Li et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark, DataSource
from benchmarks.build import Build
from benchmarks.crosscheck_bench.crosscheck_constants import (
    CAPABILITIES,
    CONDITIONS,
    LABELS,
    LETTERS,
    REASONING_CONDITIONS,
    TASKS,
    WITHOUT_SOURCES,
)
from benchmarks.crosscheck_bench.crosscheck_prompts import PROMPT_SETS
from benchmarks.deferred_methods import function, instance, method
from benchmarks.prompt_template import Prompts
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Decoding, Instance, Table

if TYPE_CHECKING:
    from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample

__all__ = ["CrossCheckBench"]


class CrossCheckBench(Benchmark):
    """Fifteen tasks on three levels about products whose pictures and texts disagree, under five prompting strategies."""

    name = "crosscheck-bench"
    title = "CrossCheck-Bench: compositional failures in resolving multimodal conflicts"
    in_plain_words = (
        "A model sees pictures and texts of products and says whether they fit together, in 15 kinds of questions, from "
        "reading a price to comparing offers."
    )
    paper = "Tian, Si, Wang, Li et al., CrossCheck-Bench: Diagnosing Compositional Failures in Multimodal Conflict Resolution"
    conditions = (*CONDITIONS, *WITHOUT_SOURCES)
    without_sources: Mapping[str, tuple[str, ...]] = dict.fromkeys(WITHOUT_SOURCES, ("vanilla",))
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "text", "options")
    sources = (
        DataSource("products", "folders of products, from which samples of all tasks are constructed"),
        DataSource("products-figure-8", "the same folders, with options as in Figure 8, which can be guessed"),
        DataSource("rows", "your own samples"),
    )
    build_options = frozenset({"readers", "extractor"})
    stratum = "task"
    judges = ("extracted", "printed")
    paper_rows = "the authors' 14,690 questions, which are not published"
    paper_judge = "exact match for closed questions, GPT-4o for open ones (Appendix D)"
    paper_prompts = "paper"
    paper_decoding = "temperature 0.7, top_p 0.9, 512 tokens (Appendix D)"
    unparsed_label = "INCORRECT"
    default_conditions = ("vanilla",)
    decoding = Decoding(max_tokens=512, temperature=0.7, top_p=0.9)
    tasks: Mapping[str, str] = {
        key: f"{task.description} ({task.level}; {' + '.join(task.capabilities)})" for key, task in TASKS.items()
    }
    capabilities = CAPABILITIES

    rubric = instance("benchmarks.crosscheck_bench.crosscheck_rubric:CrossCheckRubric")
    protocol = function(Benchmark.protocol, "benchmarks.crosscheck_bench.crosscheck_protocol:StrategyProtocol")
    remarks = function(Benchmark.remarks, "benchmarks.crosscheck_bench.crosscheck_protocol:remarks")
    review_guide = instance("benchmarks.crosscheck_bench.crosscheck_review:CrossCheckGuide")
    build = function(Benchmark.build, "benchmarks.crosscheck_bench.crosscheck_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.crosscheck_bench.crosscheck_instances import instances

        return (instance for sample in self._samples(build, prompt_set) for instance in instances(*sample))

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.crosscheck_bench.crosscheck_instances import all_instances

        return (instance for sample in self._samples(build, prompt_set) for instance in all_instances(*sample))

    def _samples(self, build: Build, prompt_set: Prompts) -> Iterator[tuple[CrossCheckSample, Prompts]]:
        from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample

        self.check(build, prompt_set)
        return ((CrossCheckSample.from_row(row), prompt_set) for row in build.rows())

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        return (row["text"],) if row["text"].strip() else ()

    def options(self, instance: Instance) -> tuple[str, ...]:
        offered = () if instance.condition in REASONING_CONDITIONS else instance.references.get("options", ())
        return tuple(LETTERS[: len(offered)])

    def choices(self, instance: Instance) -> int:
        is_yes_no = instance.strata.get("form") == "yes/no"
        return 2 if is_yes_no else len(instance.references.get("options", ()))

    def correct(self, condition: str, label: str) -> bool:
        return label == "CORRECT"

    def chooses_none(self, kind: AnswerKind, judge: str) -> bool:
        return super().chooses_none(kind, judge) or (kind.reading is not None and kind.reading.chooses_none)

    table_strata = ("task", "form")

    reading = function(Benchmark.reading, "benchmarks.crosscheck_bench.crosscheck_reading:read")

    def tables(self, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
        from benchmarks.crosscheck_bench.crosscheck_tables import tables

        return tables(self, runs, judge)

    overall = method(Benchmark.overall, "benchmarks.crosscheck_bench.crosscheck_tables:overall")

    def build_tables(self, build: Build) -> list[Table]:
        from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
        from benchmarks.crosscheck_bench.crosscheck_statistics import statistics_tables

        self.check(build, next(iter(self.prompt_sets)))
        samples = [CrossCheckSample.from_row(row) for row in build.rows()]
        return statistics_tables(samples, build.manifest.get("extraction"))

    label_metrics = function(Benchmark.label_metrics, "benchmarks.crosscheck_bench.crosscheck_metrics:label_metrics")

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        from benchmarks.crosscheck_bench.crosscheck_training import training_rows

        return training_rows(self.instances(build, options.prompt_set), options)
