"""Answers that several runs on a question set have in common: those to the same questions about the same sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.packed_answers import PackedAnswers, PackedTexts
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.vocabulary import Instance, Media, digest, part_to_json

Mask = NDArray[np.bool_]

_LEAST_SHARED = 0.5
"""The share of a model's answers below which another one that shares no more is not compared with it."""


def on_common_answers(
    views: RunViews, measure: int, named: Sequence[bool]
) -> tuple[list[int], RunViews, list[RunView]]:
    """Return which of the ``named`` or other models are compared, their views on the answers that all have, and the policies'.

    The policies are behind the models in ``views``, and left out unless they have all of these answers.
    """
    used, common = _common_answers(views.runs[: len(named)], measure, named)
    measured = views.runs[measure]
    ids = measured.coded.ids.at(np.flatnonzero(common))
    policies = [view for view in views.runs[len(named) :] if _asked_too(view, measured)[common].all()]
    compared = tuple(_at(views.runs[i], ids) for i in used)
    return used, replace(views, runs=compared), [_at(view, ids) for view in policies]


def _common_answers(runs: Sequence[RunView], measure: int, named: Sequence[bool]) -> tuple[list[int], Mask]:
    """Return the places of the runs that are compared, and a mask of the answers of the run at ``measure`` that all share.

    A run that shares less than half of these answers is left out, unless it is ``named``; so is one that leaves none in common.
    The named ones come first, then the newest.
    """
    common, used = np.ones(len(runs[measure].coded), np.bool_), [measure]
    for i in sorted(range(len(runs)), key=lambda i: (not named[i], -i)):
        shared = _asked_too(runs[i], runs[measure])
        enough = named[i] or shared.sum() >= _LEAST_SHARED * len(shared)
        if i != measure and enough and (common & shared).any():
            common &= shared
            used.append(i)
    return sorted(used), common


def _asked_too(run: RunView, other: RunView) -> Mask:
    """Return a mask of the answers of ``other`` whose instance ``run`` was asked, too.

    Instances are the same if their prompts are; under other prompt settings, if they ask the same about the same sources.
    """
    places = run.coded.places(other.coded.ids)
    shared: Mask = places >= 0
    if prompt_settings(run) == prompt_settings(other):
        shared[shared] = run.coded.prompt[places[shared]] == other.coded.prompt[shared]
    else:
        ids = other.coded.ids.at(np.flatnonzero(shared))
        ours, theirs = (
            {name: _content(record.instance) for name, record in view.records(ids)} for view in (run, other)
        )
        shared[shared] = [name in ours and ours[name] == theirs.get(name) for name in ids]
    return shared


def prompt_settings(run: RunView) -> tuple[Any, Any]:
    """Return the prompt settings of a run."""
    return run.spec.get("prompt_set"), run.spec.get("prompt")


def _content(instance: Instance) -> str:
    """Return the digest of what an instance asks and displays, whatever the words of its prompt."""
    media = [part_to_json(part) for part in instance.parts if isinstance(part, Media)]
    references = {source: list(answers) for source, answers in instance.references.items()}
    return digest([instance.question, instance.condition, media, references])


def _at(run: RunView, ids: Sequence[str]) -> RunView:
    """Return a run with the answers to the instances ``ids`` alone."""
    coded = run.coded
    places = coded.places(ids)
    arrays = ("group", "condition", "outcome", "source", "prompt", "cut_off", "gives_right", "off_topic", "rule")
    chosen: PackedAnswers = replace(
        coded,
        ids=PackedTexts(coded.ids.at(places)),
        clusters=coded.clusters.at(places),
        **{name: getattr(coded, name)[places] for name in arrays},
    )
    return replace(run, answers=chosen, read=lambda numbers: run.read(places[list(numbers)].tolist()))
