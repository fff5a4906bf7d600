"""Plain data sets: published rows of conflicts, built, prompted, labelled and counted as their class declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.deferred_methods import instance, method
from benchmarks.plain.plain_declaration import CONFLICT, SOURCE, Declaration
from benchmarks.prompt_template import Prompts, PromptTemplate, filled
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.protocols.without_sources import closed_book_instance, with_closed_book, without_sources
from benchmarks.vocabulary import CLOSED_BOOK, RIGHT_VALUE, Instance, Media, Part, Text

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion

__all__ = ["CONFLICT", "SOURCE", "PlainDataSet"]


class PlainDataSet(Declaration):
    """A data set with the behaviour that all have; a class for each data set declares the rest."""

    def template(self, prompt_set: str, row: Mapping[str, Any]) -> str:
        """Return the prompt of a build's row, in which ``row["columns"]`` has the texts of its columns by role."""
        return self.prompts[prompt_set][row["condition"]]

    build = method(Benchmark.build, "benchmarks.plain.plain_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        self.check(build, prompt_set)
        return (self._instance(row, prompt_set) for row in build.rows())

    def _instance(self, row: Mapping[str, Any], prompt_set: Prompts) -> Instance:
        references = {source: (value,) for source, value in row["references"].items()}
        prompt = self._parts(row, prompt_set)
        return Instance(row["id"], row["group"], row["condition"], row["question"], prompt, references, row["strata"])

    def _parts(self, row: Mapping[str, Any], prompt_set: Prompts) -> tuple[Part, ...]:
        image, text = row["image"], row["text"]
        fields = {
            "question": (Text(row["question"]),),
            "image": () if image is None else (Media(image["sha256"], image["suffix"]),),
            "text": () if text is None else (Text(text),),
            "abstention": (Text(ABSTENTION),),
        }
        if isinstance(prompt_set, PromptTemplate):
            return prompt_set.parts(fields)
        return filled(self.template(prompt_set, row), fields)

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        if CLOSED_BOOK not in self.conditions or not self.right:
            return self.instances(build, prompt_set)

        def closed_book(siblings: Sequence[Instance]) -> Instance:
            bare = {"question": siblings[0].question, "image": None, "text": None, "condition": CLOSED_BOOK}
            prompt = self._parts({**bare, "columns": {}}, prompt_set)
            if not self.has_text:
                return without_sources(siblings[0], CLOSED_BOOK, prompt, "image")
            return closed_book_instance(siblings[0], prompt, {RIGHT_VALUE: siblings[0].references[self.right]})

        return with_closed_book(self.instances(build, prompt_set), closed_book)

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        return (row["text"],) if row["text"] else ()

    def single_source(self, instance: Instance) -> str:
        return instance.condition.removesuffix("-only") if instance.condition.endswith("-only") else ""

    def sources_alone(self, instance: Instance) -> Mapping[str, str]:
        if not self.has_text or instance.condition not in self.conflicts:
            return {}
        example = instance.id.removesuffix(f"/{instance.condition}")
        return {source: f"{example}/{source}-only" for source in ("image", "text")}

    def right_sources(self, instance: Instance) -> Sequence[str]:
        return (self.right,) if self.right else ()

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        from benchmarks.audit.blind_question import value_question

        if instance.condition not in self.conflicts or not self.has_text or not self.right:
            return None
        values = [value for values in instance.references.values() for value in values]
        return value_question(instance, instance.references[self.right], values)

    rubric = instance("benchmarks.cmc_bench.cmc_rubric:CMCRubric")

    def correct(self, condition: str, label: str) -> bool:
        if condition in self.conflicts:
            return label in ((self.right.upper(), "BOTH") if self.right else ("BOTH", "ABSTAIN"))
        return label in ("IMAGE", "TEXT", "BOTH") if condition == CLOSED_BOOK else label == self.single_label(condition)

    @staticmethod
    def single_label(condition: str) -> str:
        """Return the label of the right answer to one source alone."""
        return condition.removesuffix("-only").upper()

    label_metrics = method(Benchmark.label_metrics, "benchmarks.plain.plain_tables:label_metrics")
    tables = method(Benchmark.tables, "benchmarks.plain.plain_tables:tables")
