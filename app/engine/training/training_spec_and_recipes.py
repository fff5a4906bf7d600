"""Specs of trainings and the recipes of the papers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from app.key_declarations import Flag, FolderPath
from app.run_spec import RunName, parse
from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError, did_you_mean
from mlx_backends.training_settings import Objective, Schedule, TrainingSettings

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "clash-llava": {
        "rank": 128,
        "alpha": 256.0,
        "dropout": 0.05,
        "max_length": 2048,
        "batch_size": 16,
        "learning_rate": 2e-5,
        "schedule": "cosine",
        "warmup": 0.03,
        "epochs": 1.0,
        "gradient_checkpointing": True,
    },
    "clash-mplug-owl": {
        "rank": 8,
        "alpha": 32.0,
        "dropout": 0.05,
        "max_length": 2048,
        "batch_size": 4,
        "learning_rate": 2e-5,
        "schedule": "cosine",
        "warmup": 50.0,
        "epochs": 1.0,
        "gradient_checkpointing": True,
    },
}
"""The hyperparameters of CLASH's Table 4, by column, with the epoch and the gradient checkpointing of its Appendix A.3."""

VALIDATION_ROWS = 200
"""The most rows of a validation, of a training whose spec does not say."""

RESUMED_WITH = ("data", "max_length", "save_every")
"""The settings that a resumed training may change: they decide nothing of the adapter."""

AUTO_RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
"""The learning rates that ``auto`` tries."""
_SEARCH_SHARE = 0.25
"""The share of a training's updates that a search for its learning rate has, if the spec does not say."""
_MOST_RATES = 20
_LEAST_TRIAL = 10
"""The fewest updates of the trial of a rate, if the spec does not say."""

_VALIDATIONS, _CHECKPOINTS, _CHECKS = 20, 20, 9
"""The numbers of validations, checkpoints and checks along the way of a training whose spec does not say."""
_CHECK_SHARE = 0.1
"""The share of a training's time that checks may take, if the spec does not say."""


