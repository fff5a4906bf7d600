"""Sentences on policies: rules that answer without looking, and so floors for models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.report.tables.single_source_accuracy import join_names
from mlx_backends.policy_engine import policy_description


def policies_sentence(policies: Mapping[str, str]) -> str:
    """Return the sentence that policies, model names by label, are floors and no candidates; "" without any."""
    answers = {label: f" ({does})" if (does := policy_description(name)) else "" for label, name in policies.items()}
    if len(answers) == 1:
        ((label, does),) = answers.items()
        return f"{label} is a rule that answers without looking{does}: a floor that a model must beat, not a candidate."
    if answers:
        names = join_names([f"{label}{does}" for label, does in answers.items()])
        return f"{names} are rules that answer without looking: floors that a model must beat, not candidates."
    return ""


def given_values_sentence(policies: Sequence[str]) -> str:
    """Return the sentence that policies, by label, are given what a model must read; "" without any."""
    if not policies:
        return ""
    verb, are = ("looks", "it is") if len(policies) == 1 else ("look", "they are")
    return f'{join_names(policies)} {verb} at nothing: {are} given the values of the sources, so "reads" says nothing here.'
