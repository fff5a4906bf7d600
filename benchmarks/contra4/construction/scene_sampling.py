"""Scene sampling (step 1): scenes drawn at random, or because their captions are similar."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations, cycle
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.contra4.construction.meteor import words
from benchmarks.contra4.contra4_constants import MODALITIES
from benchmarks.contra4.contra4_sample import Scene
from benchmarks.text.stemming import stem
from benchmarks.text_model import Embedder
from benchmarks.vocabulary import Modality

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAREST = 30
"""The number of nearest captions of a modality that a similar negative is drawn from."""

_DIMENSIONS = 2048
_IN_VAIN = 200
"""The number of consecutive repeated draws after which drawing stops."""

Pool = Mapping[Modality, Sequence[Scene]]


class WordCounts(Embedder):
    """Captions as weighted counts of their stems (tf-idf), hashed: near where they share rare words. Needs no model."""

    name = "words (tf-idf of stems)"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        buckets = [[_bucket(stem(word)) for word in words(text)] for text in texts]
        frequency = np.bincount([bucket for row in buckets for bucket in set(row)], minlength=_DIMENSIONS)
        weight = np.log((1 + len(texts)) / (1 + frequency)) + 1
        vectors = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for vector, row in zip(vectors, buckets, strict=True):
            np.add.at(vector, row, weight[row])
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: NDArray[np.float32] = vectors / np.maximum(length, 1e-9)
        return normalised


class NearestCaptions:
    """The captions of a pool as vectors."""

    def __init__(self, pool: Pool, embedder: Embedder) -> None:
        entries = [(modality, scene) for modality, scenes in pool.items() for scene in scenes]
        vectors = embedder.embed([scene.caption for _, scene in entries])
        self._of = {id(scene): vector for (_, scene), vector in zip(entries, vectors, strict=True)}
        self._all = {
            modality: np.array([self._of[id(scene)] for scene in scenes]) for modality, scenes in pool.items() if scenes
        }

    def nearest(self, scene: Scene, modality: Modality) -> list[int]:
        """Return the pool indices of the ``NEAREST`` captions of ``modality``, by cosine, nearest first."""
        cosine = self._all[modality] @ self._of[id(scene)]
        return [int(place) for place in np.argsort(-cosine, kind="stable")[:NEAREST]]


def draw_scenes(pool: Pool, size: int, near: NearestCaptions | None, seed: int) -> Iterator[tuple[Scene, ...]]:
    """Scenes of ``size`` different modalities, every combination in turn, in an order of their own; none is given twice.

    One modality, chosen at random, is the anchor; the others are drawn at random, or from the nearest to it if ``near`` is
    given. Ends where nothing new is found.
    """
    draw = random.Random(f"contra4|{seed}|{size}|{'similar' if near else 'random'}")
    present = [modality for modality in MODALITIES if pool.get(modality)]
    groups = list(combinations(present, size))
    seen: set[frozenset[tuple[str, str]]] = set()
    repeats = 0
    for group in cycle(groups):
        anchor = draw.choice(group)
        first = draw.choice(pool[anchor])
        chosen_scenes = [first]
        for modality in group:
            if modality != anchor:
                scenes = pool[modality]
                chosen_scenes.append(
                    scenes[draw.choice(near.nearest(first, modality))] if near else draw.choice(scenes)
                )
        draw.shuffle(chosen_scenes)
        key = frozenset((scene.source, scene.name) for scene in chosen_scenes)
        repeats = repeats + 1 if key in seen else 0
        if key not in seen:
            seen.add(key)
            yield tuple(chosen_scenes)
        if repeats >= _IN_VAIN:
            return


def _bucket(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()) % _DIMENSIONS
