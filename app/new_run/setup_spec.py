"""The spec of a paper's setup on this machine, without the models and conditions that cannot be had here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.run_plan import open_build
from app.new_run.run_choices import model_choice
from app.new_run.run_estimate import BuildContents
from app.papers.paper_setups import PREFIX, Setup
from app.run_spec import BatchSpec, RunSpec, parse_spec
from app.store.workspace import Workspace
from benchmarks.errors import ModelError, RashomonError
from mlx_backends.models.memory_and_cache_sizes import MemoryFit, memory_fit
from mlx_backends.models.model_catalog import catalog_entry
from mlx_backends.models.model_discovery import can_fetch
from mlx_backends.remote import readiness_problem

LeftOut = tuple[tuple[str, str], ...]
"""Names of models or conditions of a setup that a plan leaves out, each with the reason, a phrase."""


@dataclass(frozen=True, slots=True)
class SetupSpec:
    """The spec of a setup on this machine, with what it leaves out and a sentence on its judge."""

    spec: BatchSpec
    models_left_out: LeftOut
    conditions_left_out: LeftOut
    judge_sentence: str

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences for users on the judge, and on what is left out."""
        if self.judge_sentence:
            yield self.judge_sentence
        for kind, left_out in (("model", self.models_left_out), ("condition", self.conditions_left_out)):
            for name, reason in left_out:
                yield f"the {kind} {name} is left out: {reason}."


def setup_spec(workspace: Workspace, setup: Setup, overrides: Mapping[str, Any], *, force: bool) -> SetupSpec:
    """Return the spec of a setup with the ``overrides`` of the command line, without what cannot be had here.

    Only the setup's own models and conditions are left out: models that do not fit in memory, unless the user will ``force``
    them, and conditions that the build, or else the published data, do not have. Raises SpecError, and ModelError if no model
    fits.
    """
    label = f"{PREFIX}{setup.name}"
    api = parse_spec(setup.values, overrides, label).api.remote_options(workspace.replies)
    values, sentence = setup.with_judge({name: not readiness_problem([name], api) for name in setup.judges})
    spec = parse_spec(values, overrides, label)
    models, conditions = dict[str, str](), dict[str, str]()
    if "model" not in overrides and not force:
        models = {name: fit.sentence for name in spec.model if (fit := _fit(name)) is not None and not fit.ok}
        if len(models) == len(spec.model):
            raise ModelError(
                f"no model of {label} fits in the memory of this machine ({next(iter(models.values()))}); name another one "
                "with --model, or add --force."
            )
    if "conditions" not in overrides and spec.benchmark == setup.name:
        conditions = _missing_conditions(workspace, setup, spec)
    if models or conditions:
        rest = {
            "model": [name for name in spec.model if name not in models],
            "conditions": [name for name in spec.conditions if name not in conditions],
        }
        spec = parse_spec(values, {**overrides, **rest}, label)
    return SetupSpec(spec, tuple(models.items()), tuple(conditions.items()), "" if "judge" in overrides else sentence)


def _missing_conditions(workspace: Workspace, setup: Setup, spec: BatchSpec) -> dict[str, str]:
    run = spec.runs()[0]
    try:
        there = (
            BuildContents.read(open_build(workspace, run), run.prompts).conditions if is_built(workspace, run) else None
        )
    except RashomonError:  # reported when the data are planned
        return {}
    reason = "this build does not have it" if there is not None else "the published data do not have it"
    present = setup.published if there is None else there
    missing = {name: setup.not_published.get(name, reason) for name in spec.conditions if name not in present}
    return missing if len(missing) < len(spec.conditions) else {}


def is_built(workspace: Workspace, run: RunSpec) -> bool:
    """Return whether the data of a run are built, or named by the user."""
    return run.data is not None or workspace.build_folder(run.benchmark).exists()


def _fit(name: str) -> MemoryFit | None:
    """Return whether a model fits in this machine's memory; None if its size is not known here."""
    if can_fetch(name):
        entry = catalog_entry(name)
        return None if entry is None else memory_fit(entry.weights_bytes)
    weights = model_choice(name).weights_bytes
    return None if weights is None else memory_fit(weights)
