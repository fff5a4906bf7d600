"""Three models of the catalog to run next: what fits in a memory at a prompt length, and why each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlx_backends.model_family_status import FamilyStatus, family_status
from mlx_backends.models.memory_and_cache_sizes import ANSWER_TOKENS, TEXT_TOKENS, peak_memory, required_memory
from mlx_backends.models.model_catalog import CatalogModel, catalog_models
from mlx_backends.models.model_types import type_problem
from mlx_backends.models.training_memory import gigabytes, row_tokens

_RECENT = 2  # half-years before the newest model's
_SHARE = 0.9  # of the memory; the rest is for other programs


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The size of a prompt: tokens of its text, and width and height of each image; ``name`` is a phrase for users."""

    text_tokens: int
    images: tuple[tuple[int, int], ...]
    name: str


TYPICAL = PromptSize(TEXT_TOKENS, ((2000, 2000),), f"{TEXT_TOKENS:,} tokens of text and an image of 4 megapixels")
"""A prompt larger than most, for which :func:`suggested_max_pixels` checks machines as well."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommended model: the bytes that it ``needs``, the status of its family, and a ``reason``, a phrase.

    ``is_exact`` is False where only the weights and an allowance count, because its configuration is unknown.
    """

    model: CatalogModel
    needs: int
    is_exact: bool
    family: FamilyStatus
    reason: str = ""

    @property
    def is_proven(self) -> bool:
        return self.family.status != "never tried"

    @property
    def facts(self) -> tuple[str, ...]:
        """Sentences for users: memory, family, licence, and how current the entry is."""
        model, whole = self.model, "" if self.is_exact else ", of which a request's part is a flat allowance"
        rows = f"; rows of {', '.join(model.benchmarks)}" if model.benchmarks else ""
        checked = f"checked on {model.checked}, not against the Hub" if model.checked else "from memory, not checked"
        return (
            f"download {gigabytes(model.weights_bytes)}; needs {gigabytes(self.needs)}{whole}",
            f"{self.family}{rows}",
            f"licence {model.licence or 'unknown'}; released {model.released or 'at an unknown date'}",
            f"size and id {checked}",
        )


def recommend_models(available: int, prompt: PromptSize = TYPICAL) -> tuple[Recommendation, ...]:
    """Return up to three models that answer ``prompt`` within nine tenths of ``available`` bytes: the first for results.

    The second is of another maker, and the third has at most half the parameters of the first. Models released more than a
    year before the newest half-year, of types that are not run, or with a caution are left out.
    """
    pool = [
        candidate for model in _recent_models() if (candidate := _candidate(model, prompt)).needs <= _SHARE * available
    ]
    first = _best(pool, "for results: the newest of the largest that fit", lightest=False)
    if first is None:
        return ()
    others = [item for item in pool if _maker(item) != _maker(first)]
    second = _best(others, "for comparison: another maker's", lightest=False)
    chosen = {item.model.base for item in (first, second) if item is not None}
    half = [
        item for item in pool if 2 * item.model.parameters <= first.model.parameters and item.model.base not in chosen
    ]
    third = _best(half, "for pilots: at most half as large, so faster", lightest=True)
    return tuple(item for item in (first, second, third) if item is not None)


def smallest_need(prompt: PromptSize = TYPICAL) -> int:
    """Return the bytes that the smallest recommended model needs, without the tenth for other programs."""
    return min(_candidate(model, prompt).needs for model in _recent_models())


def _recent_models() -> list[CatalogModel]:
    models = [
        model for model in catalog_models() if not model.caution and type_problem({"model_type": model.family}) is None
    ]
    newest = max(map(_half_year, models))
    return [model for model in models if _half_year(model) >= newest - _RECENT]


def _candidate(model: CatalogModel, prompt: PromptSize) -> Recommendation:
    family = family_status({"model_type": model.family}, model.id)
    if model.config is None:
        return Recommendation(model, required_memory(model.weights_bytes), False, family)
    row = row_tokens(model.config, prompt.text_tokens, 0, prompt.images)
    needs = peak_memory(
        model.config,
        model.weights_bytes,
        prompt_tokens=row.total,
        image_tokens=row.image,
        max_tokens=ANSWER_TOKENS,
    )
    return Recommendation(model, needs, True, family)


def _best(pool: Sequence[Recommendation], reason: str, *, lightest: bool) -> Recommendation | None:
    """Return the best of ``pool`` with its ``reason``; None if it is empty.

    Proven families come first. Sizes differ by doublings and ages by half-years; of equals, the one with more parameters,
    in its most precise quantisation, or its lightest.
    """
    if not pool:
        return None
    best = max(
        pool,
        key=lambda item: (
            item.is_proven,
            round(math.log2(item.model.parameters)),
            _half_year(item.model),
            item.model.parameters,
            -item.model.weights_bytes if lightest else item.model.weights_bytes,
        ),
    )
    return replace(best, reason=reason)


def _half_year(model: CatalogModel) -> int:
    """Return the half-year of the release as a number; 0 if unknown."""
    if model.released is None:
        return 0
    year, month = map(int, model.released.split("-"))
    return 2 * year + (month > 6)


def _maker(item: Recommendation) -> str:
    return item.model.base.partition("/")[0]
