"""The part of a record that tables use: records that agree in it are of one kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from benchmarks.protocols.repeats import REPEAT
from benchmarks.text.answer_text import visible_answer
from benchmarks.varied_names import FACTOR_NAMES
from benchmarks.vocabulary import TRUST, FinishReason, Instance, Outcome, Pages, Record, Verdict, outcome_of


@dataclass(frozen=True, slots=True)
class InstanceKind:
    """The part of an instance that tables use, besides its example.

    Attributes:
        strata: Those of :attr:`Benchmark.table_strata`, "source", "trust", the levels of factors, and the number of the repeat.
        single_source: See :meth:`Benchmark.single_source`.
        choices: See :meth:`Benchmark.choices`.
    """

    condition: str
    strata: Mapping[str, str] = field(default_factory=dict)
    single_source: str = ""
    choices: int = 0

    @property
    def key(self) -> Hashable:
        """Equal for equal kinds."""
        return self.condition, tuple(self.strata.items()), self.single_source, self.choices


@dataclass(frozen=True, slots=True)
class AnswerKind:
    """The part of a record that tables use, besides its example. Records that agree in it are of one kind.

    Attributes:
        finish_reason: That of the answer; None if there is none yet.
        is_empty: True for an answer that is nothing but reasoning, or nothing at all.
        verdicts: The verdicts by judge, without reasons and replies.
        reading: The value of :meth:`Benchmark.reading`.
    """

    instance: InstanceKind
    finish_reason: FinishReason | None = None
    is_empty: bool = False
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    reading: Any = None

    @property
    def condition(self) -> str:
        """The condition of the instance."""
        return self.instance.condition

    @property
    def strata(self) -> Mapping[str, str]:
        """The strata of the instance that tables use."""
        return self.instance.strata

    @property
    def is_answered(self) -> bool:
        """True if there is an answer, and no error."""
        return self.finish_reason not in (None, "error")

    def outcome(self, judge: str) -> Outcome:
        """Return the outcome for ``judge``; see :meth:`Record.outcome`."""
        return outcome_of(self.finish_reason, self.verdicts.get(judge))

    def label(self, judge: str) -> str:
        """Return the label of ``judge``; the outcome must be "labelled"."""
        return str(self.verdicts[judge].label)

    def is_no_answer(self, judge: str) -> bool:
        """Return whether an answer is none in a decision: it has nothing to label, or ended at the limit of tokens."""
        outcome = self.outcome(judge)
        return outcome == "unparsed" or (self.finish_reason == "length" and outcome != "pending")


class TableReader(Protocol):
    """The part of a benchmark that says what its tables use of a record; see ``Benchmark``."""

    @property
    def table_strata(self) -> tuple[str, ...] | None: ...
    def single_source(self, instance: Instance) -> str: ...
    def reading(self, record: Record) -> Hashable: ...
    def options(self, instance: Instance) -> tuple[str, ...]: ...
    def choices(self, instance: Instance) -> int: ...
    def pages(self, instance: Instance) -> Pages: ...


def instance_kind(instance: Instance, benchmark: TableReader) -> InstanceKind:
    """Return what tables use of an instance."""
    names, strata = benchmark.table_strata, instance.strata
    if names is not None:
        strata = {name: strata[name] for name in ("source", TRUST, *names, *FACTOR_NAMES, REPEAT) if name in strata}
    return InstanceKind(instance.condition, strata, benchmark.single_source(instance), benchmark.choices(instance))


def kind_of(record: Record, benchmark: TableReader) -> AnswerKind:
    """Return what tables use of a record."""
    return key_and_kind(record, benchmark)[1]()


def key_and_kind(record: Record, benchmark: TableReader) -> tuple[Hashable, Callable[[], AnswerKind]]:
    """Return what tells kinds of records apart, and a function that makes the kind."""
    about = instance_kind(record.instance, benchmark)
    answer, reading = record.answer, benchmark.reading(record)
    finish_reason = None if answer is None else answer.finish_reason
    is_empty = answer is None or not visible_answer(answer.text)
    verdicts = {
        judge: replace(verdict, reason="", raw=None, calls=0, prompt_tokens=0, completion_tokens=0)
        for judge, verdict in record.verdicts.items()
    }
    key = (about.key, finish_reason, is_empty, tuple(verdicts.items()), reading)
    return key, lambda: AnswerKind(about, finish_reason, is_empty, verdicts, reading)
