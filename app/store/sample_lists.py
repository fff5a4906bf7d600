"""Sample lists: the instances of a run that match a filter, and short rows to display them.

Matches are returned as ordinals, so that a list of 100,000 costs one number each, and rows are read a page at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from app.store.run_database import storable
from app.store.stored_verdicts import Verdicts
from benchmarks.answer_quality import is_cut_reasoning
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.reasoning import read_reply
from judges.base import OVERRIDE

SampleOutcome = Literal["right", "wrong", "unparsed", "undecided", "judge-failed", "error", "pending"]
"""The outcome of an instance by one judge: ``Record.outcome``, with right or wrong under the condition for a label."""

Order = Literal["run", "shortest", "longest", "slowest"]

SAMPLE_OUTCOMES: tuple[SampleOutcome, ...] = get_args(SampleOutcome)
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
QUESTION_HEAD = ANSWER_HEAD = 400
"""The numbers of characters of a question and of an answer that a row is made from."""


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """Filter for samples. An empty field matches everything; several values of a field are alternatives.

    Attributes:
        judges: The ids of the judges whose label counts; the first with a verdict.
        labels: Labels by these judges.
        outcomes: Outcomes by these judges.
        words: Words that must all occur in the id, the question or an accepted answer (reasoning included), in any case.
        disputing: The judges whose disagreement counts; if empty, all but overrides.
        disagree: Answers that two judges label differently.
        overridden: Answers whose label a person has overridden.
        truncated: Answers that ended at the token limit.
        mismatch: Answers that are wrong, or that judges disagree on.
    """

    judges: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    strata: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    outcomes: tuple[SampleOutcome, ...] = ()
    words: tuple[str, ...] = ()
    disputing: tuple[str, ...] = ()
    disagree: bool = False
    overridden: bool = False
    truncated: bool = False
    mismatch: bool = False
    order: Order = "run"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One row of a list of samples.

    Attributes:
        question: The start of the question on one line.
        overridden: Flag for a label that a person has overridden.
        disputed: Flag for an answer that two judges label differently.
        answer: The start of the visible answer on one line, or the error.
    """

    ordinal: int
    id: str
    condition: str
    question: str
    outcome: SampleOutcome
    label: str | None
    overridden: bool
    disputed: bool
    answer: str


class AnswerFacts(NamedTuple):
    """The answer to an instance without its text: outcome and label as in a :class:`SampleRow`, and what it took.

    Tokens and seconds are those of the last step; None and 0 where they are unknown.
    """

    ordinal: int
    outcome: SampleOutcome
    label: str | None
    overridden: bool
    disputed: bool
    truncated: bool
    tokens: int | None
    seconds: float


