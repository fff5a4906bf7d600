"""Plausibility of generated wrong values: figures, a classifier that looks for what gives them away, and pairs to read.

    python -m tests.performance.plausible_values CHARTQA.jsonl --seed 1 --numbers n.txt --words w.txt --key key.txt

CHARTQA.jsonl holds rows with image, question and answer; they are read as a user's own. The classifier sees both values of a
pair and the question, and has to say which value is right; half of its answers should be. Readers do the same with the file of
numbers, and judge with the file of words whether both values are of one kind. Each item stands alone, as a model sees it: no
two of a file share the picture, the question or both values.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cmc_bench.construction.cmc_candidates import Candidate, candidates
from benchmarks.cmc_bench.construction.cmc_construction import construct
from benchmarks.cmc_bench.construction.constructed_examples import ConstructedExample
from benchmarks.cmc_bench.construction.plausible_values import fits, made_values, value_kind
from benchmarks.cmc_bench.construction.value_distribution import describe, generated_values
from benchmarks.cmc_bench.construction.written_number import WrittenNumber, read_number
from benchmarks.cmc_bench.sources import read_source
from benchmarks.hash_collections import hash64
from benchmarks.stats.intervals import wilson

_FOLDS = 10


@dataclass(frozen=True)
class Pair:
    """A question with its right and its wrong value; pairs of one ``group`` share values."""

    question: str
    right: str
    wrong: str
    group: str
    occurrences: tuple[int, int] = (1, 1)
    """The numbers of times that the right and the wrong value occur in all pairs about the picture."""
    picture: str = ""

    @property
    def is_number(self) -> bool:
        return read_number(self.right) is not None


def usable_rows(file: Path) -> list[Candidate]:
    """Return the usable rows of a file."""
    return [c for c in candidates(read_source("rows", str(file))) if isinstance(c, Candidate)]


def lent_pairs(examples: Sequence[ConstructedExample]) -> list[Pair]:
    """Return the pairs of examples; those whose values are connected by lending are one group."""
    roots: dict[str, str] = {}

    def root(text: str) -> str:
        while roots.setdefault(text, text) != text:
            text = roots[text]
        return text

    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        roots[root(example.right.row.answer)] = root(example.value)
        seen[example.right.image.pixels].update([example.right.row.answer, example.value])
    return [
        Pair(
            e.right.row.question,
            e.right.row.answer,
            e.value,
            root(e.value),
            (seen[e.right.image.pixels][e.right.row.answer], seen[e.right.image.pixels][e.value]),
            e.right.image.pixels,
        )
        for e in examples
    ]


def made_pairs(rows: Sequence[Candidate], seed: int) -> Iterator[Pair]:
    """Yield the pairs of rows that stand alone, whose wrong values are made from the right ones."""
    for candidate in rows:
        kind = value_kind(candidate.row)
        for value in made_values(candidate.row, kind, "near", f"{seed}|{candidate.id}"):
            if fits(candidate.row, kind, value):
                yield Pair(candidate.row.question, candidate.row.answer, value, candidate.id)
                break


Feature = Callable[[WrittenNumber, str], float]

_HIGH = re.compile(r"\b(?:high|great|larg|most|max|peak|top|total|sum|tall|long)", re.IGNORECASE)
_LOW = re.compile(r"\b(?:low|small|least|min|short|differ|few)", re.IGNORECASE)
_COUNT = re.compile(r"\bhow many\b", re.IGNORECASE)


def _digits(number: WrittenNumber) -> str:
    return str(number.units).rstrip("0") or "0"


FEATURES: dict[str, Feature] = {
    "larger": lambda n, q: math.log(max(n.value, 1e-9)),
    "larger, highest or total asked": lambda n, q: math.log(max(n.value, 1e-9)) * bool(_HIGH.search(q)),
    "larger, lowest or difference asked": lambda n, q: math.log(max(n.value, 1e-9)) * bool(_LOW.search(q)),
    "larger, count asked": lambda n, q: math.log(max(n.value, 1e-9)) * bool(_COUNT.search(q)),
    "first digit (Benford)": lambda n, q: math.log10(1 + 1 / int(_digits(n)[0] if n.units else 1)),
    "first digit is 1": lambda n, q: _digits(n)[0] == "1",
    "second digit": lambda n, q: float(_digits(n)[1:2] or 0),
    "last digit": lambda n, q: float(_digits(n)[-1]),
    "last digit even": lambda n, q: int(_digits(n)[-1]) % 2 == 0,
    "last digit 5": lambda n, q: _digits(n)[-1] == "5",
    "zeros at the end": lambda n, q: n.zeros,
    "digits": lambda n, q: len(_digits(n)),
    "repeated digits": lambda n, q: len(_digits(n)) - len(set(_digits(n))),
    "whole part divisible by 10": lambda n, q: int(n.value) % 10 == 0,
    "whole part divisible by 5": lambda n, q: int(n.value) % 5 == 0,
    "distance from 50 as a percentage": lambda n, q: abs(n.value - 50) if n.value <= 100 else 50,
}


def number_features(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    """Return the differences of features between the values of each pair of numbers, first minus second, and whether the first
    is right; with the groups and the names of features."""
    rows, labels, groups = [], [], []
    for pair in pairs:
        right, wrong = read_number(pair.right), read_number(pair.wrong)
        if right is None or wrong is None or re.fullmatch("(?:19|20)[0-9]{2}", pair.right):
            continue
        first = hash64(f"order|{pair.question}|{pair.right}|{pair.wrong}") & 1
        row = [float(f(right, pair.question)) - float(f(wrong, pair.question)) for f in FEATURES.values()]
        row.append(float(pair.occurrences[0] - pair.occurrences[1]))
        rows.append(np.array(row) if first else -np.array(row))
        labels.append(float(first))
        groups.append(pair.group)
    return np.array(rows), np.array(labels), groups, [*FEATURES, "occurs more often"]


def cross_validated(features: np.ndarray, labels: np.ndarray, groups: Sequence[str]) -> tuple[float, int]:
    """Return the accuracy of a logistic regression on groups that it was not fitted to, ties half right, and their number."""
    folds = np.array([hash64(f"fold|{group}") % _FOLDS for group in groups])
    scale = features.std(axis=0)
    scaled = features / np.where(scale > 0, scale, 1)
    right = 0.0
    for fold in range(_FOLDS):
        weights = _fit(scaled[folds != fold], labels[folds != fold])
        scores = scaled[folds == fold] @ weights
        right += float(np.where(np.abs(scores) < 1e-9, 0.5, (scores > 0) == (labels[folds == fold] > 0)).sum())
    return right / len(labels), len(labels)


def _fit(features: np.ndarray, labels: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """Return the weights of a ridge logistic regression without an intercept (Newton's method)."""
    weights = np.zeros(features.shape[1])
    for _ in range(25):
        chances = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (labels - chances) - penalty * weights
        hessian = (features * (chances * (1 - chances))[:, None]).T @ features + penalty * np.eye(len(weights))
        weights += np.linalg.solve(hessian, gradient)
    return weights


def print_classifier(name: str, pairs: Sequence[Pair]) -> None:
    """Print how often a classifier finds the right number, from all features and from each alone."""
    features, labels, groups, names = number_features(pairs)
    print(f"{name}: {len(labels)} pairs of numbers, right of 100 (95% interval)")
    for label, columns in [("all features", list(range(len(names)))), *((n, [i]) for i, n in enumerate(names))]:
        accuracy, count = cross_validated(features[:, columns], labels, groups)
        low, high = _interval(accuracy * count, count)
        mark = "" if low <= 0.5 <= high else "  <- not chance"
        print(f"  {label:36} {accuracy:6.1%} ({low:.1%} to {high:.1%}){mark}")


def _interval(successes: float, count: int) -> tuple[float, float]:
    estimate = wilson(successes, count)
    return estimate.low or 0.0, estimate.high or 1.0


def sign_test(pairs: Sequence[Pair]) -> None:
    """Print how often the wrong number is the larger one, and the quartiles and the mean of log(wrong/right)."""
    logs = [
        math.log(w.value / r.value)
        for p in pairs
        if (r := read_number(p.right)) and (w := read_number(p.wrong)) and r.units and w.units
    ]
    larger = sum(log > 0 for log in logs)
    low, high = _interval(larger, len(logs))
    error = float(np.std(logs)) / math.sqrt(len(logs))
    quartiles = ", ".join(f"{math.exp(q):.2f}" for q in np.quantile(logs, [0.25, 0.5, 0.75]))
    print(
        f"  wrong larger: {larger / len(logs):.1%} ({low:.1%} to {high:.1%}); wrong/right quartiles {quartiles}; "
        f"mean log {np.mean(logs):+.3f} ± {1.96 * error:.3f}; within 3: {np.mean(np.abs(logs) <= math.log(3.001)):.1%}"
    )


def chosen_pairs(pairs: Sequence[Pair], seed: int, count: int) -> list[Pair]:
    """Return up to ``count`` pairs at random, no two of which share the picture, the question or both values."""
    chosen: list[Pair] = []
    seen: set[object] = set()
    for pair in sorted(pairs, key=lambda p: hash64(f"{seed}|read|{p.question}|{p.right}|{p.wrong}")):
        marks: set[object] = {
            (pair.picture,),
            " ".join(pair.question.casefold().split()),
            frozenset((pair.right.casefold(), pair.wrong.casefold())),
        }
        if len(chosen) < count and not marks & seen:
            seen |= marks
            chosen.append(pair)
    return chosen


def write_pairs(pairs: Sequence[Pair], seed: int, to: Path) -> list[str]:
    """Write pairs as question, A and B; return the right letters."""
    lines, letters = [], []
    for number, pair in enumerate(pairs, 1):
        is_first = hash64(f"{seed}|letter|{pair.question}|{pair.right}|{pair.wrong}") & 1
        first, second = (pair.right, pair.wrong) if is_first else (pair.wrong, pair.right)
        lines.append(f"{number}. {' '.join(pair.question.split())} / A: {first} / B: {second}")
        letters.append(f"{number} {'A' if is_first else 'B'}")
    to.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return letters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--numbers", type=Path)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--key", type=Path)
    options = parser.parse_args()
    rows = usable_rows(options.rows)
    examples = list(construct(rows, seed=options.seed, per_type=len(rows)).all)
    print(f"{len(rows)} rows; " + "; ".join(describe(generated_values(examples))))
    built = lent_pairs([example for example in examples if example.value])
    made = list(made_pairs(rows, options.seed))
    for name, pairs in (("as built", built), ("each row by itself", made)):
        print_classifier(name, pairs)
        sign_test(pairs)
    if options.numbers and options.words and options.key:
        letters = []
        for to, are_numbers in ((options.numbers, True), (options.words, False)):
            pairs = chosen_pairs([p for p in built if p.is_number == are_numbers], options.seed, options.count)
            letters += [f"{to.name} {letter}" for letter in write_pairs(pairs, options.seed, to)]
        options.key.write_text("\n".join(letters) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
