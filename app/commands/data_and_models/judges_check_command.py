"""``rashomon judges check``: a judge's agreement with the labelled answers that ship with Rashomon."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from app.commands.terminal.confirm_addresses import confirm_addresses
from app.commands.terminal.spinner import counter
from app.engine.cached_text_models import LocalModelSlot, open_text_model
from app.engine.judge_examination import Examiner, Stopwatch
from app.exit_codes import DONE, FAILURES, EndedError
from app.json_output.json_envelope import print_json
from app.json_output.judging_json import (
    Disagreement,
    ExaminationPlan,
    HostileAnswers,
    JudgeExamination,
    OrderEffectJson,
)
from app.json_output.tables_json import estimate_json, table_json
from app.report.tables.table_rendering import print_table
from app.run_spec import ApiSpec, parse
from app.store.judge_checks import JudgeCheck, last_check, models_digest, save_check
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from judges.examination.examination_result import Examination
from judges.examination.labelled_answers import hostile_answers, labelled_set, set_digest
from judges.rubric_judge import RubricJudge
from mlx_backends.base import Backend, no_media
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.portable_model_names import without_folders
from mlx_backends.remote import check_all_ready, readiness_problem

_PROBE_REQUESTS = 32
_LONGEST = 100
"""The most characters of an answer that are printed."""

_NOTE = (
    "Language models wrote and labelled these answers. The result says how the judge does on such forms; it corrects no run, as "
    "a labelled random sample of that run does (`rashomon label`)."
)


def check_judge(
    workspace: Workspace,
    name: str,
    *,
    limit: int | None,
    dry_run: bool,
    api: Mapping[str, Any],
    force: bool,
    allowed: Sequence[str],
    as_json: bool,
) -> int:
    """Examine the judge or panel ``name`` and print the result; return 0. Raises EndedError if it gave no usable reply somewhere.

    Replies are cached, so that the same command resumes. Raises as :class:`Examiner`, and what loading a model raises.
    """
    answers, hostile = labelled_set()[:limit], hostile_answers()[:limit]
    examiner = Examiner(name, answers, hostile)
    models = models_digest(judge.identity() if isinstance(judge, RubricJudge) else None for judge in examiner.judges)
    # Another model may be behind a user's own server by now: a check that is complete is not repeated from the cache.
    scope = f"judges check after {last_check(examiner.id, models)}"
    options = replace(parse(ApiSpec, api, "the command line").remote_options(workspace.replies), scope=scope)
    names = [judge.model for judge in examiner.models]
    if dry_run:
        sentences, problem = tuple(_estimate(examiner, options)), readiness_problem(names, options)
        if as_json:
            print_json("judges check", ExaminationPlan(sentences=sentences, problem=problem), judge=examiner.id)
            return 0
        for sentence in sentences:
            print(clean(sentence))
        if problem:
            print(clean(f"not ready to judge: {problem}"), file=sys.stderr)
        return 0
    confirm_addresses(names, allowed)
    check_all_ready(names, options)
    for judge in examiner.models:
        workspace.make()
        _ask(examiner, judge, workspace, options, force=force)
    result = examiner.result()
    if as_json:
        print_json("judges check", _to_json(result), judge=without_folders(result.judge))
    else:
        _print(result)
    if not result.usage.errors:
        digest, labelled = set_digest(answers), result.outcomes["labelled"]
        save_check(JudgeCheck(result.judge, models, digest, time.time(), len(answers), labelled, result.right))
    if result.usage.errors:
        errors = count_of(result.usage.errors, "request")
        raise EndedError(
            FAILURES, f"{errors} got no reply, so the result is not recorded; the same command repeats them."
        )
    if result.failed:
        raise EndedError(FAILURES, f"the judge gave no usable reply to {count_of(result.failed, 'answer')}.")
    return DONE


def _estimate(examiner: Examiner, options: RemoteOptions) -> Iterator[str]:
    """Yield the number of answers, and what each model would take."""
    from mlx_backends.remote.api_budget import estimate_usage

    yield f"{without_folders(examiner.id)}: {len(examiner.answers)} answers"
    for judge in examiner.models:
        requests = examiner.requests(judge)
        remote = not judge.info.needs_device
        estimate = (
            estimate_usage(((request, 0) for request in requests), options) if remote else f"{len(requests)} calls"
        )
        yield f"  {judge.id}: {estimate}"


def _ask(examiner: Examiner, judge: RubricJudge, workspace: Workspace, options: RemoteOptions, *, force: bool) -> None:
    """Have a model judge; its loading is not timed."""
    requests = examiner.requests(judge)
    stopwatch = Stopwatch()

    def load() -> Backend:
        backend = load_backend(judge.model, no_media, force=force, remote=options)
        if judge.info.needs_device:
            backend.use_sequential_mode()
            backend.choose_mode(requests[:_PROBE_REQUESTS])
        stopwatch.restart()
        return backend

    with ExitStack() as stack:
        device = LocalModelSlot(
            lambda holder: print(f"waiting for {clean(holder)}", file=sys.stderr), owner="rashomon judges check"
        )
        stack.callback(device.close)
        model = open_text_model(stack, judge.model, judge.info, load, device, workspace.replies)
        done = stack.enter_context(counter(len(requests), "labels"))
        examiner.ask(judge, model, done, stopwatch)


def _print(result: Examination) -> None:
    for line in result.lines():
        print(clean(line))
    print()
    for table in result.tables():
        print_table(table)
    labels = dict(zip((answer.id for answer in result.hostile), result.hostile_verdicts, strict=True))
    for answer in result.steered:
        text = answer.text if len(answer.text) <= _LONGEST else f"{answer.text[:_LONGEST]} ..."
        print(clean(f"steered by {answer.id} ({answer.form}): {labels[answer.id].label} for {answer.label}: {text!r}"))
    print(_NOTE)


def _to_json(result: Examination) -> JudgeExamination:
    order = result.order
    return JudgeExamination(
        sentences=tuple(result.lines()),
        answers=len(result.answers),
        outcomes=dict(result.outcomes),
        right=result.right,
        agreement=estimate_json(result.agreement),
        order=None
        if order is None
        else OrderEffectJson(
            judged=order.judged,
            changed=order.changed,
            to_first=order.to_first,
            to_second=order.to_second,
            image_first=estimate_json(order.image_first),
            text_first=estimate_json(order.text_first),
            preferred=order.preferred,
        ),
        hostile=HostileAnswers(answers=len(result.hostile), steered=tuple(answer.id for answer in result.steered)),
        usage=result.usage,
        recorded=not result.usage.errors,
        tables=tuple(map(table_json, result.tables())),
        disagreements=tuple(Disagreement(**disagreement) for disagreement in result.disagreements()),
        note=_NOTE,
    )
