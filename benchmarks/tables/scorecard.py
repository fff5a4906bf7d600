"""Scorecard: what a model does with sources that disagree, and with each alone, under the rule that a user chose.

``benchmarks/answer_behaviour.py`` says what an answer does, and which acts follow a rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answer_behaviour import (
    ACTS,
    AGREES,
    EACH_ROW,
    FOLLOWS,
    NEEDS,
    SOURCES,
    act_of,
    act_of_label,
    acts_of,
    check_rule,
    gives_right,
    has_scorecard,
    name_rules,
    names_sources,
    needs_of,
    rule_of,
    rules_under_conflict,
    situation_of,
)
from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import counts_by_run
from benchmarks.stats.intervals import INTERVALS, percent, ratio
from benchmarks.tables.declared_tables import Column, Grid, Sheets
from benchmarks.tables.missing_labels import MISSING, missing_outcomes
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    Array = NDArray[np.float64]

NAME = "scorecard"

_SITUATIONS = ("without sources", "image", "text", "agreement", "conflict")
_KNOWS, _IMAGE, _TEXT, _AGREEMENT, _CONFLICT = range(len(_SITUATIONS))
_UNDER = {rule: _CONFLICT + place for place, rule in enumerate(("", *FOLLOWS))}
"""The situation of a conflict by the rule for it; "" is none. Conflicts among passages have one for each condition instead."""
_TRUTH = _CONFLICT + len(_UNDER)
"""The situation that counts conflicts once more, by whether the right value is given."""
_PLACE = {act: place for place, act in enumerate(ACTS)}
_DISAGREE = {
    "conflict: ": "its sources disagree",
    "tie: ": "one passage is right and one wrong",
    "majority-wrong: ": "most of the passages that answer are wrong",
}
"""The conflicts in words, by the beginning of their lines."""
RIGHT = "gives the right value under conflict"
CEILING = "could follow your rule: reads alone what it takes"


def _places(
    benchmark: Benchmark, judge: str, rule: str | None, kind: AnswerKind, labels: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    name = situation_of(benchmark, kind.condition, kind.instance.single_source)
    if not name:
        return
    situation = _SITUATIONS.index(name)
    act = act_of(kind, judge)
    if not act and labels == benchmark.labels[:1]:
        act = act_of_label(labels[0])  # an answer without a label, in the row of those that it could be in
    if act and situation == _KNOWS and act != "none":
        act = (
            "right" if labels and benchmark.correct(kind.condition, labels[0]) else "invents" if act != "flags" else act
        )
    if act:
        if situation == _CONFLICT and names_sources(benchmark):
            situation = _UNDER[rule_of(kind, rule)]
            is_right = gives_right(benchmark, kind.condition, labels[0] if labels else "", act)
            yield _TRUTH, _PLACE["right" if is_right else "none"]
        elif situation == _CONFLICT:
            situation += benchmark.conflicts.index(kind.condition)
        yield situation, _PLACE[act]


def _share(acts: Mapping[int, frozenset[str]], asked: str) -> Column:
    """Return the share of the acts by situation, among the answers of these situations."""
    situations = [*acts]
    chosen = [(situation, _PLACE[act]) for situation, of_situation in acts.items() for act in of_situation]
    rows, places = [*zip(*chosen, strict=True)] or ((), ())

    def of(counts: Array) -> Array:
        return ratio(counts[..., [*rows], [*places]].sum(-1), counts[..., situations, :].sum((-1, -2)))

    return Column(of, lambda totals: totals[situations].sum(), lambda totals: f"no answer that counts {asked}")


def columns_of(benchmark: Benchmark, rules: Collection[str]) -> dict[str, Column]:
    """Return the lines of a scorecard, by name; where all conflicts have a rule, whether answers follow it stands first."""
    under, name = "conflict", name_rules(rules)
    follows = {rule: FOLLOWS[rule] if name else frozenset() for rule in sorted(rules)}
    others = {rule: SOURCES - follows[rule] for rule in follows} if name == EACH_ROW else {}
    lines = {
        "knows without sources": _share({_KNOWS: frozenset({"right"})}, "without sources"),
        "reads the image alone": _share({_IMAGE: frozenset({"image", "both"})}, "to the image alone"),
        "reads the text alone": _share({_TEXT: frozenset({"text", "both"})}, "to the text alone"),
        "gives the value on which they agree": _share({_AGREEMENT: AGREES}, "where the sources agree"),
    }

    if not names_sources(benchmark):
        for place, condition in enumerate(benchmark.conflicts, _CONFLICT):
            for act in acts_of(benchmark):
                lines[f"{condition}: {ACTS[act]}"] = _share({place: frozenset({act})}, f"under {condition}")
        return lines

    def add(does: str, acts: Mapping[str, frozenset[str]]) -> None:
        lines[f"{under}: {does}"] = _share({_UNDER[rule]: of_rule for rule, of_rule in acts.items()}, under)

    if name:
        add(f"follows your rule ({name})", follows)
    if others:
        add("follows the other source", others)
    for act in acts_of(benchmark):
        rest = {rule: frozenset({act}) - follows[rule] - others.get(rule, frozenset()) for rule in follows}
        if any(rest.values()):
            add(ACTS[act], rest)
    lines[RIGHT] = _share({_TRUTH: frozenset({"right"})}, under)
    return lines


def scorecard_table(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, rule: str | None, resamples: int, seed: int
) -> Table | None:
    """Return the scorecard, a line a row and a run a column; None for a benchmark whose labels name no source.

    ``rule`` says what should win for rows that do not say it themselves. Raises SpecError for a rule that there is not.
    """
    check_rule(rule)
    if not has_scorecard(benchmark):
        return None
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    situations = max(_TRUTH + 1, _CONFLICT + len(benchmark.conflicts))
    grid = Grid((situations, len(ACTS)), partial(_places, benchmark, judge, rule))
    rules = rules_under_conflict(benchmark, runs.values(), rule) or Counter({rule or "": 0})
    lines = columns_of(benchmark, rules)
    by_run = {run: dict(zip(lines, sheets.sheet(run, grid).cells(lines.values()), strict=True)) for run in runs}
    if names_sources(benchmark) and name_rules(rules):
        for run, cells in by_run.items():
            cells[CEILING] = _ceiling(sheets, run, grid, rules)
    names = list(next(iter(by_run.values()), lines))
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (name, tuple(cells[name] for cells in by_run.values())) for name in names
    ]
    rows = [(name, cells) for name, cells in rows if any(isinstance(c, Estimate) and c.n + c.missing for c in cells)]
    notes = (
        "Shares of the answers. An invented value is never right, and an answer cut off at the limit of tokens is none."
        + (" The right value is that of the row's answer, whatever should win." if names_sources(benchmark) else ""),
        INTERVALS,
        *_rule_notes(benchmark, runs, rules),
        *([benchmark.scorecard_note] if benchmark.scorecard_note else []),
    )
    all_notes = (*_left_out_note(benchmark, runs, judge), *notes)
    return Table(NAME, "What it does with its sources, in %", tuple(by_run), tuple(rows), all_notes, percent=True)


def _left_out_note(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str) -> Iterator[str]:
    missing = {run: missing_outcomes(benchmark, answers, judge) for run, answers in runs.items()}
    numbers = {name: counts_by_run({run: counts[name] for run, counts in missing.items()}) for name in MISSING}
    left_out = [f"{MISSING[name]} ({number})" for name, number in numbers.items() if number and name != "unparsed"]
    if left_out:
        yield f"Left out of all answers: {', '.join(left_out)}."


def _rule_notes(benchmark: Benchmark, runs: Mapping[str, Answers], rules: Mapping[str, int]) -> Iterator[str]:
    """Yield which answers under conflict have a rule of their row's, and how to say one for the others."""
    if not names_sources(benchmark):
        return
    own, every = rules_under_conflict(benchmark, runs.values(), None), sum(rules.values())
    if by_rows := every - own[""]:
        others = "" if by_rows == every else f" {'No rule' if rules[''] else 'What you say'} decides for the others."
        yield f"The rows themselves say what should win for {by_rows:,} of {every:,} answers under conflict.{others}"


