"""The page "Simulated studies": rates of false claims of `rashomon compare` and `recommend`, where the truth is known.

``.venv/bin/python docs/claims.py [STUDIES] [COMMANDS]`` writes docs/claims.md from so many studies of each kind at the level of
tables, and so many at the level of commands.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from statistics import NormalDist
from typing import Literal, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from app.commands.recommend import RecommendArguments
from app.commands.recommend import recommend as print_recommendation
from app.compare.advice import rule_sentences
from app.compare.cost import accuracy_difference
from app.compare.differences import differences_table
from app.compare.headline import headlines
from app.compare.non_inferiority import ALPHA
from app.compare.packed_answers import LabelledAnswer, PackedAnswers
from app.compare.pairs import RunPair
from app.compare.recommend import Recommendation, recommend_views
from app.compare.run_cost import RunCost
from app.compare.run_view import RunView, RunViews
from app.compare.tables import compare
from app.compare.target_metric import target_metric
from app.compare.target_shares import target_shares
from app.compare.trust import trust_target
from app.engine.plan import create_run
from app.json_output.tables import EstimateJson, table_json
from app.report.tables import RESAMPLES
from app.run_spec import BatchSpec
from app.store.data_types import NewAnswer
from app.store.run import RunStore
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import Clusters
from benchmarks.vocabulary import RULES as WINS
from benchmarks.vocabulary import Estimate, Generation, Instance, Media, Record, Verdict
from judges.base import FunctionJudge
from judges.registry import get_judge

Codes = NDArray[np.int64]
Array = NDArray[np.float64]
Random = np.random.Generator

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "claims.md"
REFERENCE = "*Reference. New here? [Three paths](pages.md).*"
MARGIN = 0.03
CONFIDENCE = 0.95

# --- readers: what a simulated model does, and the population values of its metrics --------------------------------------------

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
IMAGE, TEXT, BOTH, NEITHER, ABSTAIN, RIGHT = range(6)
"""The outcomes of an answer: its label, or (``RIGHT``) NEITHER for giving the right value that no source has."""
ANSWERED, EMPTY, CUT_OFF, UNDECIDED, FAILED = range(5)
"""The fates of an answer. The last two have a label in truth, which the product does not know."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A condition: whether the prompt has the image and the text of the question, and whether the image is borrowed."""

    condition: str
    image: bool = True
    text: bool = True
    borrowed: bool = False


PROMPTS = (
    Prompt("aligned"),
    Prompt("image-correct"),
    Prompt("text-correct", borrowed=True),
    Prompt("both-wrong", borrowed=True),
    Prompt("image-only", text=False),
    Prompt("text-only", image=False),
)
ALIGNED, CONFLICTS, DECIDING = 0, (1, 2, 3), 4
"""The places of the prompts where sources agree and where they do not, and the number of those that decide."""

ACCURATE = ((IMAGE, TEXT, BOTH), (IMAGE, BOTH), (TEXT, BOTH), (ABSTAIN, RIGHT))
"""The outcomes that are right in a decision: an invention never is."""
FOLLOWS = {"image": IMAGE, "text": TEXT, "flag": ABSTAIN}

HARD = 0.75
"""The quantile of difficulty from which a source is hard."""
MISSING = np.array([0.01, 0.01, 0.008, 0.002])
"""The rates of empty, cut-off, undecided and failed answers without a hard source; each hard source adds twice as much."""
KNOWS = 0.3
"""The share of inventions that give the right value where no source has it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A model with known rates: reading each source, and with both read under conflict, giving image, text or both values.

    The rest flags the conflict. Of the answers without a source that is read, ``invents`` invent a value, the others abstain.
    ``missing`` multiplies the rates of ``MISSING``.
    """

    image: float
    text: float
    follows: tuple[float, float, float]
    invents: float
    missing: float = 1.0

    def scaled(self, factor: float) -> Reader:
        """Return a reader that reads both sources so many times as often."""
        return replace(self, image=min(0.995, self.image * factor), text=min(0.995, self.text * factor))

    @property
    def mirrored(self) -> Reader:
        """The reader that does with the text what this one does with the image."""
        image, text, both = self.follows
        return replace(self, image=self.text, text=self.image, follows=(text, image, both))

    def acts(self, prompt: Prompt, *, image: bool, text: bool) -> tuple[tuple[int, float], ...]:
        """Return the outcomes with their probabilities, given which of the displayed sources are read."""
        image, text = image and prompt.image, text and prompt.text
        if not image and not text:
            return (NEITHER, self.invents), (ABSTAIN, 1 - self.invents)
        if prompt.condition == "aligned":
            return ((BOTH, 1.0),)
        if not (prompt.image and prompt.text):
            return ((IMAGE if image else TEXT, 1.0),)
        if image and text:
            return (*zip((IMAGE, TEXT, BOTH), self.follows, strict=True), (ABSTAIN, 1 - sum(self.follows)))
        return (NEITHER, self.invents / 3), (IMAGE if image else TEXT, 1 - self.invents / 3)


def cells(reader: Reader, prompt: Prompt) -> Iterator[tuple[int, int, float]]:
    """Yield outcomes under a prompt with the number of hard sources and the probability, which is exact."""
    images = [*_source_states(reader.image)] if prompt.image else [(False, 0, 1.0)]
    texts = [*_source_states(reader.text)] if prompt.text else [(False, 0, 1.0)]
    for (is_read, hard, share), (reads_text, hard_text, text_share) in product(images, texts):
        for outcome, probability in reader.acts(prompt, image=is_read, text=reads_text):
            whole = share * text_share * probability
            if outcome == NEITHER and prompt.condition == "both-wrong":
                yield RIGHT, hard + hard_text, whole * KNOWS
                whole *= 1 - KNOWS
            yield outcome, hard + hard_text, whole


