"""Leaks: test data among the rows of a training set, found by image, by example and by text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import MediaError, SpecError
from benchmarks.factors.instances import instances_of
from benchmarks.hashed import hash64
from benchmarks.media import load_image, read_image, read_media
from benchmarks.training.image_hash import HASH_VERSION, ImageIndex
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
from benchmarks.varied import example_of
from benchmarks.vocabulary import Instance, Media, Text, digest

Means = Literal["image", "picture", "example", "prompt", "similar picture", "question"]

REFUSED: dict[Means, str] = {
    "image": "the file of a test image",
    "picture": "a test image encoded anew, resized or cropped",
    "example": "a test example",
    "prompt": "the texts of a test prompt",
}
"""The means by which test data is certain to be among the rows, so that the training set is refused."""

WARNED: dict[Means, str] = {
    "similar picture": "a picture that looks like a test image",
    "question": "the question of a test example, with another picture or text",
}
"""The means by which rows may resemble test data by chance: charts of one style, questions from one template."""

_SHORTEST_PROMPT = 20  # characters
_SHORTEST_QUESTION = 4  # words, of a question that is searched for within a prompt
_WORD = re.compile(r"[0-9a-z]+|[^\W0-9a-z_]")
"""A word in Latin letters, or a letter of another script, which may have no spaces between words."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A row that holds test data: which, by what means, and the test instance or image."""

    row: str
    means: Means
    test: str


@dataclass
class LeakReport:
    """The leaks of a training set, and the test data that it was compared with."""

    leaks: list[Leak] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    """The digests of the test builds."""
    images: int = 0

    @property
    def refused(self) -> list[Leak]:
        """The leaks for which the training set is refused."""
        return [leak for leak in self.leaks if leak.means in REFUSED]

    @property
    def refused_rows(self) -> list[str]:
        """The rows with such a leak, each once."""
        return list(dict.fromkeys(leak.row for leak in self.refused))

    def sentences(self, descriptions: dict[Means, str]) -> list[str]:
        """Return a sentence for each of these means by which rows were found: how many, by what, and an example."""
        rows: defaultdict[Means, dict[str, str]] = defaultdict(dict)
        for leak in self.leaks:
            rows[leak.means].setdefault(leak.row, leak.test)
        return [
            f"{len(rows[means])} {'row has' if len(rows[means]) == 1 else 'rows have'} {what} "
            f"({next(iter(rows[means].items()))[0]}: {next(iter(rows[means].items()))[1]})"
            for means, what in descriptions.items()
            if means in rows
        ]


ImageResult = tuple[int, bool] | None
"""The test image that an image resembles, by its number, and whether the two are one picture; None if there is none."""


class LeakIndex:
    """Test data by image, example and text, with which the rows of training sets are compared."""

    def __init__(self, tests: Sequence[tuple[Benchmark, Build]]) -> None:
        self.tests = [build.digest for _, build in tests]
        self.image_results: dict[str, ImageResult] = {}
        """The results of images by the sha256 of their bytes; those that are known need not be compared again."""
        self._images: dict[str, str] = {}
        self._media: list[tuple[Path, Media]] = []
        self._names: list[str] = []
        self._groups: dict[int, str] = {}
        self._prompts = UniqueTexts()
        self._questions = _Questions()
        for benchmark, build in tests:
            self._add(benchmark, build)

    @property
    def images_digest(self) -> str:
        """The digest of the test images and of what compares them: image results hold for another index with the same one."""
        return digest([HASH_VERSION, [[medium.sha256, path.is_file()] for path, medium in self._media]])

    def compare(self, training_set: TrainingSet) -> LeakReport:
        """Compare every row of a training set with every test instance.

        An image that cannot be read is compared by its digest alone, and one that is known by its earlier result.
        """
        report = LeakReport(tests=self.tests, images=len(self._images))
        if not self.tests:
            return report
        templates = UniqueTexts()
        for part in PARTS:
            for row in training_set.rows(part):
                for text in prompt_texts(row):
                    templates.add(text, example_name(row))
        for part in PARTS:
            for row in training_set.rows(part):
                report.leaks += self._find(row, templates, training_set.image_digests)
        return report

    def _add(self, benchmark: Benchmark, build: Build) -> None:
        for prompt_set in benchmark.prompt_sets:
            for instance in instances_of(benchmark, build, prompt_set):
                self._groups.setdefault(hash64(example_of(instance.group)), instance.id)
                self._questions.add(instance.question, instance.id)
                self._prompts.add(instance_text(instance), example_of(instance.group))
                for medium in instance_images(instance):
                    self._add_image(build, medium, instance.id)

    def _add_image(self, build: Build, medium: Media, name: str) -> None:
        if medium.sha256 not in self._images:
            self._images[medium.sha256] = name
            self._media.append((build.media_path(medium), medium))
            self._names.append(name)

    @cached_property
    def _pictures(self) -> ImageIndex:
        """The pictures of all test images; one that cannot be read is compared by its digest alone."""
        pictures = ImageIndex()
        for number, (path, medium) in enumerate(self._media):
            with suppress(MediaError):
                pictures.add(load_image(read_media(path, medium)), number)
        return pictures

    def _find(self, row: ChatRow, templates: UniqueTexts, digests: Mapping[Path, str]) -> Iterator[Leak]:
        """Yield the leaks of a row, each by the surest means; ``templates`` are the prompts of all rows."""
        if row.group and (test := self._groups.get(hash64(row.group))):
            yield Leak(row.where, "example", test)
        texts = prompt_texts(row)
        prompts = (self._prompts.owner(text) for text in texts if templates.owner(text))
        if test := next(filter(None, prompts), ""):
            yield Leak(row.where, "prompt", test)
        elif test := self._questions.find(row.question, texts):
            yield Leak(row.where, "question", test)
        for number, path in enumerate(row.images):
            known = row.digests[number : number + 1] if len(row.digests) == len(row.images) else ()
            leak = self._image_leak(path, (*known, digests[path]))
            if leak is not None:
                yield Leak(row.where, *leak)

    def _image_leak(self, path: Path, digests: Sequence[str]) -> tuple[Means, str] | None:
        """Return what an image is of the test images; the last of its ``digests`` is that of the file."""
        for value in digests:
            if value in self._images:
                return "image", self._images[value]
        if digests[-1] not in self.image_results:
            self.image_results[digests[-1]] = self._similar(path)
        match self.image_results[digests[-1]]:
            case (number, same) if number < len(self._names):
                return "picture" if same else "similar picture", self._names[number]
        return None

    def _similar(self, path: Path) -> ImageResult:
        try:
            match = self._pictures.find(load_image(read_image(path)))
        except MediaError:
            return None
        return None if match is None else (match.number, match.same)


