"""Simulated studies: pages, questions and answers of known truth, as runs that the product compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist

import numpy as np

from app.compare.runs.packed_answers import LabelledAnswer, PackedAnswers
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import Clusters
from benchmarks.vocabulary import Generation, Instance, Record
from docs.simulated_readers import (
    ANSWERED,
    BOTH,
    CUT_OFF,
    EMPTY,
    FAILED,
    HARD,
    IMAGE,
    KNOWS,
    LABELS,
    MISSING,
    NEITHER,
    PROMPTS,
    RIGHT,
    TEXT,
    UNDECIDED,
    Array,
    Codes,
    Random,
    Reader,
)


@dataclass(frozen=True)
class Layout:
    """The page of each question, and the page of the picture that it borrows; shape (questions,)."""

    page: Codes
    lender: Codes

    @classmethod
    def random(cls, random: Random, pages: int = 0) -> Layout:
        """Return 20 to 60 pages, or so many, with 2 to 10 questions each, and lenders at random."""
        pages = pages or int(random.integers(20, 61))
        page = np.repeat(np.arange(pages), random.integers(2, 11, pages))
        return cls(page, (page + random.integers(1, pages, len(page))) % pages)


@dataclass(frozen=True)
class World:
    """The models of a study, and the correlations of the latent difficulties.

    ``of_page`` is the share of their variance that is the page's, ``shared`` the part of that which all models share.
    """

    readers: tuple[Reader, ...]
    of_page: float
    shared: float

    @classmethod
    def random(cls, random: Random, readers: Sequence[Reader]) -> World:
        """Return a world with correlations at random."""
        return cls(tuple(readers), random.uniform(0.2, 0.5), random.uniform(0.3, 0.8))


@dataclass(frozen=True)
class Drawn:
    """The answers of a study: outcomes and what becomes of them, shape (questions, prompts, models)."""

    outcome: Codes
    fate: Codes


def draw(random: Random, layout: Layout, world: World) -> Drawn:
    """Draw the answers of all models.

    Reading the image, reading the text and the act have a latent normal difficulty each: effects of the page and of the question,
    some shared by the models, and a rest. A borrowed picture has those of its own page.
    """
    borrowed = np.array([prompt.borrowed for prompt in PROMPTS])
    pages = np.where(borrowed, layout.lender[:, None], layout.page[:, None])
    image = _latent(random, pages, borrowed.astype(int), world)
    text, act = (_latent(random, layout.page[:, None].repeat(len(PROMPTS), 1), borrowed * 0, world) for _ in range(2))
    cut, quantile = NormalDist().inv_cdf(HARD), NormalDist().inv_cdf
    uniform = random.random((2, *image.shape))
    outcome, fate = np.zeros(image.shape, np.int64), np.zeros(image.shape, np.int64)
    shows = np.array([[prompt.image, prompt.text] for prompt in PROMPTS], np.int64)
    hard = (image > cut) * shows[:, 0][None, :, None] + (text > cut) * shows[:, 1][None, :, None]
    for model, reader in enumerate(world.readers):
        reads = image[..., model] < quantile(reader.image), text[..., model] < quantile(reader.text)
        for (place, prompt), has_image, has_text in product(enumerate(PROMPTS), (False, True), (False, True)):
            acts = reader.acts(prompt, image=has_image, text=has_text)
            ends = np.cumsum([probability for _, probability in acts])[:-1]
            codes = np.array([code for code, _ in acts])
            chosen = codes[
                np.searchsorted([quantile(min(max(end, 1e-9), 1 - 1e-9)) for end in ends], act[:, place, model])
            ]
            rows = (reads[0][:, place] == has_image) & (reads[1][:, place] == has_text)
            outcome[rows, place, model] = chosen[rows]
        ends = np.cumsum(MISSING * reader.missing)
        fate[..., model] = (uniform[0, ..., model, None] < ends * (1 + 2 * hard[..., model, None])).sum(-1)
    fate = np.where(fate > 0, len(MISSING) + 1 - fate, ANSWERED)  # below all ends: the first kind
    knows = (outcome[:, 3] == NEITHER) & (uniform[1][:, 3] < KNOWS)
    outcome[:, 3] = np.where(knows, RIGHT, outcome[:, 3])
    return Drawn(outcome, fate)


def _latent(random: Random, pages: Codes, source: Codes, world: World) -> Array:
    """Return standard normal difficulties, shape (questions, prompts, models); ``source`` numbers the sources of a question."""
    questions, prompts, models = *pages.shape, len(world.readers)
    own, common = math.sqrt(1 - world.shared), math.sqrt(world.shared)
    count = int(pages.max()) + 1
    page = own * random.standard_normal((count, models)) + common * random.standard_normal((count, 1))
    of_question = math.sqrt(0.5) * random.standard_normal((questions, 2, models)) + math.sqrt(
        0.5
    ) * random.standard_normal((questions, 2, 1))
    rest = random.standard_normal((questions, prompts, models))
    within = math.sqrt(0.4) * of_question[:, source] + math.sqrt(0.6) * rest
    latent: Array = math.sqrt(world.of_page) * page[pages] + math.sqrt(1 - world.of_page) * within
    return latent


POLICIES = ("policy:always-image", "policy:always-text")


def views_of(layout: Layout, drawn: Drawn, *, policies: bool = False) -> RunViews:
    """Return the runs of a study as ``recommend`` and ``compare`` hold them."""
    questions, prompts, models = drawn.outcome.shape
    own = layout.page.repeat(prompts)
    borrowed = np.tile([prompt.borrowed for prompt in PROMPTS], questions)
    clusters = Clusters.of(own, np.where(borrowed, layout.lender.repeat(prompts), -1)[:, None])
    runs = [
        _view(f"m{model}", drawn.outcome[..., model].ravel(), drawn.fate[..., model].ravel(), clusters, model)
        for model in range(models)
    ]
    if policies:
        decided = np.zeros(questions * prompts, np.int64)
        for name, label in zip(POLICIES, (IMAGE, TEXT), strict=True):
            outcome = np.tile([BOTH, *[label] * (prompts - 1)], questions)
            runs.append(_view(name, outcome, decided, clusters, models))
    return RunViews(get_benchmark("cmc-bench"), "match@4", tuple(runs), seed=0)


def _view(name: str, outcome: Codes, fate: Codes, clusters: Clusters, size: int) -> RunView:
    unlabelled = {EMPTY: "unparsed", UNDECIDED: "undecided", FAILED: "error"}
    answers = {}
    for place, (code, what) in enumerate(zip(outcome.tolist(), fate.tolist(), strict=True)):
        question, prompt = divmod(place, len(PROMPTS))
        condition = PROMPTS[prompt].condition
        answers[f"{question}/{condition}"] = LabelledAnswer(
            str(question),
            condition,
            unlabelled.get(what, LABELS[NEITHER if code == RIGHT else code]),
            0,
            condition.removesuffix("-only") if condition.endswith("-only") else "",
            what == CUT_OFF,
            code == RIGHT and what == ANSWERED,
        )
    instance = Instance("", "", "", "", ())

    def read(positions: Sequence[int]) -> Iterator[Record]:
        """Yield answers of which equal ones have equal labels."""
        return (Record(instance, (Generation("", f"perhaps {outcome[place]}", "stop"),)) for place in positions)

    cost = RunCost(10, 10, 10.0 * (4 - size), peak_memory=10**9 * (1 + size))
    spec = {"model": name, "prompt_set": "paper", "benchmark": "cmc-bench", "judge": ["match"], "seed": 0}
    identity = {"model": name, "quantisation": None}
    packed = replace(PackedAnswers.of(answers), clusters=clusters)
    return RunView(name, name, "done", spec, identity, (), packed, cost, judged=True, read=read, own_rows_only=True)
