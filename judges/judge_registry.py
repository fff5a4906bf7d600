"""Registry of judges: those by rule, those that other packages register as ``rashomon.judges``, and any model with a rubric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.plain import DATA_SETS
from benchmarks.plugins.find_plugins import PluginError, Registry
from benchmarks.registry import get_benchmark
from benchmarks.rubric import Rubric
from judges.base import HUMAN, OVERRIDE, AdaptedJudge, FunctionJudge, Judge, OwnJudge, as_function_judge
from judges.panel_judge import parse_panel
from judges.rubric_judge import RubricJudge

GROUP = "rashomon.judges"
"""The group of entry points: name to a class that derives from :class:`judges.base.FunctionJudge`, or is a
:class:`judges.base.OwnJudge`."""

BUILT_IN = {
    "match": "judges.cmc_rules:Match",
    "strict": "judges.clash_string_match_judge:Strict",
    "relaxed": "judges.clash_string_match_judge:Relaxed",
    "yes-no": "judges.yes_no_judge:YesNo",
    "own-answer": "judges.mmkc_own_answer_judge:OwnAnswer",
    "extracted": "judges.crosscheck_exact_match_judge:ExtractedMatch",
    "printed": "judges.crosscheck_exact_match_judge:PrintedMatch",
    "choice": "judges.contra4_scene_choice_judge:SceneChoice",
    "official": "judges.contra4_scene_choice_judge:OfficialSceneChoice",
    "vqa-accuracy": "judges.vqa_short_answer_judge:VqaAccuracy",
    "which-passage": "judges.which_passage_judge:WhichPassage",
    "gqa-match": "judges.vqa_short_answer_judge:GqaMatch",
    "premise": "judges.premise_judge:Premise",
}


def _accept(name: str, instance: Any) -> FunctionJudge:
    """Return a plugin's judge. Raises SpecError if it is none, or lacks what the list of judges shows."""
    kind, judge = type(instance).__name__, as_function_judge(instance)
    if judge.name != name:
        raise SpecError(f"{kind}.name is {judge.name!r}, not the name of its entry point")
    if not all(isinstance(getattr(judge, attribute, None), str) for attribute in ("version", "description")):
        raise SpecError(f"{kind}.version or {kind}.description is no text")
    benchmarks = getattr(judge, "benchmarks", None)
    if not isinstance(benchmarks, Sequence) or isinstance(benchmarks, str):
        raise SpecError(f"{kind}.benchmarks is no sequence of names")
    return judge


REGISTRY: Registry[FunctionJudge] = Registry(GROUP, BUILT_IN, _accept)


def judge_names() -> tuple[str, ...]:
    """Return the names of all judges that need no model, also of those whose package is broken."""
    return REGISTRY.names()


def working_judges() -> Iterator[FunctionJudge]:
    """Yield every judge by rule that can be used."""
    return REGISTRY.working()


def get_judge(name: str) -> FunctionJudge:
    """Return the judge by rule called ``name``, imported only now.

    Raises SpecError with the nearest right name, or with the reason why its package cannot be used.
    """
    judge = REGISTRY.get(name)
    if judge is None:
        raise SpecError(f"there is no judge {name!r}; {did_you_mean(name, judge_names())}")
    return judge


def usable_judge(name: str) -> FunctionJudge | None:
    """Return the judge by rule called ``name``; None if there is none, or its package is broken."""
    try:
        return REGISTRY.get(name)
    except PluginError:
        return None


def check_own_name(judge: FunctionJudge | OwnJudge) -> None:
    """Raise SpecError if a judge that is no registered one has the name of another, a model's or a person's."""
    own = type(judge)
    if not isinstance(judge.name, str) or not judge.name or re.search(r"[:@/]", judge.name):
        raise SpecError(f"{judge.name!r} cannot be a judge's name; give {own.__name__} one without ':', '@' and '/'.")
    registered = REGISTRY.get(judge.name)
    kind = type(registered.own if isinstance(registered, AdaptedJudge) else registered)
    if registered is not None and (kind.__module__, kind.__qualname__) != (own.__module__, own.__qualname__):
        raise SpecError(f"the name {judge.name!r} is that of another judge; give {own.__name__} another.")