def _source_states(rate: float) -> Iterator[tuple[bool, int, float]]:
    """Yield the states of a source (read, hard) with their probabilities: easy ones are read first."""
    for low, high in pairwise(sorted({0.0, rate, HARD, 1.0})):
        yield high <= rate, int(low >= HARD), high - low


def population(reader: Reader) -> Array:
    """Return the probability of each outcome with what becomes of it, shape (prompts, outcomes, 5)."""
    table = np.zeros((len(PROMPTS), 6, 5))
    for place, prompt in enumerate(PROMPTS):
        for outcome, hard, probability in cells(reader, prompt):
            lost = MISSING * reader.missing * (1 + 2 * hard)
            table[place, outcome] += probability * np.array([1 - lost.sum(), *lost])
    return table


def _true_share(reader: Reader, hits: Sequence[Container[int]]) -> float:
    """Return the population share of these outcomes, by deciding prompt: an answer that is empty or cut off is none of them."""
    lost = float(MISSING[[EMPTY - 1, CUT_OFF - 1]].sum()) * reader.missing
    return sum(
        probability * (1 - lost * (1 + 2 * hard))
        for prompt, right in zip(PROMPTS, hits, strict=False)
        for outcome, hard, probability in cells(reader, prompt)
        if outcome in right
    ) / len(hits)


def true_accuracy(reader: Reader) -> float:
    """Return the population value of a decision's accuracy."""
    return _true_share(reader, ACCURATE)


def true_obedience(reader: Reader, rule: str) -> float:
    """Return the population value of the obedience to a rule."""
    return _true_share(reader, [(IMAGE, TEXT, BOTH), *[(FOLLOWS[rule],)] * len(CONFLICTS)])


def true_following(reader: Reader, rule: str) -> float:
    """Return the population value of following a rule under conflict, up to a factor."""
    return _true_share(reader, [(), *[(FOLLOWS[rule],)] * len(CONFLICTS)])


def true_value(reader: Reader, rule: str | None) -> float:
    """Return the population value of what decides: the accuracy, or the obedience to a rule."""
    return true_accuracy(reader) if rule is None else true_obedience(reader, rule)


def random_reader(random: Random) -> Reader:
    """Return a model with rates at random."""
    image, text, both, _ = random.dirichlet((2.5, 2.5, 0.7, 1.5))
    return Reader(
        random.uniform(0.6, 0.95),
        random.uniform(0.7, 0.97),
        (float(image), float(text), float(both)),
        random.uniform(0.2, 0.8),
    )


def scaled_to(reader: Reader, value: float, rule: str | None) -> Reader | None:
    """Return the reader, of other reading rates, whose population value is ``value``; None if there is none."""
    low, high = 0.15, 1.6
    signs = [true_value(reader.scaled(end), rule) - value > 0 for end in (low, high)]
    if signs[0] == signs[1]:
        return None
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if (true_value(reader.scaled(middle), rule) - value > 0) == signs[0] else (low, middle)
        )
    return reader.scaled(low)


# --- studies: pages, questions and answers --------------------------------------------------------------------------------------


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


# --- the level of tables --------------------------------------------------------------------------------------------------------

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


# --- claims ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claims:
    """The claims of a recommendation.

    ``worse`` has pairs of a run and the best one, ``behaves`` the number of sentences on runs that behave otherwise, and ``most``
    the run that follows each rule most.
    """

    holds: tuple[str, ...]
    worse: tuple[tuple[str, str], ...]
    beats: tuple[str, ...]
    behaves: int
    most: Mapping[str, str]

    @classmethod
    def of(
        cls,
        holds: Sequence[str],
        advice: Sequence[str],
        behaviour: Sequence[str],
        caveats: Sequence[str],
        rules: Sequence[str],
    ) -> Claims:
        """Read the claims off the sentences of a recommendation."""
        worse = [
            (match[1], match[2])
            for line in caveats
            if (match := re.match(r"(\S+) is worse than (\S+) by more than the margin", line))
        ]
        beats = [match[1] for line in advice if (match := re.match(r"(\S+) beats policy:", line))]
        no_claim = ("gives every label as often", "does not behave significantly", "The largest difference")
        behaves = sum(not any(words in line for words in no_claim) for line in behaviour)
        most = {
            rule: match[1]
            for rule, wins in WINS.items()
            for line in rules
            if (match := re.match(rf"If {wins}: (\S+) (?:follows|flags) it most", line))
        }
        return cls(tuple(holds), tuple(worse), tuple(beats), behaves, most)

    @classmethod
    def of_recommendation(cls, recommendation: Recommendation) -> Claims:
        """Return the claims of a recommendation of runs in memory."""
        decision = recommendation.decision
        holds = [decision.basis.views.runs[index].label for index in decision.holds]
        return cls.of(
            holds,
            recommendation.advice,
            recommendation.behaviour,
            recommendation.caveats,
            rule_sentences(recommendation.by_rule),
        )


@dataclass(frozen=True)
class Compared:
    """The claims of a comparison: the sign of each significant difference in accuracy and, by metric, of each corrected one."""

    accuracy: Mapping[str, int]
    metrics: Mapping[tuple[str, str], int]


