"""Leaks: test data among the rows of a training set, found by picture, by example and by text.

A row is test data if its example is: by its id, its own picture, or its text. All rows of an example share its fate, also those
without its picture or its text. A row that shows a test's picture as a wrong one is test data by itself; its example, which has
another picture, is not. Texts that a template makes equal, and values that two examples have in common, are no test data.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.factors.factor_instances import instances_of
from benchmarks.hash_collections import hash64
from benchmarks.media import read_image, read_media
from benchmarks.training.image_views import image_views
from benchmarks.training.prompt_texts import (
    Form,
    IndexedPrompt,
    PromptIndex,
    QuestionIndex,
    Templates,
    UniqueTexts,
    example_name,
    prompt_texts,
)
from benchmarks.training.same_picture_details import is_one_picture
from benchmarks.training.same_picture_hash import HASH_VERSION, ImageIndex, Match
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import Instance, Media, digest

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

Means = Literal["image", "picture", "example", "prompt", "related", "similar picture", "question"]

REFUSED: dict[Means, str] = {
    "image": "the file of a test image",
    "picture": "a test image encoded anew, resized or cropped",
    "example": "a test example",
    "prompt": "the texts of a test prompt",
    "related": "an example that is test data by another of its rows, or by its picture",
}
"""The means by which test data is certain to be among the rows, so that the training set is refused."""

WARNED: dict[Means, str] = {
    "similar picture": "a picture that looks like a test image",
    "question": "the question of a test example, with another picture or text",
}
"""The means by which rows may resemble test data by chance: charts of one style, questions from one template."""

_MOST_NAMED = 3
"""The most examples that a sentence names."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A row that holds test data: by what means, the row of which test build it has, and the row's example if it states one."""

    row: str
    means: Means
    test: str
    example: str = ""
    lender: str = ""
    """The example of the training set whose picture the row shows as a wrong one."""


@dataclass
class LeakReport:
    """The leaks of a training set, and the test data that it was compared with."""

    leaks: list[Leak] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    """The digests of the test builds."""
    images: int = 0
    unread_images: list[str] = field(default_factory=list)
    """The test images that are missing or damaged, and were compared by their digests alone, each by a test that shows it."""

    @property
    def refused(self) -> list[Leak]:
        """The leaks for which the training set is refused."""
        return [leak for leak in self.leaks if leak.means in REFUSED]

    @property
    def refused_rows(self) -> list[str]:
        """The rows with such a leak, each once."""
        return list(dict.fromkeys(leak.row for leak in self.refused))

    def sentences(self, descriptions: Mapping[Means, str], places: Mapping[str, str] | None = None) -> list[str]:
        """Return a sentence for each of these means by which rows were found: how many, by what, and which.

        ``places`` are the rows of a table that examples come from; without them, rows are named as in the training set.
        """
        rows: defaultdict[Means, dict[str, Leak]] = defaultdict(dict)
        for leak in self.leaks:
            rows[leak.means].setdefault(leak.row, leak)
        return [
            f"{len(rows[means])} {'row has' if len(rows[means]) == 1 else 'rows have'} {what} "
            f"({_names(list(rows[means].values()), places or {})})"
            for means, what in descriptions.items()
            if means in rows
        ]


def _names(leaks: Sequence[Leak], places: Mapping[str, str]) -> str:
    """Return the first rows in the order of their lines, each with the test that it has."""
    tests: dict[str, str] = {}
    for leak in leaks:
        lender = f", borrowed from {places.get(leak.lender) or leak.lender}" if leak.lender else ""
        tests.setdefault(places.get(leak.example) or leak.row, f"{leak.test}{lender}")
    names = [f"{name} has {tests[name]}" for name in sorted(tests, key=_by_line)]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{'; '.join(names[:_MOST_NAMED])}{more}"