class UniqueTexts:
    """Texts of prompts, each with its example; one that several examples share is a template."""

    def __init__(self) -> None:
        self._owners: dict[int, str] = {}

    def add(self, text: str, owner: str) -> None:
        """Add the prompt of an example, unless it is short."""
        if len(text) < _SHORTEST_PROMPT:
            return
        key = text_key(text)
        if self._owners.setdefault(key, owner) != owner:
            self._owners[key] = ""

    def owner(self, text: str) -> str:
        """Return the only example with this prompt; "" for a template and an unknown one."""
        return self._owners.get(text_key(text), "")

    def keys(self) -> Iterator[int]:
        """Yield the key of each prompt that is no template."""
        return (key for key, owner in self._owners.items() if owner)


class _Questions:
    """Questions of tests, which are searched for within prompts word by word."""

    def __init__(self) -> None:
        self._tests: dict[int, str] = {}
        self._lengths: defaultdict[int, set[int]] = defaultdict(set)
        """The numbers of words of the questions that begin with the same ones."""

    def add(self, question: str, test: str) -> None:
        words = _words(question)
        if words:
            self._tests.setdefault(hash(words), test)
        if len(words) >= _SHORTEST_QUESTION:
            self._lengths[hash(words[:_SHORTEST_QUESTION])].add(len(words))

    def find(self, question: str, prompts: Sequence[str]) -> str:
        """Return the test with this question, or with one that is part of the prompts; "" if there is none."""
        return self._tests.get(hash(_words(question)), "") or next(filter(None, map(self._within, prompts)), "")

    def _within(self, prompt: str) -> str:
        words = _words(prompt)
        for start in range(len(words) - _SHORTEST_QUESTION + 1):
            for length in self._lengths.get(hash(words[start : start + _SHORTEST_QUESTION]), ()):
                if test := self._tests.get(hash(words[start : start + length]), ""):
                    return test
        return ""


def example_name(row: ChatRow) -> str:
    """Return the example of a row; rows that do not state theirs are one example if they have the same prompt and answer."""
    return row.group or f"answer {row.target}"


def prompt_texts(row: ChatRow) -> list[str]:
    """Return the texts of a row that could be a test's prompt: all its turns, and each by itself; no system message."""
    return list(dict.fromkeys(("\n".join(row.turns), *row.turns)))


def instance_images(instance: Instance) -> Iterator[Media]:
    """Yield the images of an instance's prompt."""
    return (part for part in instance.parts if isinstance(part, Media) and part.modality == "image")


def instance_text(instance: Instance) -> str:
    """Return the texts of an instance's prompt, in order."""
    return "\n".join(part.text for part in instance.parts if isinstance(part, Text))


def text_key(text: str) -> int:
    """Return a hash of a text's words."""
    return hash64(" ".join(_words(text)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def check_leaks(report: LeakReport, *, drop: bool) -> list[str]:
    """Return the warnings of a report. Raises SpecError if the training set must be refused, unless leaks are dropped."""
    if report.refused and not drop:
        count = len(report.refused_rows)
        raise SpecError(
            f"{count} training {'row is' if count == 1 else 'rows are'} test data: {'; '.join(report.sentences(REFUSED))}. "
            "Take other data, or leave these rows out with --drop-leaks."
        )
    return report.sentences(WARNED)


def leak_counts(report: LeakReport) -> dict[str, int]:
    """Return the number of rows by means."""
    return dict(Counter(means for means, _ in {(leak.means, leak.row) for leak in report.leaks}))