def compared(views: RunViews) -> Compared:
    """Return what ``compare`` finds significant: the accuracies of its first lines, and the metrics by Holm's p."""
    pairs = [RunPair(views.runs[0], run, views.label_metrics, RESAMPLES, views.seed) for run in views.runs[1:]]
    accuracy = {}
    for pair in pairs:
        difference = accuracy_difference(pair, views)
        assert difference.low is not None
        assert difference.high is not None
        accuracy[pair.second.label] = int(difference.low > 0) - int(difference.high < 0)
    table = differences_table(pairs, list(views.label_metrics.of))
    size, corrected = (table.columns.index(name) for name in ("difference", "p (Holm)"))
    metrics = {}
    for label, cells in table.rows:
        value, p = cells[size], cells[corrected]
        assert isinstance(value, Estimate)
        assert isinstance(p, Estimate)
        run, _, metric = label.partition(" / ")
        metrics[run, metric] = _sign(value.value) if p.value is not None and p.value <= ALPHA else 0
    return Compared(accuracy, metrics)


def _sign(value: float | None) -> int:
    return 0 if not value else 1 if value > 0 else -1


# --- kinds of studies -----------------------------------------------------------------------------------------------------------

Events = dict[str, bool]
"""The false claims of a study, by row; a row without a claim is absent. For power: its decisions."""
RULES = ("image", "text", "flag")


@dataclass(frozen=True)
class Study:
    """A study at one of the levels: the claims about answers of a world."""

    recommend: Callable[[str | None, float], Claims]
    compare: Callable[[], Compared]
    floors: Callable[[str | None], bool] | None = None
    """The models that are found to beat the policies, stated or not."""


Open = Callable[[Random, World, bool], Study]
"""Draws the answers of a world, with the policies or without, and opens them as a study."""


def open_tables(random: Random, world: World, policies: bool, *, pages: int = 0) -> Study:
    """Open a study at the level of tables."""
    layout = Layout.random(random, pages)
    views = views_of(layout, draw(random, layout, world), policies=policies)
    models = replace(views, runs=views.runs[: len(world.readers)])

    def recommend(rule: str | None, margin: float) -> Claims:
        return Claims.of_recommendation(recommend_views(views, margin=margin, trust=rule))

    def floors(rule: str | None) -> bool:
        target = target_metric(views, None) if rule is None else trust_target(views, rule)
        by_policy = [
            replace(views, runs=(run, policy)) for run in models.runs for policy in views.runs[len(models.runs) :]
        ]
        beats = [target_shares(pair, target).interval(0, 1)[0] > 0 for pair in by_policy]
        return any(beats[place] and beats[place + 1] for place in range(0, len(beats), 2))

    return Study(recommend, lambda: compared(models), floors)


def _models(random: Random, least: int = 2) -> int:
    """Return the number of models of a study, two more than ``least`` at most."""
    return least + int(random.choice(3, p=(0.5, 0.3, 0.2)))


def equal_study(random: Random, start: Open) -> Events:
    """Models with the same rates: whatever tells them apart is false."""
    reader = random_reader(random)
    study = start(random, World.random(random, [reader] * _models(random)), False)
    comparison, rule = study.compare(), RULES[random.integers(3)]
    by_accuracy, by_rule = study.recommend(None, MARGIN), study.recommend(rule, MARGIN)
    events = {
        "equal headline": any(comparison.accuracy.values()),
        "equal metrics": any(comparison.metrics.values()),
        "equal worse": bool(by_accuracy.worse or by_rule.worse),
        "equal behaviour": by_accuracy.behaves > 0,
    }
    events["equal compare"] = events["equal headline"] or events["equal metrics"]
    return events


def mirrored_study(random: Random, start: Open) -> Events:
    """Two models that are right equally often, of which each does with the image what the other does with the text."""
    reader = random_reader(random)
    study = start(random, World.random(random, [reader, reader.mirrored]), False)
    return {"mirrored": any(study.compare().accuracy.values()) or bool(study.recommend(None, MARGIN).worse)}


@dataclass(frozen=True)
class UnequalWorld:
    """Models of different accuracy, with the signs of the true differences from the first by run and metric, 0 if unclear."""

    world: World
    accuracy: Mapping[str, int]
    metrics: Mapping[tuple[str, str], int]
    values: tuple[float, ...]


@cache
def unequal_world(number: int, *, cut_off_counts: bool, chunks: int = 10) -> UnequalWorld:
    """Return one of the worlds of unequal models; a population of 300,000 questions gives what counts in both of two runs."""
    random = np.random.default_rng((7, number))
    base = random_reader(random)
    readers = [base]
    count = _models(random)
    while len(readers) < count:
        share = random.uniform(0.8, 1.2, 2)
        follows = (base.follows[0] * share[0], base.follows[1] * share[1], base.follows[2])
        if sum(follows) >= 0.99:
            continue
        other = replace(base, follows=follows, missing=random.uniform(0.7, 1.3))
        apart = random.uniform(0.005, 0.06) * random.choice((-1, 1))
        if (reader := scaled_to(other, true_accuracy(base) + apart, None)) is not None:
            readers.append(reader)
    world = World.random(random, readers)
    metrics = get_benchmark("cmc-bench").answer_metrics()
    assert metrics is not None
    totals = np.zeros((len(readers), 2, len(metrics.conditions), len(LABELS)))
    questions = 30_000
    for _ in range(chunks):
        page = np.arange(questions)
        drawn = draw(random, Layout(page, (page + random.integers(1, questions, questions)) % questions), world)
        totals += _counted_in_both(drawn, cut_off_counts=cut_off_counts)
    right = np.array(
        [
            [code in codes or (place == 3 and code == NEITHER) for code in range(5)]
            for place, codes in enumerate(ACCURATE)
        ]
    )
    accuracy, signs = {}, {}
    for model in range(1, len(readers)):
        shares = (totals[model] * right).sum((1, 2)) / totals[model].sum((1, 2))
        accuracy[f"m{model}"] = _clear_sign(shares[1] - shares[0])
        for name, metric in metrics.of.items():
            before, after = metric(totals[model])
            signs[f"m{model}", name] = _clear_sign(float(after - before))
    return UnequalWorld(world, accuracy, signs, tuple(map(true_accuracy, readers)))


