"""Judge: who labels an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module

from benchmarks.base import Benchmark, Record, Verdict, did_you_mean
from benchmarks.errors import SpecError

HUMAN = "human:"
"""What the name of a judge who is a person begins with."""

OVERRIDE = "override:"
"""What the name of a person begins with who sees a judge's label and gives another: no judge is measured by that."""


class Judge(ABC):
    """Labels the answer of a record. ``id`` names the judge and its version, as verdicts are kept under it."""

    name: str
    version: str
    description: str
    conditions: tuple[str, ...] = ()
    """The conditions whose answers it labels; empty: all."""
    caveat: str = ""
    """What whoever reads figures made with it must know; it stands under every table."""

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    def empty(self, text: str) -> Verdict:
        """The verdict on an answer in which there is nothing to label: ``text`` is empty, or nothing but reasoning."""
        reason = "the answer is nothing but reasoning" if text.strip() else "the answer is empty"
        return Verdict(self.id, "unparsed", reason=reason)


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
    # A model that was named by its folder judges under the folder's name.
    names = (name, name.rstrip("/").rpartition("/")[2]) if name.startswith("/") else (name,)
    versions = [judge for judge in ids if judge.rpartition("@")[0] in names]
    return max(versions, key=lambda judge: (len(judge), judge), default=None)


_JUDGES = {
    "match": "judges.cmc_rules:Match",
    "strict": "judges.string_match:Strict",
    "relaxed": "judges.string_match:Relaxed",
    "yes-no": "judges.yes_no:YesNo",
    "own-answer": "judges.own_answer:OwnAnswer",
    "extracted": "judges.exact_match:ExtractedMatch",
    "printed": "judges.exact_match:PrintedMatch",
    "choice": "judges.scene_choice:SceneChoice",
    "official": "judges.scene_choice:OfficialSceneChoice",
}


def judge_names() -> tuple[str, ...]:
    """The registered judges, which need no model."""
    return tuple(_JUDGES)


def get_judge(name: str) -> FunctionJudge:
    """The judge called ``name`` that needs no model; imported only now. Raises SpecError with the nearest right name."""
    if name not in _JUDGES:
        raise SpecError(f"there is no judge {name!r}; {did_you_mean(name, _JUDGES)}")
    module, _, attribute = _JUDGES[name].partition(":")
    made: FunctionJudge = getattr(import_module(module), attribute)()
    return made


def find_judge(name: str, benchmark: Benchmark) -> Judge:
    """The judge of ``benchmark``'s answers called ``name``: one of the registered, or any model with the benchmark's rubric.

    Raises SpecError where there is none, and ModelError for a model that is not there.
    """
    if name in _JUDGES:
        judge = get_judge(name)
        if benchmark.name not in judge.benchmarks:
            raise SpecError(f"the judge {name} is not made for {benchmark.name}; use {', '.join(benchmark.judges)}.")
        return judge
    if name.startswith(OVERRIDE):
        raise SpecError(f"{name} is a person: `rashomon override` takes what people say of a judge's labels.")
    if name.startswith(HUMAN):
        raise SpecError(f"{name} is a person: `rashomon label` takes people's labels.")
    from mlx_backends.registry import describe, looks_like_model

    if not looks_like_model(name):
        raise SpecError(
            f"there is no judge {name!r}; {did_you_mean(name, benchmark.judges)} A model judges by its name or folder."
        )
    if benchmark.rubric is None:
        raise SpecError(
            f"{benchmark.name} has no rubric for a judge that is a model; use {', '.join(benchmark.judges)}."
        )
    from judges.rubric import RubricJudge

    info = describe(name)
    if info.engine in ("policy", "imported"):
        raise SpecError(f"{name} cannot judge, it reads nothing; use a model or {', '.join(benchmark.judges)}.")
    return RubricJudge(name.rstrip("/"), info, benchmark.rubric)