def judging_members(names: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the judges to run for ``names``, and the one for whose undecided answers alone models are asked, if any.

    ``first(match, MODEL)`` is the one panel that judges: by rule, and by the model what that leaves undecided. Raises SpecError
    for any other.
    """
    members: list[str] = []
    undecided_by = None
    for name in names:
        panel = parse_panel(name)
        if panel is None:
            members.append(name)
            continue
        by_rule = [member in judge_names() for member in panel.members]
        if (
            panel.rule != "first"
            or by_rule[0] is False
            or any(by_rule[1:])
            or undecided_by not in (None, panel.members[0])
        ):
            raise SpecError(
                f"{name} judges nothing itself; name its members. Only first(RULE, MODEL) judges: by rule, and by the model what "
                "that leaves undecided."
            )
        undecided_by = panel.members[0]
        members += panel.members
    if undecided_by is not None and (
        others := [name for name in names if name not in judge_names() and not parse_panel(name)]
    ):
        raise SpecError(
            f"{others[0]} would judge only what {undecided_by} leaves undecided; give it a command of its own."
        )
    return list(dict.fromkeys(members)), undecided_by


def find_judges(
    names: Sequence[str], benchmark: Benchmark, undecided_by: str | None = None, official_code: Path | None = None
) -> list[Judge]:
    """Return the judges called ``names``; models judge only what the judge ``undecided_by`` leaves undecided, if there is one.

    With ``official_code``, the user's clone of it, models judge with its prompt. Raises SpecError and ModelError as
    :func:`find_judge` does, SourceError for another folder, SpecError if no model is among the judges.
    """
    rubric = None if official_code is None else benchmark.official_rubric(official_code)
    judges = [find_judge(name, benchmark, rubric) for name in names]
    if rubric is not None and not any(isinstance(judge, RubricJudge) for judge in judges):
        raise SpecError(f"{', '.join(names)} asks no model, so it has no prompt; leave --official-code out.")
    if undecided_by is not None:
        for judge in judges:
            if isinstance(judge, RubricJudge):
                judge.undecided_by = find_judge(undecided_by, benchmark).id
    return judges


def is_made_for(judge: FunctionJudge, benchmark: Benchmark) -> bool:
    """Return whether a judge by rule labels a benchmark's answers: either of them names the other."""
    return benchmark.name in judge.benchmarks or judge.name in benchmark.judges


def benchmarks_of(judge: FunctionJudge) -> tuple[str, ...]:
    """Return the names of the benchmarks that a judge by rule is made for."""
    naming = (name for name in DATA_SETS if judge.name in get_benchmark(name).judges)
    return tuple(dict.fromkeys((*judge.benchmarks, *naming)))


def find_judge(name: str, benchmark: Benchmark, rubric: Rubric | None = None) -> Judge:
    """Return the judge of ``benchmark``'s answers called ``name``: a registered one, or a model with ``rubric``.

    None stands for the benchmark's own rubric. Raises SpecError where there is none, ModelError for a model that is not there.
    """
    if name in judge_names():
        judge = get_judge(name)
        if not is_made_for(judge, benchmark):
            raise SpecError(f"the judge {name} is not made for {benchmark.name}; use {', '.join(benchmark.judges)}.")
        return judge
    if name.startswith(OVERRIDE):
        raise SpecError(f"{name} is a person; `rashomon override` takes a person's corrections of a judge's labels.")
    if name.startswith(HUMAN):
        raise SpecError(f"{name} is a person; `rashomon label` takes human labels.")
    from mlx_backends.engine_registry import describe, looks_like_model, refusal

    if not looks_like_model(name):
        raise SpecError(
            f"there is no judge {name!r}; {did_you_mean(name, benchmark.judges)} A model judges by its name or folder."
        )
    rubric = rubric or benchmark.rubric
    if rubric is None:
        raise SpecError(
            f"{benchmark.name} has no rubric for a judge that is a model; use {', '.join(benchmark.judges)}."
        )
    info = describe(name)
    if info.engine in ("policy", "ocr") or refusal(name):
        raise SpecError(
            f"{name} cannot judge, because it reads no answers; use a model or {', '.join(benchmark.judges)}."
        )
    return RubricJudge(name.rstrip("/"), info, rubric)