class Samples(Verdicts):
    """The part of a run's store that filters and lists samples."""

    def sample_keys(self) -> Iterator[tuple[int, str, str, str, str]]:
        """Yield (ordinal, id, group, condition, strata as JSON) of every sample, in order; nothing else may be read meanwhile."""
        return self._streamed('SELECT ordinal, id, "group", condition, strata FROM sample ORDER BY ordinal', ())

    def answer_facts(self, judges: Sequence[str], ordinals: Sequence[int] | None = None) -> Iterator[AnswerFacts]:
        """Yield the facts of all answers, or of those to ``ordinals``, by the first of ``judges`` that has judged.

        Nothing else may be read meanwhile.
        """
        criteria, values = SampleFilter(judges=tuple(judges)), dict[str, Any]()
        tables = self._tables_sql(criteria, values, rows=True)
        where = ""
        if ordinals is not None:
            values["ordinals"] = json.dumps(list(ordinals))
            where = " WHERE s.ordinal IN (SELECT value FROM json_each(:ordinals))"
        rows = self._streamed(
            f"SELECT s.ordinal, {self._outcome_sql(criteria, values)}, {_verdict_sql(criteria, 'label')},"
            f" {_overridden_sql('g.id')}, {_LABELS_DIFFER}, g.finish_reason = 'length', g.completion_tokens,"
            f" coalesce(g.prefill_s, 0) + coalesce(g.decode_s, 0) FROM {tables}{where}",
            values,
        )
        return map(AnswerFacts._make, rows)

    def sample_ordinals(self, criteria: SampleFilter) -> list[int]:
        """Return the ordinals of the samples that match, in the filter's order."""
        values: dict[str, Any] = {}
        sql = f"SELECT s.ordinal FROM {self._tables_sql(criteria, values)} WHERE {self._where_sql(criteria, values)}"
        self._register_folding()
        return [row[0] for row in self._rows(f"{sql} ORDER BY {ORDERS[criteria.order]}", values)]

    def sample_rows(self, ordinals: Sequence[int], judges: Sequence[str] = ()) -> list[SampleRow]:
        """Return the rows of these samples, in this order, with the labels of the first of ``judges`` that has judged."""
        criteria, values = SampleFilter(judges=tuple(judges)), dict[str, Any]()
        tables = self._tables_sql(criteria, values, rows=True)
        values["ordinals"] = json.dumps(list(ordinals))
        rows_by_ordinal = {
            row[0]: _row(row)
            for row in self._rows(
                f"SELECT s.ordinal, s.id, s.condition, substr(s.question, 1, {QUESTION_HEAD}),"
                f" {self._outcome_sql(criteria, values)}, {_verdict_sql(criteria, 'label')},"
                f" {_overridden_sql('g.id')}, {_LABELS_DIFFER},"
                " substr(CASE WHEN g.finish_reason = 'error' THEN coalesce(g.error, '') ELSE coalesce(g.text, '') END, 1, 20000)"
                f" FROM {tables} WHERE s.ordinal IN (SELECT value FROM json_each(:ordinals))",
                values,
            )
        }
        return [rows_by_ordinal[ordinal] for ordinal in ordinals if ordinal in rows_by_ordinal]

    def siblings(self, ordinal: int, judges: Sequence[str] = ()) -> list[SampleRow]:
        """Return the rows of all samples of the same example, in the run's order."""
        rows = self._rows(
            'SELECT o.ordinal FROM sample s JOIN sample o ON o."group" = s."group" WHERE s.ordinal = ? ORDER BY o.ordinal',
            (ordinal,),
        )
        return self.sample_rows([row[0] for row in rows], judges)

    def ends(self) -> tuple[str, int]:
        """Return the data source of the first instance, empty if it names none, and the id of the newest verdict."""
        rows = self._rows("SELECT json_extract(strata, '$.source') FROM sample ORDER BY ordinal LIMIT 1")
        ((newest,),) = self._rows("SELECT coalesce(max(id), 0) FROM verdict")
        return displayable(rows[0][0] or "") if rows else "", int(newest)

    def cut_reasoning(self) -> int:
        """Return the number of answers that ended at the limit of tokens within their reasoning."""
        rows = self._rows(
            "SELECT g.text, length(g.tokens) FROM generation g JOIN instance i ON i.ordinal = g.instance AND i.done"
            " WHERE g.accepted AND g.finish_reason = 'length' AND NOT EXISTS (SELECT 1 FROM generation l"
            " WHERE l.instance = g.instance AND l.accepted AND l.step > g.step)"
        )
        return sum(is_cut_reasoning(text or "", read_reply(text or ""), "length", stored or 0) for text, stored in rows)

    def strata(self) -> dict[str, list[str]]:
        """Return the strata: each key with its values, both sorted."""
        strata: dict[str, list[str]] = {}
        for key, value in self._rows(
            "SELECT DISTINCT e.key, e.value FROM (SELECT DISTINCT strata FROM sample) s, json_each(s.strata) e ORDER BY 1, 2"
        ):
            strata.setdefault(displayable(key), []).append(displayable(value))
        return strata

    # --- parts of a query: s is the sample, g its answer, v0, v1 ... the judges' verdicts on it ---------------------

    def _tables_sql(self, criteria: SampleFilter, values: dict[str, Any], *, rows: bool = False) -> str:
        """Return the joined tables that the filter, or a row, needs."""
        sql = "sample s"
        labels = rows or bool(criteria.labels or criteria.outcomes or criteria.mismatch)
        if labels or criteria.disagree or criteria.overridden or criteria.truncated or criteria.order != "run":
            sql += (
                " LEFT JOIN generation g ON g.instance = s.ordinal AND g.accepted AND NOT EXISTS (SELECT 1"
                " FROM generation later WHERE later.instance = s.ordinal AND later.accepted AND later.step > g.step)"
            )
        for number, judge in enumerate(criteria.judges if labels else ()):
            values[f"judge{number}"] = judge
            sql += (
                f" LEFT JOIN verdict v{number} INDEXED BY accepted_label ON v{number}.generation = g.id"
                f" AND v{number}.judge = :judge{number} AND v{number}.accepted"
            )
        return sql

    def _where_sql(self, criteria: SampleFilter, values: dict[str, Any]) -> str:
        parts = ["1"]
        if criteria.conditions:
            parts.append(f"s.condition IN {_list_sql(criteria.conditions, 'condition', values)}")
        for number, key in enumerate(dict.fromkeys(key for key, _ in criteria.strata)):
            values[f"key{number}"] = key
            alternatives = [value for other, value in criteria.strata if other == key]
            parts.append(
                f"EXISTS (SELECT 1 FROM json_each(s.strata) e WHERE e.key = :key{number}"
                f" AND e.value IN {_list_sql(alternatives, f'stratum{number}_', values)})"
            )
        if criteria.labels:
            parts.append(f"{_verdict_sql(criteria, 'label')} IN {_list_sql(criteria.labels, 'label', values)}")
        if criteria.outcomes:
            parts.append(f"{self._outcome_sql(criteria, values)} IN {_list_sql(criteria.outcomes, 'outcome', values)}")
        if criteria.disagree:
            parts.append(_disputed_sql(criteria, values))
        if criteria.mismatch:
            parts.append(f"({_disputed_sql(criteria, values)} OR {self._outcome_sql(criteria, values)} = 'wrong')")
        if criteria.overridden:
            parts.append(_overridden_sql("g.id"))
        if criteria.truncated:
            parts.append("g.finish_reason = 'length'")
        for number, word in enumerate(criteria.words):
            parts.append(_contains_sql(word, f"word{number}", values))
        return " AND ".join(parts)

    def _outcome_sql(self, criteria: SampleFilter, values: dict[str, Any]) -> str:
        if not criteria.judges:
            judged_sql = "'pending'"
        else:
            label, flags = (_verdict_sql(criteria, column) for column in ("label", "flags"))
            right_sql = self.right_sql("s.condition", label, flags, values)
            status = _verdict_sql(criteria, "status")
            judged_sql = (
                f"CASE WHEN {status} IS NULL THEN 'pending' WHEN {status} != 'labelled' THEN {status}"
                f" WHEN {right_sql} AND NOT {self._invents_sql(criteria, label, values)} THEN 'right' ELSE 'wrong' END"
            )
        return (
            f"CASE WHEN g.id IS NULL THEN 'pending' WHEN g.finish_reason = 'error' THEN 'error' ELSE {judged_sql} END"
        )

    def _invents_sql(self, criteria: SampleFilter, label: str, values: dict[str, Any]) -> str:
        """Return SQL that tests if an answer gives a value that no source has, and that is not known to be the right one."""
        try:
            inventions = sorted(get_benchmark(str(self.meta("spec", {}).get("benchmark", ""))).inventions)
        except SpecError:  # its package is not installed
            return "0"
        behaviour = self._lacking.get("behaviour") or _verdict_sql(criteria, "behaviour")
        return f"({label} IN {_list_sql(inventions, 'invention', values)} AND coalesce({behaviour}, '') != 'right')"

    def _register_folding(self) -> None:
        self._db.create_function("folded_has", 2, _folded_has, deterministic=True)


