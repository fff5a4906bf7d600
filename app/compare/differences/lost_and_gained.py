"""Transitions from what one run's answers do to what another's do: losses, gains, and changes under conflict.

Losses and gains are counted apart and never netted: one value lost and another gained are two changes, not none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.decision_scores import NO_ANSWER, UNKNOWN
from app.compare.runs.packed_answers import PackedAnswers, Places
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews
from app.report.tables.single_source_accuracy import join_names
from app.text.plural import count_of
from app.text.text_escaping import size
from benchmarks.answer_behaviour import ACTS, AGREES, FOLLOWS, act_of_label, acts_of, names_sources, situation_of
from benchmarks.base import Benchmark
from benchmarks.stats.intervals import span
from benchmarks.tables.missing_labels import list_missing
from benchmarks.vocabulary import Estimate, Table

_GETS: Mapping[str, frozenset[str]] = {
    "image": frozenset({"image", "both", "right"}),
    "text": frozenset({"text", "both", "right"}),
    "agreement": AGREES | {"right"},
    "conflict": frozenset(ACTS) - {"invents", "none"},
}
"""The acts that answer from the sources of a situation."""
_WHERE = ("image alone", "text alone", "sources agree", "conflict")
"""The situations in words."""
_CONFLICT = len(_WHERE) - 1
_IS_GOT = np.array([[act in gets for act in (*ACTS, "")] for gets in (*_GETS.values(), frozenset())])
"""A mask of the acts that are among these, shape (situations, acts); the last situation and the last act, at -1, are none."""
_ACT = {act: number for number, act in enumerate(ACTS)}
_ACTS = (*ACTS, "unknown")

LOST, GAINED, CHANGED = "lost", "gained", "changed"
LOSSES = (
    "An answer is from its sources if it gives a value of the sources in its prompt, or the right one, or flags their conflict. "
    "lost: the baseline's answer is from its sources and the run's is not: it invents, gives no answer, flags a conflict where "
    "there is none or, with one source in the prompt, gives the value of the other. gained: the "
    "reverse. Gains never offset losses."
)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Transitions:
    """Changes of the instances that two runs share, in the order of :attr:`RunPair.shared`; shape (shared instances,).

    Attributes:
        situation: The number of the situation in ``_WHERE``, -1 for none.
        before, after: The number of the act in ``ACTS`` of the first and of the second run, -1 for an unknown one.
        got, known: Masks of the answers of the first run that get what their sources give, and of those with both acts known.
        effects: Masks of the answers lost, gained, and changed under conflict with neither.
        possible: Masks of the answers with an unknown act that may be lost, and may be gained.
    """

    pair: RunPair
    situation: Places
    before: Places
    after: Places
    got: Mask
    known: Mask
    effects: Mapping[str, Mask]
    possible: Mapping[str, Mask]

    @classmethod
    def of(cls, pair: RunPair, benchmark: Benchmark) -> Transitions:
        """Return the transitions of a pair of runs of a benchmark that has a scorecard."""
        first, second = pair.first.coded, pair.second.coded
        here, there = pair.places
        numbers = {name: number for number, name in enumerate(_GETS)}
        names = [situation_of(benchmark, name, source) for name in first.conditions for source in first.sources]
        cells = (first.condition * len(first.sources) + first.source)[here]
        situation = np.array([numbers.get(name, -1) for name in names], np.int64)[cells]
        before, after = acts_of_answers(first, benchmark)[here], acts_of_answers(second, benchmark)[there]
        got, gets = _IS_GOT[situation, before], _IS_GOT[situation, after]
        known = (situation >= 0) & (before >= 0) & (after >= 0)
        changed = known & got & gets & (before != after) & (situation == _CONFLICT)
        effects = {LOST: known & got & ~gets, GAINED: known & ~got & gets, CHANGED: changed}
        unknown = (situation >= 0) & ~known
        possible = {LOST: unknown & (got | (before < 0)) & ~gets, GAINED: unknown & ~got & (gets | (after < 0))}
        return cls(pair, situation, before, after, got, known, effects, possible)

    def effect_names(self) -> list[str]:
        """Return the effect of each transition, a key of :attr:`effects`; empty for one without."""
        return [str(name) for name in np.select([*self.effects.values()], [*self.effects], "")]

    def share(self, effect: str) -> Estimate:
        """Return the share lost of what the first run gets, or the share gained of what it does not get."""
        among = self.known & (self.got if effect == LOST else ~self.got)
        return self.pair.clusters.at(among).mean(self.effects[effect][among])

    def shows_loss(self) -> bool:
        """Return whether more answers are shown to be lost than gained, by the 95% interval of the difference."""
        lead = self.effects[GAINED].astype(float) - self.effects[LOST]
        difference = self.pair.clusters.at(self.known).difference(lead[self.known])
        return difference is not None and difference.interval()[1] < 0

    def unknown_outcomes(self) -> Counter[str]:
        """Return the number of answers with an unknown act, by the outcome that leaves it unknown."""
        unknown, outcomes = (self.situation >= 0) & ~self.known, Counter[str]()
        masks = (unknown & (self.after >= 0), unknown & (self.after < 0))
        for run, places, mask in zip((self.pair.first, self.pair.second), self.pair.places, masks, strict=True):
            outcomes.update(run.coded.outcomes[number] for number in run.coded.outcome[places[mask]].tolist())
        return outcomes

    def changes(self) -> str:
        """Return the changes under conflict, the most frequent first."""
        mask = self.effects[CHANGED]
        counts = Counter(zip(self.before[mask].tolist(), self.after[mask].tolist(), strict=True))
        return ", ".join(f"{count:,} {_ACTS[was]} to {_ACTS[now]}" for (was, now), count in counts.most_common())

    def rows(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each situation and act of the first run that occur, with the numbers of the table's columns."""
        before, after = self.before % len(_ACTS), self.after % len(_ACTS)  # an unknown act is the last
        counted = self.situation >= 0
        for place, act in np.unique(np.stack([self.situation, before])[:, counted], axis=1).T.tolist():
            chosen = (self.situation == place) & (before == act)
            counts = np.bincount(after[chosen], minlength=len(_ACTS)).tolist()
            effects = [int(mask[chosen].sum()) for mask in self.effects.values()]
            yield f"{_WHERE[place]}: {_ACTS[act]}", [*counts, sum(counts), *effects]


