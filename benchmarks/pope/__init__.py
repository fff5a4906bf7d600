"""POPE: yes/no questions about objects in an image (Li et al., 2023), CLASH's regression check (Appendix C.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.base import Benchmark, DataSource
from benchmarks.build import Build
from benchmarks.deferred_methods import function, method
from benchmarks.pope.pope_constants import SETTINGS, WITHOUT_SOURCES
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import without_sources
from benchmarks.vocabulary import CLOSED_BOOK, Instance, Media
from benchmarks.vqa.vqa_prompts import PLAIN, SHORT, parts

__all__ = ["Pope"]


class Pope(Benchmark):
    """Polling-based object probing: "Is there a ... in the image?", for objects that are present and objects that are not.

    The settings are the sampling of the absent objects: at random, among the most frequent, or among those that often
    co-occur with the present ones.
    """

    name = "pope"
    title = "POPE: object hallucination, the regression check of CLASH's fine-tuning"
    in_plain_words = "A model is asked whether an object is in a photograph: half of the objects are, half are not."
    paper = "Li et al., Evaluating Object Hallucination in Large Vision-Language Models; CLASH's Table 14"
    conditions = (*SETTINGS, *WITHOUT_SOURCES)
    without_sources = WITHOUT_SOURCES
    labels = ("CORRECT", "WRONG")
    prompt_sets = PLAIN | SHORT
    placeholders = ("question", "image")
    sources = (
        DataSource("pope", "the published questions: coco_pope_random.json, _popular and _adversarial"),
        DataSource("images", "COCO's images, if they are not beside the questions"),
    )
    stratum = "answer"
    judges = ("yes-no",)
    paper_rows = "POPE's 9,000 questions about 500 images (the paper does not say with which prompt)"
    unparsed_label = "WRONG"
    paper_judge = "not told; POPE's published evaluation reads yes or no"

    build = function(Benchmark.build, "benchmarks.pope.pope_build:build")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        self.check(build, prompt_set)
        return (_instance(row, prompt_set) for row in build.rows())

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        self.check(build, prompt_set)
        for row in build.rows():
            yield (instance := _instance(row, prompt_set))
            condition = f"{row['setting']}-{CLOSED_BOOK}"
            yield without_sources(instance, condition, parts(row["question"], (), prompt_set))

    def options(self, instance: Instance) -> tuple[str, ...]:
        return ("Yes", "No")

    def correct(self, condition: str, label: str) -> bool:
        return label == "CORRECT"

    label_metrics = method(Benchmark.label_metrics, "benchmarks.pope.pope_tables:label_metrics")

    table_strata = ()

    reading = function(Benchmark.reading, "benchmarks.pope.pope_reading:read")
    tables = method(Benchmark.tables, "benchmarks.pope.pope_tables:tables")


def _instance(row: Mapping[str, str], prompt_set: Prompts) -> Instance:
    question = row["question"]
    return Instance(
        id=row["id"],
        group=f"pope-{row['image_id']}",
        condition=row["setting"],
        question=question,
        parts=parts(question, (Media(row["image"], row["suffix"]),), prompt_set),
        references={"answer": (row["answer"],)},
        strata={"answer": row["answer"]},
    )