def _clear_sign(difference: float) -> int:
    return _sign(difference) if abs(difference) > 0.003 else 0


def _counted_in_both(drawn: Drawn, *, cut_off_counts: bool) -> Array:
    """Return the labels of the first model and of each other, where both have one; shape (models, 2, conditions, labels)."""
    models = drawn.outcome.shape[-1]
    labels = np.where(drawn.outcome == RIGHT, NEITHER, drawn.outcome)[:, :DECIDING]
    counts = (drawn.fate == ANSWERED) | ((drawn.fate == CUT_OFF) & cut_off_counts)
    totals = np.zeros((models, 2, DECIDING, len(LABELS)))
    for model, place in product(range(models), range(DECIDING)):
        rows = counts[:, place, 0] & counts[:, place, model]
        for side, run in enumerate((0, model)):
            totals[model, side, place] = np.bincount(labels[rows, place, run], minlength=len(LABELS))
    return totals


def unequal_study(
    random: Random, start: Open, *, worlds: int = 40, cut_off_counts: bool = True, chunks: int = 10
) -> Events:
    """Models of which one is better: a claim of the wrong sign is false."""
    truth = unequal_world(int(random.integers(worlds)), cut_off_counts=cut_off_counts, chunks=chunks)
    study = start(random, truth.world, False)
    comparison, claims, rule = study.compare(), study.recommend(None, MARGIN), RULES[random.integers(3)]
    obedience = [true_obedience(reader, rule) for reader in truth.world.readers]
    values = {None: truth.values, rule: obedience}

    def reversed_signs(claims: Claims, by: str | None) -> bool:
        return any(values[by][int(run[1:])] > values[by][int(best[1:])] for run, best in claims.worse)

    events = {
        "unequal headline": any(sign * truth.accuracy[run] < 0 for run, sign in comparison.accuracy.items()),
        "unequal metrics": any(sign * truth.metrics[key] < 0 for key, sign in comparison.metrics.items()),
        "unequal worse": reversed_signs(claims, None) or reversed_signs(study.recommend(rule, MARGIN), rule),
    }
    if claims.most:
        by_rule = {name: [true_following(reader, name) for reader in truth.world.readers] for name in claims.most}
        events["unequal rules"] = any(
            max(by_rule[name]) > by_rule[name][int(run[1:])] for name, run in claims.most.items()
        )
    return events


def threshold_readers(random: Random, rule: str | None) -> list[Reader]:
    """Return a best model and one to three others, of which at least one is worse by exactly the margin; the rest are as good."""
    while True:
        best = random_reader(random)
        value = true_value(best, rule)
        others = [replace(random_reader(random), missing=random.uniform(0.7, 1.3)) for _ in range(_models(random, 1))]
        losses = [MARGIN if place == 0 or random.random() < 0.7 else 0.0 for place in range(len(others))]
        near = [replace(other, follows=_between(best.follows, other.follows)) for other in others]
        readers = [scaled_to(other, value - loss, rule) for other, loss in zip(near, losses, strict=True)]
        solved = [reader for reader in readers if reader is not None]
        if len(solved) == len(readers):
            return [best, *solved]


