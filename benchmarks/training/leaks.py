"""Leaks: test data among the rows of a training set, found by image, by example and by text."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import MediaError, SpecError
from benchmarks.factors.instances import instances_of
from benchmarks.media import load_image, read_media
from benchmarks.text.answer_equality import normalise
from benchmarks.training.image_hash import HASH_VERSION, ImageIndex
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
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
    "question": "the question of a test example, with another picture and text",
}
"""The means by which rows may resemble test data by chance: charts of one style, questions from one template."""

_SHORTEST_PROMPT = 20  # characters


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
        self._groups: dict[str, str] = {}
        self._prompts = _Prompts()
        self._questions: dict[str, str] = {}
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
        templates = _Prompts()
        for part in PARTS:
            for row in training_set.rows(part):
                templates.add(row.prompt, row.group or row.where)
        for part in PARTS:
            for row in training_set.rows(part):
                report.leaks += self._find(row, templates)
        return report

    def _add(self, benchmark: Benchmark, build: Build) -> None:
        for prompt_set in benchmark.prompt_sets:
            for instance in instances_of(benchmark, build, prompt_set):
                self._groups.setdefault(_key(instance.group), instance.id)
                self._questions.setdefault(_key(instance.question), instance.id)
                self._prompts.add(_texts(instance), instance.group)
                for medium in _images(instance):
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

    def _find(self, row: ChatRow, templates: _Prompts) -> Iterator[Leak]:
        """Yield the leaks of a row, each by the surest means; ``templates`` are the prompts of all rows."""
        if row.group and (test := self._groups.get(_key(row.group))):
            yield Leak(row.where, "example", test)
        if templates.owner(row.prompt) and (test := self._prompts.owner(row.prompt)):
            yield Leak(row.where, "prompt", test)
        elif test := self._questions.get(_key(row.question)) if row.question else None:
            yield Leak(row.where, "question", test)
        for number, path in enumerate(row.images):
            known = row.digests[number : number + 1] if len(row.digests) == len(row.images) else ()
            leak = self._image_leak(path.read_bytes(), known)
            if leak is not None:
                yield Leak(row.where, *leak)

    def _image_leak(self, data: bytes, known: Iterable[str]) -> tuple[Means, str] | None:
        own = hashlib.sha256(data).hexdigest()
        for value in (*known, own):
            if value in self._images:
                return "image", self._images[value]
        if own not in self.image_results:
            self.image_results[own] = self._similar(data)
        match self.image_results[own]:
            case (number, same) if number < len(self._names):
                return "picture" if same else "similar picture", self._names[number]
        return None

    def _similar(self, data: bytes) -> ImageResult:
        try:
            match = self._pictures.find(load_image(data))
        except MediaError:
            return None
        return None if match is None else (match.number, match.same)


class _Prompts:
    """Texts of prompts, each with its example; one that several examples share is a template."""

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}

    def add(self, text: str, group: str) -> None:
        key = _key(text)
        if self._groups.setdefault(key, group) != group:
            self._groups[key] = ""

    def owner(self, text: str) -> str:
        """Return the only example with this prompt; "" for a template, a short text or an unknown one."""
        return self._groups.get(_key(text), "") if len(text) >= _SHORTEST_PROMPT else ""


def _images(instance: Instance) -> Iterator[Media]:
    return (part for part in instance.parts if isinstance(part, Media) and part.modality == "image")


def _texts(instance: Instance) -> str:
    return "\n".join(part.text for part in instance.parts if isinstance(part, Text))


def _key(text: str) -> str:
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:24]


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