def acts_of_answers(answers: PackedAnswers, benchmark: Benchmark) -> Places:
    """Return what each answer does, as :func:`benchmarks.answer_behaviour.act_of` has it; shape (answers,)."""
    acts = answers.outcome_codes({label: _ACT[act_of_label(label)] for label in benchmark.labels})
    is_empty, is_pending = (answers.outcome_codes(dict.fromkeys(names, 0)) == 0 for names in (NO_ANSWER, ("pending",)))
    is_none = is_empty | (answers.cut_off & ~is_pending) | (answers.off_topic & (acts >= 0))
    return np.where(is_none, _ACT["none"], np.where(answers.gives_right & (acts >= 0), _ACT["right"], acts))


def from_sources(answers: PackedAnswers, benchmark: Benchmark) -> NDArray[np.float64]:
    """Return 1 for each answer under conflict that is from its sources, 0 for others, at their least and greatest.

    An answer with an unknown act may be either; nan for one that is pending, an error, or not under conflict. Shape (answers, 2).
    """
    acts = acts_of_answers(answers, benchmark)
    return _bounds_under_conflict(answers, benchmark, acts, _IS_GOT[_CONFLICT, acts])


def follows_rule(answers: PackedAnswers, benchmark: Benchmark) -> NDArray[np.float64]:
    """Return 1 for each answer under conflict that follows its row's rule, 0 for others, in the form of :func:`from_sources`."""
    acts = acts_of_answers(answers, benchmark)
    follows = np.array([[act in FOLLOWS.get(rule, ()) for act in (*ACTS, "")] for rule in answers.rules], np.bool_)
    return _bounds_under_conflict(answers, benchmark, acts, follows[answers.rule, acts])


def _bounds_under_conflict(
    answers: PackedAnswers, benchmark: Benchmark, acts: Places, hits: Mask
) -> NDArray[np.float64]:
    is_under = answers.condition_codes(dict.fromkeys(benchmark.conflicts, 0)) == 0
    is_unknown = (acts < 0) & (answers.outcome_codes(dict.fromkeys(UNKNOWN, 0)) == 0)
    scores = hits.astype(float)
    ends = np.stack([np.where(is_unknown, 0.0, scores), np.where(is_unknown, 1.0, scores)], axis=1)
    ends[~is_under | ((acts < 0) & ~is_unknown)] = np.nan
    return ends