def _between(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    image, text, both = (0.7 * a + 0.3 * b for a, b in zip(first, second, strict=True))
    return image, text, both


def threshold_study(random: Random, start: Open) -> Events:
    """Models worse than the best by exactly the margin: they do not hold, and are not worse by more."""
    events: Events = {}
    for key, rule in (("accuracy", None), ("trust", RULES[random.integers(3)])):
        readers = threshold_readers(random, rule)
        values = [true_value(reader, rule) for reader in readers]
        claims = start(random, World.random(random, readers), False).recommend(rule, MARGIN)
        events[f"threshold holds {key}"] = any(
            values[int(run[1:])] <= values[0] - MARGIN + 1e-6 for run in claims.holds
        )
        events[f"threshold worse {key}"] = any(
            values[int(run[1:])] >= values[int(best[1:])] - MARGIN - 1e-6 for run, best in claims.worse
        )
    return events


def policy_study(random: Random, start: Open) -> Events:
    """Models that are exactly as good as the policies, which they do not beat."""
    events: Events = {}
    for key, rule, value in (("accuracy", None, 0.5), ("trust", "flag", 0.25)):
        readers: list[Reader] = []
        count = _models(random)
        while len(readers) < count:
            drawn = random_reader(random)
            flags = drawn if rule is None else replace(drawn, follows=_between((0.45, 0.45, 0.1), drawn.follows))
            if (reader := scaled_to(flags, value, rule)) is not None:
                readers.append(reader)
        study = start(random, World.random(random, readers), True)
        events[f"policy {key}"] = bool(study.recommend(rule, MARGIN).beats)
        if study.floors is not None:
            events[f"policy floors {key}"] = study.floors(rule)
    return events


# --- power ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PowerWorld:
    """Two models whose true difference is twice the half-width of an oracle's interval, and margins of that size."""

    apart: World
    alike: World
    margins: Mapping[str | None, float]


Layouts = Callable[[Random], Layout]
POWER_PAGES = 40


def power_layout(random: Random) -> Layout:
    """Return the pages of a study of power at the level of tables."""
    return Layout.random(random, POWER_PAGES)


@cache
def power_world(number: int, layouts: Layouts, missing: float = 1.0) -> PowerWorld:
    """Return one of the worlds of studies of power; ``missing`` multiplies the rates of missing answers.

    The oracle knows the variance of the difference over studies of the same pages, models and missing answers.
    """
    random = np.random.default_rng((11, number))
    image, text = random.uniform(0.75, 0.9), random.uniform(0.8, 0.95)
    base = replace(random_reader(random), image=image, text=text, missing=missing)
    of_page, shared = random.uniform(0.2, 0.5), random.uniform(0.3, 0.8)
    factor, apart = 0.9, World((base, base), of_page, shared)
    for _ in range(6):
        apart = World((base, base.scaled(factor)), of_page, shared)
        mean, half_width = _oracle(np.random.default_rng(number), apart, layouts, None, counted=True)
        factor = 1 - (1 - factor) * min(3.0, max(0.3, 2 * half_width / max(1e-3, -mean)))
    alike = World((base, base), of_page, shared)
    margins = {rule: 2 * _oracle(random, alike, layouts, rule, counted=False)[1] for rule in (None, *RULES)}
    return PowerWorld(apart, alike, margins)


def _oracle(random: Random, world: World, layouts: Layouts, rule: str | None, *, counted: bool) -> tuple[float, float]:
    """Return the mean difference of two models over 400 studies, and the half-width of a 95% interval by its true variance.

    With ``counted`` it is ``compare``'s, over the labelled answers of both; else a decision's, where no answer is not right, and
    where the half-width takes in the share of answers whose outcome is not known in one of the runs.
    """
    scores = np.zeros((DECIDING, 6))
    for place in range(DECIDING):
        right = ACCURATE[place] if rule is None else (IMAGE, TEXT, BOTH) if place == ALIGNED else (FOLLOWS[rule],)
        scores[place, list(right)] = 1
    if counted:
        scores[3, NEITHER] = 1
    differences, open_shares = [], []
    for _ in range(400):
        drawn = draw(random, layouts(random), world)
        fate = drawn.fate[:, :DECIDING]
        score = scores[np.arange(DECIDING)[None, :, None], drawn.outcome[:, :DECIDING]]
        lost = (fate == EMPTY) | (fate == CUT_OFF)
        unknown = (fate == UNDECIDED) | (fate == FAILED)
        if counted:
            unknown, lost = unknown | (fate == EMPTY), lost & False
        known = ~unknown.any(-1)
        score = np.where(lost, 0.0, score)
        differences.append(float((score[..., 1] - score[..., 0])[known].mean()))
        open_shares.append(0.0 if counted else float(1 - known.mean()))
    return float(np.mean(differences)), 1.96 * float(np.std(differences)) + float(np.mean(open_shares))


def power_study(random: Random, start: Open, layouts: Layouts = power_layout, *, worlds: int = 10) -> Events:
    """Two models with a true difference of twice an oracle's half-width, which should be shown."""
    number, rule = int(random.integers(worlds)), RULES[random.integers(3)]
    truth, decided = power_world(number, layouts), power_world(number, layouts, 0.0)
    apart, alike, whole = (start(random, world, False) for world in (truth.apart, truth.alike, decided.alike))
    return {
        "power headline": apart.compare().accuracy["m1"] < 0,
        "power holds accuracy": "m1" in alike.recommend(None, truth.margins[None]).holds,
        "power holds trust": "m1" in alike.recommend(rule, truth.margins[rule]).holds,
        "power holds whole": "m1" in whole.recommend(None, decided.margins[None]).holds,
    }


# --- counts and limits ----------------------------------------------------------------------------------------------------------


def binomial_tail(count: int, n: int, p: float) -> float:
    """Return the probability of at most ``count`` successes of ``n``."""
    if p <= 0 or count >= n:
        return 1.0
    if p >= 1:
        return 0.0
    logs = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        for k in range(count + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))


def upper_limit(count: int, n: int, confidence: float = CONFIDENCE) -> float:
    """Return Clopper and Pearson's one-sided upper limit of a rate (1934): the beta quantile, by bisection of the tail."""
    if count >= n:
        return 1.0
    low, high = count / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(count, n, middle) > 1 - confidence else (low, middle)
    return high


def lower_limit(count: int, n: int) -> float:
    """Return the one-sided lower limit of a rate."""
    return 1 - upper_limit(n - count, n)


@dataclass
class Tally:
    """Numbers of studies and of false claims, or decisions, by row."""

    studies: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, events: Events) -> None:
        """Count a study."""
        for key, happened in events.items():
            self.studies[key] += 1
            self.counts[key] += happened

    def rate(self, key: str) -> float:
        """Return the share of studies."""
        return self.counts[key] / self.studies[key]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the page: a claim, and the most studies in which it may be false, or for ``power`` the least that decide."""

    key: str
    claim: str
    limit: float
    power: bool = False

    def verdict(self, tally: Tally) -> str:
        """Return whether the requirement is met: "yes" if its limit of confidence is within it, "no" if the rate is not."""
        if self.power:
            return "yes" if tally.rate(self.key) >= self.limit else "no"
        if tally.rate(self.key) > self.limit:
            return "no"
        return "yes" if upper_limit(tally.counts[self.key], tally.studies[self.key]) <= self.limit else "rate only"

    @property
    def short(self) -> str:
        """The claim without its requirement."""
        return self.claim[4:]

    @property
    def required(self) -> str:
        """The requirement, as on the page."""
        return f"{'≥' if self.power else '≤'} {100 * self.limit:g}%"

    def line(self, tables: Tally, commands: Tally) -> str:
        """Return the line of the page's table."""
        verdicts = dict.fromkeys(self.verdict(tally) for tally in (tables, commands) if tally.studies[self.key])
        return f"| {self.claim} | {self.required} | {self.cells(tables)} | {self.cells(commands)} | {', '.join(verdicts)} |"

    def cells(self, tally: Tally) -> str:
        """Return the rate with its limit of confidence, in words of the page."""
        if not tally.studies[self.key]:
            return "-"
        count, n = tally.counts[self.key], tally.studies[self.key]
        limit = lower_limit(count, n) if self.power else upper_limit(count, n)
        return f"{count / n:.1%} ({limit:.1%})"


