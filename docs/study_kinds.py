"""Kinds of simulated studies, and the false claims of each, or its decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from app.compare.decision.target_metric import target_metric
from app.compare.decision.target_shares import target_shares
from app.compare.decision.trust_metric import trust_target
from app.compare.recommend.recommendation import recommend_views
from benchmarks.registry import get_benchmark
from docs.simulated_readers import (
    ACCURATE,
    ALIGNED,
    ANSWERED,
    BOTH,
    CUT_OFF,
    DECIDING,
    EMPTY,
    FAILED,
    FOLLOWS,
    IMAGE,
    LABELS,
    NEITHER,
    RIGHT,
    TEXT,
    UNDECIDED,
    Array,
    Random,
    Reader,
    random_reader,
    scaled_to,
    true_accuracy,
    true_following,
    true_obedience,
    true_value,
)
from docs.simulated_runs import Drawn, Layout, World, draw, views_of
from docs.study_claims import Claims, Compared, compared, sign

MARGIN = 0.03

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
    return sign(difference) if abs(difference) > 0.003 else 0


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