def transitions_table(pairs: Sequence[RunPair], views: RunViews) -> Table | None:
    """Return how often each act became each other, with losses and gains; None where labels name no source."""
    if not names_sources(views.benchmark):
        return None
    transitions = [Transitions.of(pair, views.benchmark) for pair in pairs]
    rows = [(f"{moves.pair.second.label} / {name}", counts) for moves in transitions for name, counts in moves.rows()]
    columns = (*_ACTS, "all", LOST, GAINED, CHANGED)
    used = [i for i, name in enumerate(columns) if name not in _ACTS or any(counts[i] for _, counts in rows)]
    left_out = sum(int((moves.situation < 0).sum()) for moves in transitions)
    acts = "; ".join(f"{act}: {ACTS[act]}" for act in acts_of(views.benchmark))
    notes = (
        f"Rows: what the baseline's answers do; columns: what the run's do. {acts}; unknown: without a verdict.",
        f"{LOSSES} changed: another answer under conflict, from its sources in both runs.",
        *([f"Left out: {left_out:,} answers without a source, or to a wrong source alone."] if left_out else []),
    )
    cells = tuple((label, tuple(counts[i] for i in used)) for label, counts in rows)
    return Table("transitions", "What became of the answers", tuple(columns[i] for i in used), cells, notes)


def transitions_headline(pair: RunPair, views: RunViews) -> str:
    """Return what the second run loses and gains, what is not known of it, and what both cost; empty without such answers."""
    moves = Transitions.of(pair, views.benchmark)
    if not (moves.situation >= 0).any():
        return ""
    first, second = pair.first.label, pair.second.label
    effects, possible = ({name: int(of[name].sum()) for name in of} for of in (moves.effects, moves.possible))
    lost, gained = moves.share(LOST), moves.share(GAINED)
    sentence = (
        f"{second} has nothing to lose: of the answers with a verdict in both, none of {first} is from its sources"
    )
    if lost.n:
        sentence = (
            f"{first} answers {count_of(lost.n, 'prompt')} from the sources: with a value of theirs or the right one, or by "
            f"flagging their conflict. {second} loses {_counted(lost)}"
        )
    if gained.n:
        sentence += f". Of those that {first} answers otherwise, it gains {_counted(gained)}"
    if changes := moves.changes():
        sentence += f". Under conflict, changed but not lost: {effects[CHANGED]:,} ({changes})"
    if any(possible.values()):
        outcomes = moves.unknown_outcomes()
        up_to = [f"up to {effects[name] + possible[name]:,} may be {name}" for name in possible]
        sentence += (
            f". {outcomes.total():,} more lack a verdict in a run ({list_missing(outcomes)}): {', '.join(up_to)}"
        )
    return f"{sentence}.{_costs(pair)}"


def _counted(share: Estimate) -> str:
    """Return the count behind a share and what it is of, with the share's interval; of none, its upper bound."""
    count = round((share.value or 0) * share.n)
    interval = f"{share.value:.1%}; a single page gives no interval"
    if share.low is not None and share.high is not None:
        ends = span(f"{share.low:.1%}", f"{share.high:.1%}")
        interval = f"{share.value:.1%}, {ends} at 95%" if count else f"at most {share.high:.1%} of them at 95%"
    return f"{f'{count:,}' if count else 'none'} of these {share.n:,} ({interval})"


def _costs(pair: RunPair) -> str:
    """Return a sentence, after a space, on the costs that are known of both runs, the second one's first; "" without any."""
    runs = (pair.second, pair.first)
    measures: dict[str, list[str]] = {
        "at the peak": [size(run.cost.peak_memory) for run in runs if run.cost.peak_memory],
        "on disk": [size(run.weights_bytes) for run in runs if run.weights_bytes],
        "an answer": [f"{seconds:.2g} s" for run in runs if (seconds := run.cost.seconds_per_answer)],
    }
    known = [f"{' against '.join(values)} {name}" for name, values in measures.items() if len(values) == len(runs)]
    return f" {pair.second.label} takes {join_names(known)}." if known else ""
