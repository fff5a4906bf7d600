"""Record of a training's data, kept with its adapter: by it, a run knows the test data that its model was trained on."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from benchmarks.hash_collections import hash64
from benchmarks.training.leaks_of_test_data import instance_images
from benchmarks.training.prompt_texts import UniqueTexts, example_name, instance_text, prompt_texts, text_key
from benchmarks.training.training_set import PARTS, TrainingSet
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import Instance

_MOST_HASHES = 1_000_000
_TYPE = ">u8"
_BUILDS, _HASHES = "builds", "examples, images and prompts"
"""The keys of a record among others of a training's: the digests of its builds, and 64-bit hashes in base64."""


@dataclass(frozen=True)
class TrainingRecord:
    """The data that a model was trained on.

    Attributes:
        builds: The digests of the builds that its rows came from.
        hashes: Hashes of its examples and images, and of the prompts of rows that do not state their example; None where they
            were too many to be kept.
    """

    builds: frozenset[str] = frozenset()
    hashes: frozenset[int] | None = frozenset()

    @classmethod
    def of(cls, training_set: TrainingSet) -> Self:
        """Return the record of a training set, with its rows for validation. Raises SourceError as its rows do."""
        prompts, hashes = UniqueTexts(), set[int]()
        for part in PARTS:
            for row in training_set.rows(part):
                hashes.update(map(_image_hash, row.digests))
                if row.group:
                    hashes.add(_example_hash(row.group))
                else:
                    for text in prompt_texts(row):
                        prompts.add(text, example_name(row))
        hashes.update(map(_image_hash, training_set.image_digests.values()))
        hashes.update(prompts.keys())
        return cls(training_set.builds, frozenset(hashes))

    @classmethod
    def read(cls, records: Iterable[Mapping[str, Any]]) -> Self:
        """Return the union of what trainings recorded; values that none of ours wrote are passed over."""
        builds, hashes = set[str](), set[int]()
        all_known = True
        for record in records:
            if isinstance(names := record.get(_BUILDS), list):
                builds.update(name for name in names if isinstance(name, str))
            if _HASHES in record:
                stored = _decoded(record[_HASHES])
                all_known &= stored is not None
                hashes.update(stored or ())
        return cls(frozenset(builds), frozenset(hashes) if all_known else None)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON; :meth:`read` is the inverse."""
        hashes = self.hashes if self.hashes is not None and len(self.hashes) <= _MOST_HASHES else None
        stored = None if hashes is None else base64.b64encode(_bytes(hashes)).decode("ascii")
        return {_BUILDS: sorted(self.builds), _HASHES: stored}

    def __bool__(self) -> bool:
        return bool(self.builds or self.hashes)

    def count_examples(self, build: str, instances: Iterable[Instance]) -> tuple[int, int]:
        """Return the number of examples of ``instances`` that were trained on, and of all; ``build`` is their build's digest.

        An example counts if it, one of its images, or a prompt that no other of the examples has was among the rows.
        """
        trained, examples = set[int](), set[int]()
        prompts: defaultdict[int, set[int]] = defaultdict(set)
        for instance in instances:
            example = _example_hash(example_of(instance.group))
            examples.add(example)
            if self.hashes is None or example in trained:
                continue
            images = (_image_hash(medium.sha256) for medium in instance_images(instance))
            if example in self.hashes or any(image in self.hashes for image in images):
                trained.add(example)
            elif (prompt := text_key(instance_text(instance))) in self.hashes:
                prompts[prompt].add(example)
        for owners in prompts.values():
            if len(owners) == 1:
                trained |= owners
        if self.hashes is None and build in self.builds:
            trained = examples
        return len(trained), len(examples)


def _example_hash(group: str) -> int:
    return hash64(f"example {group}")


def _image_hash(sha256: str) -> int:
    return hash64(f"image {sha256}")


def _bytes(hashes: Iterable[int]) -> bytes:
    return np.array(sorted(hashes), dtype=_TYPE).tobytes()


def _decoded(stored: Any) -> list[int] | None:
    try:
        numbers: list[int] = np.frombuffer(base64.b64decode(stored, validate=True), dtype=_TYPE).tolist()
    except (TypeError, ValueError):  # of another length, or no base64
        return None
    return numbers
