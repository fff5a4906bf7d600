"""Judge: who labels an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module

from benchmarks.base import Record, Verdict, did_you_mean
from benchmarks.errors import SpecError


class Judge(ABC):
    """Labels the answer of a record. ``id`` names the judge and its version, as verdicts are kept under it."""

    name: str
    version: str
    description: str
    caveat: str = ""
    """What whoever reads figures made with it must know; it stands under every table."""

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"


class FunctionJudge(Judge):
    """A judge that is a pure function of the record; it runs beside the answers, in the same transaction.

    ``benchmarks`` names those whose answers it labels.
    """

    benchmarks: tuple[str, ...]

    @abstractmethod
    def judge(self, record: Record) -> Verdict:
        """The verdict on ``record.answer``, which is there and is not an error."""


def newest(name: str, ids: Iterable[str]) -> str | None:
    """Of the ids under which verdicts are kept, the newest version's of the judge called ``name``; None if there is none."""
    versions = [judge for judge in ids if judge.rpartition("@")[0] == name]
    return max(versions, key=lambda judge: (len(judge), judge), default=None)


_JUDGES = {
    "match": "judges.match:Match",
    "strict": "judges.matching:Strict",
    "relaxed": "judges.matching:Relaxed",
    "yes-no": "judges.yes_no:YesNo",
}


def judge_names() -> tuple[str, ...]:
    """The registered judges' names."""
    return tuple(_JUDGES)


def get_judge(name: str) -> Judge:
    """The judge called ``name``; imported only now. Raises SpecError with the nearest right name."""
    if name not in _JUDGES:
        raise SpecError(f"there is no judge {name!r}; {did_you_mean(name, _JUDGES)}")
    module, _, attribute = _JUDGES[name].partition(":")
    made: Judge = getattr(import_module(module), attribute)()
    return made
