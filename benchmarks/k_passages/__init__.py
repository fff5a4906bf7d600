"""K passages: one right passage among wrong ones and distractors, by their number and its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.base import AbstentionRule, Benchmark, DataSource
from benchmarks.build import Build
from benchmarks.cmc_bench.cmc_prompts import PROMPT_SETS
from benchmarks.deferred_methods import function, method
from benchmarks.k_passages.k_passages_constants import CONDITIONS, CONFLICT_CONDITIONS, LABELS, RIGHT, WRONG
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import closed_book_instance, with_closed_book
from benchmarks.retrieval.retrieval_prompts import text_before_image
from benchmarks.vocabulary import CLOSED_BOOK, Instance, LabelMetrics, Pages, Part

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion

__all__ = ["KPassages"]


class KPassages(Benchmark):
    """The examples of a build of CMC-Bench with 1 to 10 passages, of which one is right, and with several images."""

    name = "k-passages"
    title = "K passages: majority against truth among retrieved passages"
    in_plain_words = (
        "A model gets a question, an image and up to ten passages of text, some of which state a wrong value. A good model "
        "answers by those that are right, however many they are."
    )
    paper = "no paper; the examples and the prompt of CMC-Bench (Catapang) with more passages"
    conditions = (*CONDITIONS, CLOSED_BOOK)
    without_sources: Mapping[str, tuple[str, ...]] = {CLOSED_BOOK: CONDITIONS[:1]}
    labels = LABELS
    prompt_sets = PROMPT_SETS
    placeholders = ("question", "image", "text")
    abstention = AbstentionRule(CONFLICT_CONDITIONS, CONDITIONS[:1], dict.fromkeys(CONDITIONS, frozenset({"ABSTAIN"})))
    sources = (DataSource("cmc-bench", "a build of cmc-bench, your own rows included"),)
    stratum = "type"
    judges = ("which-passage",)
    paper_rows = "no paper's rows"
    conflicts = CONFLICT_CONDITIONS
    without_conflict = CONDITIONS[:1]
    detection = "Shows conflict"
    behaviours: Mapping[str, str] = {
        "RIGHT": "gives the right passage's value",
        "WRONG": "gives the wrong passages' value",
        "BOTH": "gives both values",
        "DISTRACTOR": "answers a distractor's question",
        "NEITHER": "gives another value",
        "ABSTAIN": "abstains",
    }
    situations: Mapping[str, str] = {
        "tie": "when one passage is wrong",
        "majority-wrong": "when most of those that answer are wrong",
        CLOSED_BOOK: "when it sees no source",
    }
    scorecard_note = (
        "Under majority-wrong the wrong passages are the majority. "
        "Passages that disagree have no rule on what should win."
    )
    table_strata = ("passages", "wrong", "place", "images", "words")

    build = function(Benchmark.build, "benchmarks.k_passages.k_passages_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.k_passages.k_passages_design import PassageDesign
        from benchmarks.k_passages.k_passages_instances import instances_of_row

        self.check(build, prompt_set)
        cells = list(PassageDesign.from_json(build.manifest.get("design")).cells())
        seed = build.manifest.get("seed", 0)
        return (instance for row in build.rows() for instance in instances_of_row(row, cells, seed, prompt_set))

    passages = function(Benchmark.passages, "benchmarks.k_passages.k_passages_instances:passages_in")

    def reordered(self, parts: Sequence[Part], passages: Sequence[str], *, text_first: bool) -> tuple[Part, ...]:
        changed = text_before_image(parts, passages) if text_first else ()
        return changed or super().reordered(parts, passages, text_first=text_first)

    def pages(self, instance: Instance) -> Pages:
        own, shown = super().pages(instance)
        return Pages((), (*own, *shown)) if shown else Pages(own)  # of several pictures in mixed order, one is its own

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        from benchmarks.audit.blind_question import value_question

        return value_question(instance, *(instance.references.get(key, ()) for key in (RIGHT, WRONG)))

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        from benchmarks.cmc_bench.cmc_prompts import parts

        def closed_book(siblings: Sequence[Instance]) -> Instance:
            stated = {key: values for i in siblings for key in (RIGHT, WRONG) if (values := i.references.get(key))}
            return closed_book_instance(siblings[0], parts(prompt_set, siblings[0].question, None, None), stated)

        return with_closed_book(self.instances(build, prompt_set), closed_book)

    def correct(self, condition: str, label: str) -> bool:
        return label == "RIGHT"

    def label_metrics(self) -> LabelMetrics:
        from benchmarks.k_passages.k_passages_metrics import LABEL_METRICS

        return LABEL_METRICS

    tables = method(Benchmark.tables, "benchmarks.k_passages.k_passages_tables:tables")