def _verdict_sql(criteria: SampleFilter, column: str) -> str:
    """Return SQL for a column of the verdict ("label" or "status") by the first judge that has one."""
    sql = "NULL"
    for number in reversed(range(len(criteria.judges))):
        sql = f"CASE WHEN v{number}.id IS NULL THEN {sql} ELSE v{number}.{column} END"
    return sql


def _disputed_sql(criteria: SampleFilter, values: dict[str, Any]) -> str:
    judges = _NO_OVERRIDE.format("")
    if criteria.disputing:
        judges = f"judge IN {_list_sql(criteria.disputing, 'disputing', values)}"
    return (
        f"g.id IN (SELECT generation FROM verdict INDEXED BY accepted_label WHERE accepted AND status = 'labelled' AND {judges}"
        " GROUP BY generation HAVING min(label) != max(label))"
    )


def _overridden_sql(generation: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM verdict o WHERE o.generation = {generation} AND o.accepted"
        f" AND substr(o.judge, 1, {len(OVERRIDE)}) = '{OVERRIDE}')"
    )


def _contains_sql(word: str, name: str, values: dict[str, Any]) -> str:
    """Return SQL that tests if ``word`` occurs. SQLite folds only A to Z; other letters are folded in Python, more slowly.

    SQLite's functions end a text at its first NUL, so U+FFFD stands for NUL, as in the table ``sample``.
    """
    word = word.replace("\0", "\ufffd")
    if word.isascii():
        values[name] = word.lower()
        template = f"instr(lower(replace({{}}, char(0), char(65533))), :{name})"
    else:
        values[name] = word.casefold()
        template = f"folded_has(CAST({{}} AS BLOB), :{name})"
    answers = f"EXISTS (SELECT 1 FROM generation t WHERE t.instance = s.ordinal AND t.accepted AND {template.format('t.text')})"
    return f"({template.format('s.id')} OR {template.format('s.question')} OR {answers})"


def _folded_has(text: bytes, word: str) -> bool:
    return word in text.decode("utf-8", "replace").replace("\0", "\ufffd").casefold()


def _list_sql(words: Sequence[str], name: str, values: dict[str, Any]) -> str:
    for number, word in enumerate(words):
        values[f"{name}{number}"] = word
    return f"({', '.join(f':{name}{number}' for number in range(len(words)))})"


def _row(row: Sequence[Any]) -> SampleRow:
    ordinal, name, condition, question, outcome, label, overridden, disputed, answer = row
    return SampleRow(
        ordinal,
        displayable(name),
        displayable(condition),
        " ".join(displayable(question).split()),
        outcome if outcome in SAMPLE_OUTCOMES else "pending",
        None if label is None else displayable(label),
        bool(overridden),
        bool(disputed),
        _answer_head(displayable(answer)),
    )


def displayable(value: Any) -> str:
    """Return a stored value of any type as text, since lists are read without a check of digests and types."""
    return storable(value if isinstance(value, str) else str(value))


def _answer_head(text: str) -> str:
    return " ".join(visible_answer(text)[:ANSWER_HEAD].split())
