"""Judges: what labels an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol

from benchmarks.errors import SpecError
from benchmarks.rubric import OFFICIAL
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.reasoning import read_reply
from benchmarks.vocabulary import Record, Verdict

ONLY_REASONING = "the answer is nothing but reasoning"
"""The reason of verdicts on answers without an answer; earlier runs have it, too."""

HUMAN = "human:"
"""The prefix of the name of a judge who is a person."""

OVERRIDE = "override:"
"""The prefix of the name of a person who corrects a judge's label, having seen it: no judge is measured by that."""


class Judge(ABC):
    """Labels the answer of a record. ``id`` names the judge and its version; verdicts are stored under it."""

    name: str
    version: str
    description: str
    conditions: tuple[str, ...] = ()
    """The conditions whose answers it labels; empty: all."""
    undecided_by: str = ""
    """The id of the judge for whose undecided answers alone it is asked; empty: for every answer."""
    caveat: str = ""
    """A warning for whoever reads metrics by this judge; it stands under every table."""
    method: str = ""
    """The rule that it shares with other judges, under some conditions at least; they count as one where judges are counted.
    Empty: it shares none."""

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    def empty(self, text: str) -> Verdict:
        """Return the verdict on an answer in which there is nothing to label: ``text`` is empty, or nothing but reasoning."""
        reason = "the answer is nothing but control tokens" if text.strip() else "the answer is empty"
        return Verdict(self.id, "unparsed", reason=ONLY_REASONING if read_reply(text).reasons else reason)


class FunctionJudge(Judge):
    """A judge that is a pure function of the record; it runs beside the answers, in the same transaction.

    ``benchmarks`` names those whose answers it labels.
    """

    benchmarks: tuple[str, ...]

    def prepare(self) -> None:
        """Do at once what would delay the first verdict, such as compiling patterns. It may be called in another thread."""

    @abstractmethod
    def judge(self, record: Record) -> Verdict:
        """Return the verdict on ``record.answer``, which is there and is not an error."""


class AnswerJudge(FunctionJudge):
    """A judge of what an answer displays; one that is empty, or nothing but reasoning, is unparsed."""

    def judge(self, record: Record) -> Verdict:
        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        return self.label_answer(answer, record) if answer else self.empty(text)

    @abstractmethod
    def label_answer(self, answer: str, record: Record) -> Verdict:
        """Return the verdict on ``answer``, which is not empty: what ``record.answer`` displays."""


class OwnJudge(Protocol):
    """A judge of one's own in a few lines: a class with these attributes, a constructor without arguments and this method."""

    @property
    def name(self) -> str:
        """The name by which commands and tables know it."""

    @property
    def version(self) -> str:
        """The version, to be raised when it labels differently: labels are stored by version, so earlier ones stay."""

    @property
    def benchmarks(self) -> Sequence[str]:
        """The names of the benchmarks whose answers it labels."""

    def label(self, record: Record) -> str | None:
        """Return one of the benchmark's labels for ``record.answer``, or None if there is nothing to label."""


class AdaptedJudge(FunctionJudge):
    """An :class:`OwnJudge` as the judge that runs use."""

    def __init__(self, own: OwnJudge) -> None:
        self.own = own
        benchmarks = own.benchmarks
        self.name, self.version = own.name, str(own.version)
        self.benchmarks = (benchmarks,) if isinstance(benchmarks, str) else tuple(benchmarks)
        self.description = (own.__doc__ or str(own.name)).strip().partition("\n")[0]

    def judge(self, record: Record) -> Verdict:
        label = self.own.label(record)
        if label is None:
            return Verdict(self.id, "unparsed", reason="there is nothing to label")
        return Verdict(self.id, "labelled", label)


def as_function_judge(judge: FunctionJudge | OwnJudge) -> FunctionJudge:
    """Return ``judge`` itself, or an :class:`OwnJudge` adapted. Raises SpecError for an object that is neither."""
    if isinstance(judge, FunctionJudge):
        return judge
    if isinstance(judge, type):
        raise SpecError(f"{judge.__name__} is a class; pass a judge, such as {judge.__name__}().")
    missing = [name for name in ("name", "version", "benchmarks", "label") if not hasattr(judge, name)]
    if missing:
        raise SpecError(
            f"{type(judge).__name__} is no judge, because it lacks {', '.join(missing)}; docs/api.md shows one."
        )
    return AdaptedJudge(judge)


def newest(name: str, ids: Iterable[str]) -> str | None:
    """Return the newest of the ``ids`` that verdicts of the judge ``name`` are stored under; None where there is none.

    A model that judged with the prompt of the official code is another judge, which its id alone names.
    """
    # A model that was named by its folder judges under the folder's name.
    names = (name, name.rstrip("/").rpartition("/")[2]) if name.startswith("/") else (name,)
    versions = [judge for judge in ids if judge.rpartition("@")[0] in names and not _rubric(judge).endswith(OFFICIAL)]
    return max(versions, key=lambda judge: (len(judge), judge), default=None)


def newest_versions(ids: Iterable[str]) -> list[str]:
    """Return the ``ids`` without those of earlier versions of a judge; a model with two prompts is two judges."""
    versions: dict[tuple[str, str], str] = {}
    for judge in ids:
        key = judge.rpartition("@")[0] or judge, _rubric(judge)
        versions[key] = max(versions.get(key, judge), judge, key=lambda known: (len(known), known))
    return list(versions.values())


def _rubric(judge: str) -> str:
    """Return the name of the rubric in a judge's id; "" for a judge by rule."""
    return judge.rpartition("@")[2].rpartition("-")[0]