def _ceiling(sheets: Sheets, run: str, grid: Grid, rules: Collection[str]) -> Estimate:
    """Return the share of the answers under conflict to examples whose needed sources the model reads alone."""
    every, cluster = sheets.by_example(run, grid)
    alone = {"image": every[:, _IMAGE], "text": every[:, _TEXT]}
    is_known = {source: counts.any(-1) for source, counts in alone.items()}
    reads = {source: counts[:, [_PLACE[source], _PLACE["both"]]].any(-1) for source, counts in alone.items()}
    known = np.zeros(len(every), dtype=np.bool_)
    counts = np.zeros((len(every), 2), dtype=np.int64)
    for rule in rules:
        is_asked, is_able = (np.logical_and.reduce([of[source] for source in NEEDS[rule]]) for of in (is_known, reads))
        asked = np.where(is_asked, every[:, _UNDER[rule]].sum(-1), 0)
        counts += np.stack([np.where(is_able, asked, 0), asked], axis=-1)
        known |= is_asked
    column = Column(
        lambda of: ratio(of[..., 0], of[..., 1]),
        lambda totals: totals[1],
        lambda totals: f"{needs_of(rules)} were not asked alone",
    )
    (estimate,) = sheets.of_examples(counts[known], cluster[known], sheets.sheet(run, grid).distinct).cells([column])
    return estimate


def scorecard_sentences(label: str, table: Table, run: int) -> list[str]:
    """Return a run's scorecard in sentences; ``run`` is its column."""
    values = {name: cells[run] for name, cells in table.rows}
    sentences = list(_where_sources_disagree(label, values))
    if not sentences:
        sentences.append(f"{label} has no answer that counts where its sources disagree.")
    alone = [
        f"{name} in {percent(cell)} of {cell.n:,}"
        for name, cell in values.items()
        if not name.startswith(tuple(_DISAGREE)) and name != CEILING and isinstance(cell, Estimate) and cell.n
    ]
    if alone:
        sentences.append(f"It {_joined(alone)}.")
    for source in ("image", "text"):
        reading = values.get(f"reads the {source} alone")
        if isinstance(reading, Estimate) and reading.high is not None and reading.high < 0.5:
            sentences.append(f"It does not read the {source}s: more rows will not change that.")
    ceiling = values.get(CEILING)
    if isinstance(ceiling, Estimate) and ceiling.n:
        sentences.append(
            f"It could follow your rule in {percent(ceiling)}: there it reads, alone, what the rule takes."
        )
    return sentences


def _where_sources_disagree(label: str, values: Mapping[str, Cell]) -> Iterator[str]:
    for prefix, where in _DISAGREE.items():
        under = {
            name.removeprefix(prefix): cell
            for name, cell in values.items()
            if name.startswith(prefix) and isinstance(cell, Estimate) and cell.value
        }
        if under:
            shares = [f"{name} in {percent(cell)}" for name, cell in under.items()]
            n, missing = next((cell.n, cell.missing) for cell in under.values())
            more = f"; {missing:,} more have no label" if missing else ""
            yield f"Where {where}, {label} {_joined(shares)} of {n:,} answers{more}."


def _joined(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
