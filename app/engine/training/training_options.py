"""The options of a training for people: groups, labels, hints and defaults, derived from the spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from app.engine.training.training_spec_and_recipes import RECIPES, TrainingSpec

ON, OFF = "on", "off"

_HINTS: Mapping[str, Mapping[str, str]] = {
    "Model and data": {
        "model": "ctrl+o lists fetched models",
        "data": "ctrl+o lists training sets",
        "recipe": " or ".join(RECIPES),
        "name": "letters from a to z, digits and . _ -",
    },
    "What is learnt": {
        "objective": "answer or orpo",
        "beta": "of orpo: weight of the preference",
        "epochs": "passes over the rows",
        "steps": "updates, instead of epochs",
        "batch_size": "rows of an update",
        "seed": "of adapter, rows and dropout",
    },
    "Adapter": {
        "rank": "of the adapter",
        "alpha": "scale, divided by the rank",
        "dropout": "of the adapter's inputs",
    },
    "Learning rate": {
        "learning_rate": "of AdamW",
        "schedule": "cosine, linear or constant",
        "warmup": "updates; below 1 a share of them",
        "rates": "auto, or rates to try: 1e-4,3e-4",
        "rate_updates": "updates of all trials together",
    },
    "Rows": {
        "max_length": "the most tokens of a row",
        "max_pixels": "scales larger images down",
        "skip_unusable": "on: leaves out rows it cannot use",
    },
    "Validation and checks": {
        "validation_share": "of the rows, if the set has none",
        "validation_rows": "the most rows of a validation",
        "validate_every": "updates between validations",
        "early_stopping": "off: goes on to the last update",
        "patience": "validations without a lower loss",
        "check_rows": "rows whose answers are checked",
        "check_every": "updates between checks of answers",
    },
    "Memory and disk": {
        "gradient_checkpointing": "off: faster, with more memory",
        "save_every": "updates between checkpoints",
    },
}
"""Groups of the spec's fields, each with a hint. A field without one is in the last group."""
_OTHERS = "More"
_DERIVED: Mapping[str, str] = {
    "recipe": "none",
    "name": "automatic",
    "steps": "of epochs",
    "rates": "no search",
    "rate_updates": "a quarter",
    "max_pixels": "none",
    "validation_rows": "all",
    "validate_every": "a twentieth",
    "save_every": "a twentieth",
    "check_every": "a tenth",
}
"""The values of empty fields whose default is None."""


@dataclass(frozen=True, slots=True)
class TrainingOption:
    """An option of ``rashomon train`` that decides a training.

    Attributes:
        key: The field of the spec.
        hint: A few words on its meaning; "" for a new one.
        default: The value of an empty field in words; "" for one that must be given.
        is_flag: True for one that is on or off.
    """

    key: str
    hint: str
    default: str
    is_flag: bool

    @property
    def name(self) -> str:
        """The option without its hyphens at the beginning."""
        return self.key.replace("_", "-")

    @property
    def label(self) -> str:
        """The option's words."""
        return self.key.replace("_", " ")

    def value(self, typed: str) -> Any:
        """Return a typed value as the spec takes it; one that is none is left as it is."""
        return {ON: True, OFF: False}.get(typed, typed) if self.is_flag else typed

    def argument(self, typed: str) -> str:
        """Return a typed value as an argument of the command; "" for the default of one that is only ever switched on."""
        if not self.is_flag:
            return f"--{self.name}={typed}"
        if typed == ON:
            return f"--{self.name}"
        return f"--no-{self.name}" if self.default == ON else ""


def option_groups() -> dict[str, list[TrainingOption]]:
    """Return every option by group; one that the spec got lately is in the last group."""
    fields = TrainingSpec.model_fields
    groups = {group: _options(hints.keys() & fields.keys(), hints) for group, hints in _HINTS.items()}
    others = fields.keys() - {option.key for options in groups.values() for option in options}
    return groups | ({_OTHERS: _options(others, {})} if others else {})


def _options(keys: Iterable[str], hints: Mapping[str, str]) -> list[TrainingOption]:
    names = [*hints, *TrainingSpec.model_fields]
    return [_option(key, TrainingSpec.model_fields[key], hints.get(key, "")) for key in sorted(keys, key=names.index)]


def _option(key: str, field: FieldInfo, hint: str) -> TrainingOption:
    is_flag = field.annotation is bool
    return TrainingOption(key, hint, "" if field.is_required() else default_text(key, field.default), is_flag)


def default_text(key: str, value: Any) -> str:
    """Return the value of an empty field in words."""
    if isinstance(value, bool):
        return ON if value else OFF
    if value is None:
        return _DERIVED.get(key, "derived")
    return f"{value:g}" if isinstance(value, float) else str(value)