class TrainingSpec(BaseModel):
    """Definition of a training: the same spec, data and weights give the same adapter on one kind of device.

    ``warmup`` below 1 is a share of the updates, else a number of them. ``steps`` take the place of ``epochs``. A validation has
    at most ``validation_rows``, all of them if that is None. With ``skip_unusable``, rows that are too long or cannot be read are
    left out; otherwise they are refused. The answers to about ``check_rows`` validation rows are generated and checked along the
    way. ``rates`` are learning rates to try for ``rate_updates`` updates together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    data: FolderPath
    recipe: str | None = None
    rank: Annotated[int, ranges.RANK] = 16
    alpha: Annotated[float, ranges.ALPHA] = 32.0
    dropout: Annotated[float, ranges.DROPOUT] = 0.0
    batch_size: Annotated[int, ranges.BATCH_SIZE] = 4
    objective: Objective = "answer"
    beta: Annotated[float, ranges.BETA] = 0.1
    learning_rate: Annotated[float, ranges.LEARNING_RATE] = 1e-4
    schedule: Schedule = "cosine"
    warmup: Annotated[float, ranges.WARMUP] = 0.03
    epochs: Annotated[float, ranges.EPOCHS] = 1.0
    steps: Annotated[int, ranges.STEPS] | None = None
    max_length: Annotated[int, ranges.MAX_LENGTH] = 2048
    max_pixels: Annotated[int, ranges.MAX_PIXELS] | None = None
    skip_unusable: Flag = False
    gradient_checkpointing: Flag = True
    validation_share: Annotated[float, ranges.VALIDATION_SHARE] = 0.1
    validation_rows: Annotated[int, ranges.ROWS] | None = VALIDATION_ROWS
    early_stopping: Flag = True
    patience: Annotated[int, ranges.PATIENCE] = 3
    rates: Literal["auto"] | tuple[float, ...] | None = None
    rate_updates: Annotated[int, ranges.STEPS] | None = None
    check_every: Annotated[int, ranges.INTERVAL] | None = None
    check_rows: Annotated[int, ranges.CHECK_ROWS] = 24
    validate_every: Annotated[int, ranges.INTERVAL] | None = None
    save_every: Annotated[int, ranges.INTERVAL] | None = None
    seed: Annotated[int, ranges.SEED] = 0
    name: RunName | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_recipe(cls, values: Any) -> Any:
        """Add the values of the recipe that are not given."""
        recipe = values.get("recipe") if isinstance(values, dict) else None
        return values if recipe is None else {**RECIPES.get(recipe, {}), **values}

    @field_validator("rates", mode="before")
    @classmethod
    def _typed_rates(cls, value: Any) -> Any:
        """Return rates as numbers, which a command line or a form separates by commas."""
        if value is None or value == "auto":
            return value
        texts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
        rates = [ranges.LEARNING_RATE.parse(text) if isinstance(text, str) else text for text in texts]
        if not 1 < len(set(rates)) <= _MOST_RATES or not all(map(ranges.LEARNING_RATE.holds, rates)):
            raise PydanticCustomError(
                "rates",
                f"write auto, or 2 to {_MOST_RATES} learning rates such as 1e-4,3e-4, each {ranges.LEARNING_RATE}",
            )
        return rates

    @property
    def tried_rates(self) -> tuple[float, ...]:
        """The learning rates to try; none where one is given."""
        rates = AUTO_RATES if self.rates == "auto" else self.rates or ()
        return tuple(sorted({float(rate) for rate in rates}))

    def settings(self, rows: int) -> TrainingSettings:
        """Return the settings for a number of rows to learn from."""
        per_epoch = -(-rows // self.batch_size)
        steps = self.steps or max(1, round(self.epochs * per_epoch))
        warmup = round(self.warmup * steps) if self.warmup < 1 else round(self.warmup)
        rates = self.tried_rates
        budget = self.rate_updates or max(_LEAST_TRIAL * len(rates), round(_SEARCH_SHARE * steps))
        derived = {
            "warmup": min(warmup, steps),
            "steps": steps,
            "patience": self.patience if self.early_stopping else None,
            "rates": rates,
            "rate_updates": max(1, budget // len(rates)) if rates else 0,
            "check_every": (self.check_every or self._check_every(steps)) if self.check_rows else 0,
            "validate_every": self.validate_every or max(1, steps // _VALIDATIONS),
            "save_every": self.save_every or max(1, steps // _CHECKPOINTS),
        }
        own = self.model_dump(include={field.name for field in fields(TrainingSettings)})
        return TrainingSettings(**{**own, **derived})

    def _check_every(self, steps: int) -> int:
        """Return the updates between checks: a tenth of all, and more in a short training, to keep the time that they take small.

        An answer takes about as long to generate as a row to learn from, and the base and the best adapter are checked anyway.
        """
        affordable = int(_CHECK_SHARE * steps * self.batch_size / self.check_rows) - 2
        return -(-steps // (1 + max(0, min(_CHECKS, affordable))))

    def identity(self) -> dict[str, Any]:
        """Return what decides the adapter; a training is not resumed with anything else."""
        unused = {"objective", "beta"} if self.objective == "answer" else set()
        unused |= set() if self.skip_unusable else {"skip_unusable"}
        unused |= set() if self.early_stopping else {"early_stopping", "patience"}
        unused |= set() if self.check_rows else {"check_every", "check_rows"}
        unused |= {"learning_rate"} if self.rates else {"rates", "rate_updates"}
        identity = self.model_dump(mode="json", exclude={"name", "recipe", *RESUMED_WITH, *unused})
        return identity | ({"max_length": self.max_length} if self.skip_unusable else {})


def plain_name(text: str, default: str, length: int) -> str:
    """Return a text as the beginning of a training's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:length] or default


def training_spec(values: Mapping[str, Any], *, context: str | None = None) -> TrainingSpec:
    """Return the spec of the command line's values; ``context`` is that of :func:`app.run_spec.parse`. Raises SpecError."""
    recipe = values.get("recipe")
    if recipe is not None and recipe not in RECIPES:
        raise SpecError(f"there is no recipe {recipe!r}; {did_you_mean(str(recipe), RECIPES)}")
    spec = parse(TrainingSpec, dict(values), "the command line", context=context)
    budget, tried = spec.rate_updates, len(spec.tried_rates)
    if context != ranges.STORED and budget is not None and budget < tried:  # one that was begun so goes on
        raise SpecError(f"a search with {tried} rates needs a budget of {tried} updates or more, not of {budget}.")
    return spec