ROWS = (
    Row("equal headline", "(a) equal models: `compare` says that an accuracy differs", 0.05),
    Row("equal metrics", "(a) equal models: `compare` says that a metric differs (Holm)", 0.05),
    Row("equal compare", "(a) equal models: `compare` says either", 0.05),
    Row("equal worse", "(a) equal models: `recommend`, also with `--trust`, says that one is worse", 0.05),
    Row("equal behaviour", "(a) equal models: `recommend` says that one behaves otherwise", 0.05),
    Row("mirrored", "(a) equal accuracy, opposite behaviour: an accuracy differs, or one is worse", 0.05),
    Row("unequal headline", "(b) unequal models: an accuracy differs, wrong sign", 0.025),
    Row("unequal metrics", "(b) unequal models: a metric differs, wrong sign", 0.025),
    Row("unequal worse", "(b) unequal models: the better one is worse, also with `--trust`", 0.025),
    Row("unequal rules", "(b) unequal models: another one follows a rule most, without `--trust`", 0.025),
    Row("threshold holds accuracy", "(c) a loss of exactly the margin: the run holds", 0.05),
    Row("threshold holds trust", "(c) the same with `--trust`", 0.05),
    Row("threshold worse accuracy", "(c) a loss of exactly the margin: worse by more than the margin", 0.05),
    Row("threshold worse trust", "(c) the same with `--trust`", 0.05),
    Row("policy accuracy", "(d) as good as the policies: a model beats one, as the advice says", 0.05),
    Row("policy trust", "(d) the same with `--trust flag`", 0.05),
    Row("policy floors accuracy", "(d) as good as the policies: any model beats both, said or not", 0.05),
    Row("policy floors trust", "(d) the same with `--trust flag`", 0.05),
    Row("power headline", "(e) power: `compare` says that the accuracy differs", 0.8, power=True),
    Row("power holds accuracy", "(e) power: the run holds", 0.8, power=True),
    Row("power holds whole", "(e) power: the run holds, no answer missing", 0.8, power=True),
    Row("power holds trust", "(e) power: the run holds, with `--trust`", 0.8, power=True),
)

Kind = Callable[[Random, Open], Events]
KINDS: Mapping[str, Kind] = {
    "equal": equal_study,
    "mirrored": mirrored_study,
    "unequal": unequal_study,
    "threshold": threshold_study,
    "policy": policy_study,
}


def simulate_tables(studies: int, seed: int = 1) -> Tally:
    """Return the tally of so many studies of each kind at the level of tables."""
    tally = Tally()
    for kind, (name, run) in enumerate(KINDS.items()):
        for number in range(studies):
            tally.add(run(np.random.default_rng((seed, kind, number)), open_tables))
            _progress(name, number, studies)
    for number in range(studies):
        random = np.random.default_rng((seed, len(KINDS), number))
        tally.add(power_study(random, lambda *given: open_tables(*given, pages=POWER_PAGES)))
        _progress("power", number, studies)
    return tally


# --- the level of commands ------------------------------------------------------------------------------------------------------

BUILDS, BUILD_PAGES, PER_PAGE = 4, 20, 3
APART = 25
"""Of so many studies, one runs `rashomon recommend` in a process of its own as well."""


