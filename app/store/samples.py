"""Samples: which of a run's instances fit a filter, and light rows of those that a screen shows.

What fits is a list of ordinals, so that a list of 100,000 costs a number each and rows are read a page at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from app.store.database import storable
from app.store.verdicts import Verdicts
from benchmarks.text.answer_text import visible_answer
from judges.base import OVERRIDE

Fate = Literal["right", "wrong", "unparsed", "judge-failed", "error", "pending"]
"""What became of an instance for one judge: ``Record.outcome``, with a label told as right or wrong under the condition."""

Order = Literal["run", "shortest", "longest", "slowest"]

FATES: tuple[Fate, ...] = get_args(Fate)
ORDERS: dict[Order, str] = {
    "run": "s.ordinal",
    "shortest": "g.completion_tokens IS NULL, g.completion_tokens, s.ordinal",
    "longest": "g.completion_tokens DESC, s.ordinal",
    "slowest": "coalesce(g.prefill_s, 0) + coalesce(g.decode_s, 0) DESC, s.ordinal",
}
_NO_OVERRIDE = f"substr({{}}judge, 1, {len(OVERRIDE)}) != '{OVERRIDE}'"
_LABELS_DIFFER = (
    "(SELECT min(d.label) != max(d.label) FROM verdict d WHERE d.generation = g.id AND d.accepted"
    f" AND d.status = 'labelled' AND {_NO_OVERRIDE.format('d.')})"
)
HEAD = 400
"""Characters of an answer that a row is made from."""


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """Which samples; what is left empty lets all through, and several values of one field are alternatives.

    ``judges`` are the ids of whose label counts, the first that has a verdict; ``labels`` and ``fates`` are by them.
    ``words`` must all occur, each in the id, the question or an accepted answer (its reasoning included), in any letter case.
    ``disagree`` asks for answers that two judges label differently, ``overridden`` for those a person overrode, ``cut`` for
    those that ended at the token limit, ``mismatch`` for those that are wrong or that judges disagree on. ``disputing`` are
    the judges whose disagreement counts; empty: all but overrides.
    """

    judges: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    strata: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    fates: tuple[Fate, ...] = ()
    words: tuple[str, ...] = ()
    disputing: tuple[str, ...] = ()
    disagree: bool = False
    overridden: bool = False
    cut: bool = False
    mismatch: bool = False
    order: Order = "run"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample as a list shows it; ``answer`` is how the visible answer begins, on one line, or the error.

    ``overridden``: a person gave it another label; ``disputed``: two judges label it differently.
    """

    ordinal: int
    id: str
    condition: str
    fate: Fate
    label: str | None
    overridden: bool
    disputed: bool
    answer: str


