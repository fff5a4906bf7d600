"""OK-VQA and GQA: short answers to questions about an image, CLASH's check after fine-tuning (Appendix C.3, Table 15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.answers import Answers
from benchmarks.base import Benchmark, DataSource
from benchmarks.build import Build, BuildOptions
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.without_sources import without_sources
from benchmarks.vocabulary import CLOSED_BOOK, Instance, LabelMetrics, Media, Table
from benchmarks.vqa.vqa_constants import CONDITION, GQA_SCORES, OKVQA_SCORES
from benchmarks.vqa.vqa_prompts import PLAIN, SHORT, parts

if TYPE_CHECKING:
    from benchmarks.vqa.vqa_sources import ReadSource

__all__ = ["Gqa", "Okvqa"]


class _Vqa(Benchmark):
    """Questions with short answers; ``scores`` are the scores of the labels, ``column`` the column of Table 15."""

    conditions = (CONDITION, CLOSED_BOOK)
    without_sources: Mapping[str, tuple[str, ...]] = {CLOSED_BOOK: (CONDITION,)}
    prompt_sets = SHORT | PLAIN
    placeholders = ("question", "image")
    stratum = "type"
    paper_judge = "not told; the published scoring"
    unparsed_label = "WRONG"
    scores: Mapping[str, float]
    column: str

    def _read(self) -> ReadSource:
        raise NotImplementedError

    def build(self, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
        from benchmarks.vqa.vqa_build import build

        return build(self.name, self._read(), sources, out, options)

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        self.check(build, prompt_set)
        return (_instance(row, prompt_set) for row in build.rows())

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        self.check(build, prompt_set)
        for row in build.rows():
            yield (instance := _instance(row, prompt_set))
            yield without_sources(instance, CLOSED_BOOK, parts(instance.question, (), prompt_set))

    def correct(self, condition: str, label: str) -> bool:
        return label == "CORRECT"

    def score(self, condition: str, label: str) -> float:
        return self.scores[label]

    def label_metrics(self) -> LabelMetrics:
        from benchmarks.vqa.vqa_tables import label_metrics

        return label_metrics(self.column, self.scores)

    table_strata = ("type",)

    def tables(self, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
        from benchmarks.vqa.vqa_tables import tables

        return tables(self, runs, judge, self.column, self.scores, resamples=resamples, seed=seed)


class Okvqa(_Vqa):
    """OK-VQA (Marino et al., 2019): questions that need knowledge besides the image, each answered by people."""

    name = "okvqa"
    title = "OK-VQA: questions that need knowledge, a check of CLASH's fine-tuning"
    in_plain_words = "A model answers questions about photographs that need knowledge of the world."
    paper = "Marino et al., OK-VQA; CLASH's Table 15"
    labels = tuple(OKVQA_SCORES)
    scores = OKVQA_SCORES
    column = "OKVQA"
    sources = (
        DataSource("okvqa", "the questions and annotations of the validation set"),
        DataSource("images", "COCO's val2014 images, if they are not beside the questions"),
    )
    judges = ("vqa-accuracy",)
    paper_rows = "OK-VQA's 5,046 validation questions (the paper does not say with which prompt)"

    def _read(self) -> ReadSource:
        from benchmarks.vqa.vqa_sources import read_okvqa

        return read_okvqa


class Gqa(_Vqa):
    """GQA (Hudson and Manning, 2019): questions about objects, attributes and relations, each with one answer."""

    name = "gqa"
    title = "GQA: questions about a scene, a check of CLASH's fine-tuning"
    in_plain_words = "A model answers questions about the objects in a photograph, their attributes and their places."
    paper = "Hudson and Manning, GQA; CLASH's Table 15"
    labels = tuple(GQA_SCORES)
    scores = GQA_SCORES
    column = "GQA"
    sources = (
        DataSource("gqa", "the balanced test-dev questions"),
        DataSource("images", "GQA's images, if they are not beside the questions"),
    )
    judges = ("gqa-match",)
    paper_rows = "GQA's 12,578 balanced test-dev questions (the paper does not say with which prompt)"

    def _read(self) -> ReadSource:
        from benchmarks.vqa.vqa_sources import read_gqa

        return read_gqa


def _instance(row: Mapping[str, str | list[str]], prompt_set: Prompts) -> Instance:
    question = str(row["question"])
    return Instance(
        id=str(row["id"]),
        group=str(row["group"]),
        condition=CONDITION,
        question=question,
        parts=parts(question, (Media(str(row["image"]), str(row["suffix"])),), prompt_set),
        references={"answer": tuple(row["answers"])},
        strata={"type": str(row["type"])},
    )