class Commands:
    """The level of commands: builds from a CSV with a column of documents, and runs whose answers are scripted and judged.

    Runs are written as the engine writes them, and the functions behind `rashomon recommend` and `compare` print what is read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._opened = folder, 0
        self._benchmark, judge = get_benchmark("cmc-bench"), get_judge("match")
        assert isinstance(judge, FunctionJudge)
        self._judge = judge
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}
        self._builds = [self._build(number) for number in range(BUILDS)]
        self.in_process = True

    def layout(self, random: Random) -> Layout:
        """Return the pages of a build."""
        return self._builds[random.integers(BUILDS)][1]

    def open(self, random: Random, world: World, policies: bool) -> Study:
        """Write the runs of a study."""
        instances, layout = self._builds[random.integers(BUILDS)]
        drawn = draw(random, layout, world)
        self._opened += 1
        workspace = Workspace(self._folder / f"workspace-{self._opened}")
        workspace.make()
        models = [f"m{model}" for model in range(len(world.readers))]
        for model, name in enumerate(models):
            self._write(workspace, name, f"org/{name}", instances, drawn.outcome[..., model], drawn.fate[..., model])
        floors = [name.removeprefix("policy:") for name in POLICIES if policies]
        for name, label in zip(floors, (IMAGE, TEXT), strict=False):
            outcome = np.full(drawn.outcome.shape[:2], label)
            outcome[:, 4:] = (IMAGE, TEXT)
            outcome[:, ALIGNED] = BOTH
            self._write(workspace, name, f"policy:{name}", instances, outcome, outcome * 0)

        def recommend(rule: str | None, margin: float) -> Claims:
            arguments = RecommendArguments(margin=margin, trust=rule, as_json=True)
            text = _printed(lambda: print_recommendation(workspace, [*models, *floors], arguments))
            if not self.in_process:
                more = ["--trust", rule] if rule else []
                assert text == self._run(
                    workspace, "recommend", *models, *floors, "--margin", str(margin), *more, "--json"
                )
            result = json.loads(text)["result"]
            return Claims.of(
                result["holds"], result["advice"], result["behaviour"], result["unknown"], result["by_rule"]
            )

        return Study(recommend, lambda: _compared(workspace, models))

    def clear(self) -> None:
        """Remove the runs of the studies so far."""
        for folder in self._folder.glob("workspace-*"):
            shutil.rmtree(folder)

    def _build(self, number: int) -> tuple[list[Instance], Layout]:
        """Build the pages of one table; return the instances by question and prompt, and their layout."""
        random, source = np.random.default_rng((13, number)), self._folder / f"rows-{number}"
        source.mkdir(parents=True)
        rows = BUILD_PAGES * PER_PAGE
        values = random.permutation([round(1013 * 1.019**power) for power in range(2 * rows)]).tolist()
        with (source / "rows.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["image", "question", "answer", "document", "conflict"])
            for row in range(rows):
                Image.new("RGB", (8, 8), (number, row, 99)).save(source / f"{row}.png")
                question = "How many crates were sold?"
                writer.writerow([f"{row}.png", question, values[row], f"page {row // PER_PAGE}", values[rows + row]])
        build = self._benchmark.build([("rows", str(source / "rows.csv"))], source / "build", BuildOptions())
        by_id = {instance.id: instance for instance in self._benchmark.instances(build, "paper")}
        examples = list(dict.fromkeys(instance.group for instance in by_id.values()))
        ends = [*(prompt.condition for prompt in PROMPTS[:DECIDING]), "image-only/right", "text-only/right"]
        instances = [by_id[f"{example}/{end}"] for example in examples for end in ends]
        pages = [int(instance.strata["document"].removeprefix("page ")) for instance in instances]
        page_of_picture = {
            _picture(instance): pages[place] for place, instance in enumerate(instances) if place % len(ends) == 0
        }
        lenders = [page_of_picture[_picture(instance)] for instance in instances[3 :: len(ends)]]
        return instances, Layout(np.array(pages[:: len(ends)]), np.array(lenders))

    def _write(
        self, workspace: Workspace, name: str, model: str, instances: Sequence[Instance], outcome: Codes, fate: Codes
    ) -> None:
        (spec,) = BatchSpec(benchmark="cmc-bench", model=(model,), name=name).runs()
        identity = {**spec.identity(), "data digest": "d" * 64, "engine": "scripted"}

        def fill(store: RunStore) -> None:
            store.use_engine({"engine": "scripted", "model": model})
            answers = []
            for place, (instance, code, what) in enumerate(zip(instances, outcome.flat, fate.flat, strict=True)):
                text, reason = scripted_answer(instance, int(code), int(what))
                error = "the server closed the connection" if what == FAILED else None
                generation = Generation(f"{instance.id}#0", text, reason, (1, 2), 30, 2, 0.1, 0.5, 10**9, error)
                verdicts = () if error else (self._verdict(instance, generation, int(code), int(what)),)
                answers.append(NewAnswer(place, instance.condition, 0, "digest", generation, True, verdicts))
            store.commit(answers)
            store.set_meta("state", {"state": "done"})

        create_run(workspace, spec, workspace.runs_folder / name, identity, instances, data=None, fill=fill)

    def _verdict(self, instance: Instance, generation: Generation, code: int, what: int) -> Verdict:
        """Return the verdict of ``match``, which must be the label that the answer was written for."""
        key = instance.id, generation.text, generation.finish_reason
        if key not in self._verdicts:
            verdict = self._verdicts[key] = self._judge.judge(Record(instance, (generation,)))
            status = {ANSWERED: "labelled", EMPTY: "unparsed"}.get(what, "undecided")
            label = LABELS[NEITHER if code == RIGHT else code] if what == ANSWERED else None
            assert (verdict.status, verdict.label) == (status, label), (instance, generation.text, verdict)
            assert what != ANSWERED or (code == RIGHT) == (verdict.behaviour == "right"), (instance, generation.text)
        return self._verdicts[key]

    def _run(self, workspace: Workspace, *words: str) -> str:
        command = [sys.executable, "-m", "app.main", "--workspace", str(workspace.path), *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def scripted_answer(instance: Instance, code: int, what: int) -> tuple[str, Literal["stop", "length", "error"]]:
    """Return an answer that ``match`` labels as it should, with its finish reason."""
    image, text, right = ((instance.references.get(name) or ("",))[0] for name in ("image", "text", "right"))
    if what in (EMPTY, FAILED):
        return "", "error" if what == FAILED else "stop"
    if what == CUT_OFF:
        return "The value that is asked for is", "length"
    if what == UNDECIDED:
        return f"Not {image or text}{'.' * (1 + code)}", "stop"  # equal answers have equal labels
    both = image if image == text else f"Both {image} and {text}."
    flags = "The image and the text disagree, so I cannot tell."
    return (image, text, both, "77777", flags, right)[code], "stop"


def _picture(instance: Instance) -> str:
    return (
        next(part.sha256 for part in instance.parts if isinstance(part, Media))
        if instance.condition != "text-only"
        else ""
    )


def _printed(command: Callable[[], None]) -> str:
    with redirect_stdout(io.StringIO()) as output:
        command()
    return output.getvalue()


_HEADLINE = re.compile(
    r"(\S+) is right on \S+ of the \d+ answers that count in both, .*?: (\S+) points \([^)]*\)(, not significant)?\."
)


def _compared(workspace: Workspace, models: Sequence[str]) -> Compared:
    """Return the claims of ``compare``: its first lines, and the table of differences of its JSON."""
    comparison = compare([run_folder(workspace, name) for name in models])
    claims = [claim for line in headlines(comparison) for claim in _HEADLINE.findall(line)]
    assert len(claims) == len(models) - 1, headlines(comparison)
    accuracy = {run: 0 if insignificant else _sign(float(points)) for run, points, insignificant in claims}
    (table,) = (table_json(table) for table in comparison.tables if table.name == "differences")
    metrics = {}
    for row in table.rows:
        run, _, metric = row.label.partition(" / ")
        value, p = (cast(EstimateJson, row.cells[key]).value for key in ("difference", "p_holm"))
        metrics[run, metric] = _sign(value) if p is not None and p <= ALPHA else 0
    return Compared(accuracy, metrics)


def simulate_commands(studies: int, seed: int = 2) -> Tally:
    """Return the tally of so many studies at the level of commands, of each kind in turn."""
    tally, kinds = Tally(), [name for name in KINDS if name != "mirrored"]
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"XDG_STATE_HOME": folder}):
        level = Commands(Path(folder))
        run: dict[str, Kind] = {**KINDS, "unequal": partial(unequal_study, cut_off_counts=False)}
        for number in range(studies):
            level.in_process = number % APART > 0
            tally.add(run[kinds[number % len(kinds)]](np.random.default_rng((seed, number)), level.open))
            level.clear()
            _progress("commands", number, studies)
    return tally


def _progress(name: str, number: int, of: int) -> None:
    if (number + 1) % 100 == 0:
        print(f"{name}: {number + 1} of {of}", file=sys.stderr)


# --- the page -------------------------------------------------------------------------------------------------------------------

REQUIREMENTS = {
    "a": "equal models are told apart",
    "b": "the sign of a difference is wrong",
    "c": "a run at the margin is put on one side of it",
    "d": "a model that is as good as a policy beats it",
    "e": "of studies with twice an oracle's half-width decide",
}
_METHOD = (
    "**How it was simulated**: `docs/claims.py` draws answers of known truth, and gives them to the code of the commands.\n",
    "- 20 to 60 pages with 2 to 10 questions each, under CMC-Bench's conditions; two to four models. The rates of reading the "
    "image and the text, of following each under conflict, of flagging and of inventing are random. Reading and acting have "
    "normal difficulties: .2 to .5 of their variance is the page's, in part shared by the models. Borrowed pictures are those of "
    "another page.",
    "- An answer is empty (1%), cut off (1%), undecided (.8%) or failed (.2%); each hard source adds twice as much.",
    "- The truth is the generator's population value, exact by enumeration; for `compare`, which counts what both runs have "
    "labelled, of a population of 300,000 questions in each of 40 worlds, where differences below .3 points count neither way.",
    "- The margin is 3 points. For power it is twice the half-width of an oracle's interval, and the models are equal; for "
    "`compare` they are that far apart. The oracle knows the variance over 400 other studies of 40 pages with the same models; "
    "its half-width takes in the share of answers without a known outcome, which `recommend` counts against each run.",
    "- Commands: 20 pages with 3 questions each, built from a CSV with the column `document`; answers in words, labelled by "
    "`match`, in run folders. For {apart} of the {commands} studies, `rashomon recommend --json` in a process of its own printed "
    "the same.",
)


def page(tables: Tally, commands: Tally, studies: int, number: int, minutes: float) -> str:
    """Return the page."""
    lines = [
        "# Simulated studies: how often is a claim false?",
        "",
        REFERENCE,
        "",
        f"Rates of studies with a false claim, of {studies:,} studies of each kind in memory and {number:,} in all through the "
        "commands. In brackets: the one-sided 95% limit (Clopper and Pearson 1934), upper for false claims, lower for power. "
        "**met**: the upper limit is within the requirement; **rate only**: the rate is, its limit is not.",
        "",
        *(_answer(letter, tables, commands) for letter in REQUIREMENTS),
        "",
        "| claim | required | tables | commands | met |",
        "|---|---|---|---|---|",
        *(row.line(tables, commands) for row in ROWS),
        "",
        *(line.format(apart=math.ceil(number / APART), commands=number) for line in _METHOD),
        "",
        f"`.venv/bin/python docs/claims.py {studies} {number}` writes this page, in {minutes:.0f} minutes.",
        "",
    ]
    return "\n".join(lines)


def _answer(letter: str, tables: Tally, commands: Tally) -> str:
    """Return the line on a requirement: whether all of its rows meet it, and the worst ones."""
    rows = [row for row in ROWS if row.claim.startswith(f"({letter})")]
    levels = [(row, tally) for row in rows for tally in (tables, commands) if tally.studies[row.key]]
    verdicts = Counter(row.verdict(tally) for row, tally in levels)
    failed = [f"{row.short}: {row.cells(tally)}" for row, tally in levels if row.verdict(tally) == "no"]
    state = "not met" if failed else "met" if verdicts["yes"] == len(levels) else "met by the rates"
    limit = f"at {'least' if letter == 'e' else 'most'} {rows[0].limit:.1%}".replace(".0%", "%")
    worst = (min if letter == "e" else max)(levels, key=lambda pair: pair[1].rate(pair[0].key))
    detail = "; ".join(failed) or f"the worst: {worst[0].cells(worst[1])}"
    return f"- ({letter}) {REQUIREMENTS[letter]}, {limit}: **{state}** ({detail})."


def main(studies: int = 2000, commands: int = 500) -> None:
    """Simulate, and write the page."""
    started = time.monotonic()
    by_commands = simulate_commands(commands)
    by_tables = simulate_tables(studies)
    minutes = (time.monotonic() - started) / 60
    PAGE.write_text(page(by_tables, by_commands, studies, commands, minutes), "utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