def _by_line(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (place, 0)


ImageResult = tuple[int, bool] | None
"""The test image that an image resembles, by its number, and whether the two are one picture; None if there is none."""


class LeakIndex:
    """Test data by image, example and text, with which the rows of training sets are compared."""

    def __init__(self, tests: Sequence[tuple[Benchmark, Build]], names: Mapping[str, str] | None = None) -> None:
        """Read test builds, which ``names`` has by their digests; without it, they have the names of their folders."""
        self.tests = [build.digest for _, build in tests]
        self._build_names = {build.digest: build.path.name for _, build in tests} | dict(names or {})
        self.image_results: dict[str, ImageResult] = {}
        """The results of images by the sha256 of their bytes; those that are known need not be compared again."""
        self.on_image: Callable[[], None] = lambda: None
        """The function that is called after each image that was compared."""
        self._lenders: dict[str, str] = {}
        self._images: dict[str, str] = {}
        self._media: list[tuple[Path, Media]] = []
        self._names: list[str] = []
        self._groups: dict[int, str] = {}
        self._prompts = PromptIndex()
        self._questions = QuestionIndex()
        self._missing: list[str] = []
        self._damaged: list[str] = []
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
        examples: dict[str, str] = {}
        """The examples of the training set that are test data, each with the test."""
        self._lenders = _groups_by_image(training_set)
        for row in _rows(training_set):
            leaks, test = self._find_by_images(row, training_set.image_digests)
            report.leaks += leaks
            if test:
                examples.setdefault(_example(row), test)
        texts = _RowTexts(training_set, self._prompts, examples)
        for row in _rows(training_set):
            if _example(row) not in examples and (leak := self._find_by_text(row, texts)):
                report.leaks.append(leak)
        examples |= {leak.example or leak.row: leak.test for leak in report.leaks if leak.means == "prompt"}
        refused = set(report.refused_rows)
        for row in _rows(training_set) if examples else ():
            if _example(row) in examples and row.where not in refused:
                report.leaks.append(Leak(row.where, "related", examples[_example(row)], row.group))
        refused = set(report.refused_rows)
        report.leaks = [leak for leak in report.leaks if leak.means in REFUSED or leak.row not in refused]
        report.unread_images = [*self._missing, *self._damaged]
        return report

    def _add(self, benchmark: Benchmark, build: Build) -> None:
        rows: dict[str, str] = {}
        with suppress(SourceError):  # without the rows of its table, instances have their ids
            rows = {row.group: row.row for row in build.built_rows()}
        for prompt_set in benchmark.prompt_sets:
            for instance in instances_of(benchmark, build, prompt_set):
                example = example_of(instance.group)
                name = f"{rows.get(example) or instance.id} of {self._build_names[build.digest]}"
                self._groups.setdefault(hash64(example), name)
                self._questions.add(instance.question, name, example)
                self._prompts.add(instance, name, example)
                for medium in instance_images(instance):
                    self._add_image(build, medium, name)

    def _add_image(self, build: Build, medium: Media, name: str) -> None:
        if medium.sha256 not in self._images:
            self._images[medium.sha256] = name
            try:
                self._media.append((build.media_path(medium), medium))
            except MediaError:
                self._missing.append(name)
            else:
                self._names.append(name)

    @cached_property
    def _pictures(self) -> ImageIndex:
        """The pictures of all test images; one that cannot be read is compared by its digest alone."""
        pictures = ImageIndex()
        for number, (path, medium) in enumerate(self._media):
            try:
                for view in image_views(read_media(path, medium)):
                    pictures.add(view, number)
            except MediaError:
                self._damaged.append(self._names[number])
        return pictures

    def _find_by_images(self, row: ChatRow, digests: Mapping[Path, str]) -> tuple[list[Leak], str]:
        """Return the leaks of a row by its id and the images that it shows, and the test that its example is, or ""."""
        leaks, test = [], ""
        if row.group and (instance := self._groups.get(hash64(row.group))):
            leaks.append(Leak(row.where, "example", instance, row.group))
            test = instance
        for number, path in enumerate(row.images):
            known = row.digests[number : number + 1] if len(row.digests) == len(row.images) else ()
            leak = self._image_leak(path, (*known, digests[path]))
            if leak is not None:
                is_own = row.own_images is None or path in row.own_images
                lender = "" if is_own else self._lenders.get(digests[path], "")
                leaks.append(Leak(row.where, *leak, row.group, lender))
                if leak[0] in REFUSED and is_own:
                    test = test or leak[1]
        for path in row.own_images or ():
            leak = None if path in row.images else self._image_leak(path, (digests[path],))
            if leak is not None and leak[0] in REFUSED:
                test = test or leak[1]
        return leaks, test

    def _find_by_text(self, row: ChatRow, texts: _RowTexts) -> Leak | None:
        prompts = prompt_texts(row)
        for text in prompts:
            prompt = self._prompts.find(text)
            if prompt is not None and texts.is_own(row, text, prompt):
                return Leak(row.where, "prompt", prompt.name, row.group)
        test = self._questions.find(row.question, prompts)
        return Leak(row.where, "question", test, row.group) if test else None

    def _image_leak(self, path: Path, digests: Sequence[str]) -> tuple[Means, str] | None:
        """Return what an image is of the test images; the last of its ``digests`` is that of the file."""
        for value in digests:
            if value in self._images:
                return "image", self._images[value]
        if digests[-1] not in self.image_results:
            self.image_results[digests[-1]] = self._similar(path)
            self.on_image()
        match self.image_results[digests[-1]]:
            case (number, same) if number < len(self._names):
                return "picture" if same else "similar picture", self._names[number]
        return None

    def _similar(self, path: Path) -> ImageResult:
        """Return the test image that one of an image's views copies, or else the first that one resembles."""
        try:
            views = image_views(read_image(path))
        except MediaError:
            return None
        resembled: ImageResult = None
        for view in views:
            for match in self._pictures.find(view):
                if match.same and self._is_same(view, match):
                    return match.number, True
                resembled = resembled or (match.number, False)
        return resembled

    def _is_same(self, view: PILImage, match: Match) -> bool:
        """Return whether a view is a test image in all details; charts of one template with other values are not."""
        try:
            tests = image_views(read_media(*self._media[match.number]))
        except MediaError:
            return False
        pairs = ((test, view) if match.within else (view, test) for test in tests)
        return any(is_one_picture(whole, other, match.window) for whole, other in pairs)


class _RowTexts:
    """The texts of the rows of a training set that are not known as test data by other means."""

    def __init__(self, training_set: TrainingSet, tests: PromptIndex, examples: Collection[str]) -> None:
        self._tests, self._unique, self._templates = tests, UniqueTexts(), Templates()
        for row in _rows(training_set):
            if _example(row) in examples:
                continue
            for text in prompt_texts(row):
                self._unique.add(text, example_name(row))
                if row.group and text not in tests:
                    self._templates.add(Form.of(text, row.question, (row.target, row.rejected)), row.group)

    def is_own(self, row: ChatRow, text: str, test: IndexedPrompt) -> bool:
        """Return whether a row can have the text of a test prompt only from the test, not from a template.

        A sentence that other examples have with other values is from a template. A row with a picture, which is not the test's,
        is then about that one; of a row without any, the question decides.
        """
        if not self._unique.owner(text):
            return False
        templates = ((self._tests.templates, test.example), (self._templates, row.group))
        if not any(known.has_sentence(test.form, owner) for known, owner in templates):
            return True
        has_picture = bool(row.images or row.own_images)
        return not has_picture and not any(known.has_question(test.form, owner) for known, owner in templates)


def _rows(training_set: TrainingSet) -> Iterator[ChatRow]:
    return (row for part in PARTS for row in training_set.rows(part))


def _groups_by_image(training_set: TrainingSet) -> dict[str, str]:
    """Return the group of each example's own images, by their digest."""
    digests = training_set.image_digests
    return {
        digests[path]: row.group
        for row in _rows(training_set)
        for path in row.own_images or ()
        if row.group and path in digests
    }


def _example(row: ChatRow) -> str:
    """Return the example of a row; the row itself if it states none."""
    return row.group or row.where


def instance_images(instance: Instance) -> Iterator[Media]:
    """Yield the images of an instance's prompt."""
    return (part for part in instance.parts if isinstance(part, Media) and part.modality == "image")


def check_leaks(report: LeakReport, *, drop: bool, places: Mapping[str, str] | None = None) -> list[str]:
    """Return the warnings of a report. Raises SpecError if the training set must be refused, unless leaks are dropped.

    ``places`` are those of :meth:`LeakReport.sentences`.
    """
    if report.refused and not drop:
        count = len(report.refused_rows)
        raise SpecError(
            f"{count} training {'row is' if count == 1 else 'rows are'} test data: "
            f"{'; '.join(report.sentences(REFUSED, places))}. "
            "Take other data, or leave these rows out with `rashomon training --drop-leaks`."
        )
    return leak_warnings(report, places)


def leak_warnings(report: LeakReport, places: Mapping[str, str] | None = None) -> list[str]:
    """Return the warnings of a report: what may be test data, and the test images that could not be compared."""
    warnings = [f"{sentence}; check whether it is test data" for sentence in report.sentences(WARNED, places)]
    if count := len(report.unread_images):
        images = "test image is" if count == 1 else "test images are"
        warnings.append(
            f"{count} {images} missing or damaged ({report.unread_images[0]}), so copies that were encoded anew, resized or "
            "cropped are not recognised; build the test data again"
        )
    return warnings


def leak_counts(report: LeakReport) -> dict[str, int]:
    """Return the number of rows by means."""
    return dict(Counter(means for means, _ in {(leak.means, leak.row) for leak in report.leaks}))