class Samples(Verdicts):
    """The part of a run's store that chooses samples to look at."""

    def sample_ordinals(self, wanted: SampleFilter) -> list[int]:
        """The ordinals of the samples that fit, in the filter's order."""
        values: dict[str, Any] = {}
        sql = f"SELECT s.ordinal FROM {self._joined(wanted, values)} WHERE {self._where(wanted, values)}"
        self._teach_folding()
        return [row[0] for row in self._rows(f"{sql} ORDER BY {ORDERS[wanted.order]}", values)]

    def sample_rows(self, ordinals: Sequence[int], judges: Sequence[str] = ()) -> list[SampleRow]:
        """The rows of these samples, in the order given, with the labels of the first of ``judges`` that has judged."""
        wanted, values = SampleFilter(judges=tuple(judges)), dict[str, Any]()
        joined = self._joined(wanted, values, rows=True)
        values["ordinals"] = json.dumps(list(ordinals))
        found = {
            row[0]: _row(row)
            for row in self._rows(
                f"SELECT s.ordinal, s.id, s.condition, {self._fate(wanted, values)}, {_said(wanted, 'label')},"
                f" {_overridden('g.id')}, {_LABELS_DIFFER},"
                " substr(CASE WHEN g.finish_reason = 'error' THEN coalesce(g.error, '') ELSE coalesce(g.text, '') END, 1, 20000)"
                f" FROM {joined} WHERE s.ordinal IN (SELECT value FROM json_each(:ordinals))",
                values,
            )
        }
        return [found[ordinal] for ordinal in ordinals if ordinal in found]

    def siblings(self, ordinal: int, judges: Sequence[str] = ()) -> list[SampleRow]:
        """The rows of all samples of one's example, itself included, in the run's order."""
        rows = self._rows(
            'SELECT o.ordinal FROM sample s JOIN sample o ON o."group" = s."group" WHERE s.ordinal = ? ORDER BY o.ordinal',
            (ordinal,),
        )
        return self.sample_rows([row[0] for row in rows], judges)

    def strata(self) -> dict[str, list[str]]:
        """The strata there are: key to its values, both sorted."""
        found: dict[str, list[str]] = {}
        for key, value in self._rows(
            "SELECT DISTINCT e.key, e.value FROM (SELECT DISTINCT strata FROM sample) s, json_each(s.strata) e ORDER BY 1, 2"
        ):
            found.setdefault(shown(key), []).append(shown(value))
        return found

    # --- the parts of a query: s is the sample, g its answer, v0, v1 ... what the judges said of it -----------------

    def _joined(self, wanted: SampleFilter, values: dict[str, Any], *, rows: bool = False) -> str:
        """The tables that the filter looks at, or that rows are made of."""
        sql = "sample s"
        labels = rows or bool(wanted.labels or wanted.fates or wanted.mismatch)
        if labels or wanted.disagree or wanted.overridden or wanted.cut or wanted.order != "run":
            sql += (
                " LEFT JOIN generation g ON g.instance = s.ordinal AND g.accepted AND NOT EXISTS (SELECT 1"
                " FROM generation later WHERE later.instance = s.ordinal AND later.accepted AND later.step > g.step)"
            )
        for number, judge in enumerate(wanted.judges if labels else ()):
            values[f"judge{number}"] = judge
            sql += (
                f" LEFT JOIN verdict v{number} INDEXED BY accepted_label ON v{number}.generation = g.id"
                f" AND v{number}.judge = :judge{number} AND v{number}.accepted"
            )
        return sql

    def _where(self, wanted: SampleFilter, values: dict[str, Any]) -> str:
        parts = ["1"]
        if wanted.conditions:
            parts.append(f"s.condition IN {_list(wanted.conditions, 'condition', values)}")
        for number, key in enumerate(dict.fromkeys(key for key, _ in wanted.strata)):
            values[f"key{number}"] = key
            alternatives = [value for other, value in wanted.strata if other == key]
            parts.append(
                f"EXISTS (SELECT 1 FROM json_each(s.strata) e WHERE e.key = :key{number}"
                f" AND e.value IN {_list(alternatives, f'stratum{number}_', values)})"
            )
        if wanted.labels:
            parts.append(f"{_said(wanted, 'label')} IN {_list(wanted.labels, 'label', values)}")
        if wanted.fates:
            parts.append(f"{self._fate(wanted, values)} IN {_list(wanted.fates, 'fate', values)}")
        if wanted.disagree:
            parts.append(_disputed(wanted, values))
        if wanted.mismatch:
            parts.append(f"({_disputed(wanted, values)} OR {self._fate(wanted, values)} = 'wrong')")
        if wanted.overridden:
            parts.append(_overridden("g.id"))
        if wanted.cut:
            parts.append("g.finish_reason = 'length'")
        for number, word in enumerate(wanted.words):
            parts.append(_contains(word, f"word{number}", values))
        return " AND ".join(parts)

    def _fate(self, wanted: SampleFilter, values: dict[str, Any]) -> str:
        if not wanted.judges:
            judged = "'pending'"
        else:
            says: dict[str, Sequence[str]] = self.meta("correct", {})
            pairs = [(condition, label) for condition, labels in says.items() for label in labels]
            places = []
            for number, (condition, label) in enumerate(pairs):
                values[f"right_c{number}"], values[f"right_l{number}"] = condition, label
                places.append(f"(:right_c{number}, :right_l{number})")
            right = f"(s.condition, {_said(wanted, 'label')}) IN (VALUES {', '.join(places)})" if places else "0"
            status = _said(wanted, "status")
            judged = (
                f"CASE WHEN {status} IS NULL THEN 'pending' WHEN {status} != 'labelled' THEN {status}"
                f" WHEN {right} THEN 'right' ELSE 'wrong' END"
            )
        return f"CASE WHEN g.id IS NULL THEN 'pending' WHEN g.finish_reason = 'error' THEN 'error' ELSE {judged} END"

    def _teach_folding(self) -> None:
        self._db.create_function("folded_has", 2, _folded_has, deterministic=True)


def _said(wanted: SampleFilter, what: str) -> str:
    """The label or the status by the first judge that has a verdict."""
    sql = "NULL"
    for number in reversed(range(len(wanted.judges))):
        sql = f"CASE WHEN v{number}.id IS NULL THEN {sql} ELSE v{number}.{what} END"
    return sql


def _disputed(wanted: SampleFilter, values: dict[str, Any]) -> str:
    whose = _NO_OVERRIDE.format("")
    if wanted.disputing:
        whose = f"judge IN {_list(wanted.disputing, 'disputing', values)}"
    return (
        f"g.id IN (SELECT generation FROM verdict INDEXED BY accepted_label WHERE accepted AND status = 'labelled' AND {whose}"
        " GROUP BY generation HAVING min(label) != max(label))"
    )


def _overridden(generation: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM verdict o WHERE o.generation = {generation} AND o.accepted"
        f" AND substr(o.judge, 1, {len(OVERRIDE)}) = '{OVERRIDE}')"
    )


def _contains(word: str, name: str, values: dict[str, Any]) -> str:
    """Whether ``word`` occurs. SQLite folds A to Z alone; for other letters Python is asked, which takes longer."""
    if word.isascii():
        values[name] = word.lower()
        has = f"instr(lower({{}}), :{name})"
    else:
        values[name] = word.casefold()
        has = f"folded_has(CAST({{}} AS BLOB), :{name})"
    answers = (
        f"EXISTS (SELECT 1 FROM generation t WHERE t.instance = s.ordinal AND t.accepted AND {has.format('t.text')})"
    )
    return f"({has.format('s.id')} OR {has.format('s.question')} OR {answers})"


def _folded_has(text: bytes, word: str) -> bool:
    return word in text.decode("utf-8", "replace").casefold()


def _list(words: Sequence[str], name: str, values: dict[str, Any]) -> str:
    for number, word in enumerate(words):
        values[f"{name}{number}"] = word
    return f"({', '.join(f':{name}{number}' for number in range(len(words)))})"


def _row(row: Sequence[Any]) -> SampleRow:
    ordinal, name, condition, fate, label, overridden, disputed, answer = row
    return SampleRow(
        ordinal,
        shown(name),
        shown(condition),
        fate if fate in FATES else "pending",
        None if label is None else shown(label),
        bool(overridden),
        bool(disputed),
        _begin(shown(answer)),
    )


def shown(value: Any) -> str:
    """Return a stored value as text that can be shown, whatever it is: what is listed is not compared with digests."""
    return storable(value if isinstance(value, str) else str(value))


def _begin(text: str) -> str:
    return " ".join(visible_answer(text)[:HEAD].split())
