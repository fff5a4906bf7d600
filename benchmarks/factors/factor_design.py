"""Designs: the factors of a varied build, and the cells in which every example is repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from benchmarks.errors import SourceError, SpecError
from benchmarks.factors.factor_levels import KINDS, Factor

MOST_CELLS = 4096
"""The most cells of a design. A larger one needs a fraction."""


@dataclass(frozen=True)
class Design:
    """Factors with the cells of a full or a fractional design; ``conditions`` restricts the instances, empty for all.

    A cell holds the number of the level of each factor.
    """

    factors: tuple[Factor, ...]
    cells: tuple[tuple[int, ...], ...]
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, factors: Sequence[Factor], *, cells: int | None = None, conditions: Sequence[str] = (), seed: int = 0
    ) -> Design:
        """Return the full design, or a fraction of ``cells`` cells. Raises SpecError where they cannot tell the factors apart."""
        from benchmarks.stats.fractional_factorial import fraction, full_design

        levels = [len(factor.levels) for factor in factors]
        total, needed = prod(levels), 1 + sum(count - 1 for count in levels)
        if cells is not None and not needed <= cells <= min(total, MOST_CELLS):
            raise SpecError(
                f"--cells {cells} does not fit: these factors need {needed} cells or more to tell their effects apart, and the "
                f"full design has {total:,}."
            )
        if cells is None and total > MOST_CELLS:
            raise SpecError(
                f"the full design has {total:,} cells, more than {MOST_CELLS:,}; name fewer levels, or a fraction with --cells."
            )
        chosen = full_design(levels) if cells is None else fraction(levels, cells, seed)
        return cls(tuple(factors), tuple(chosen), tuple(conditions))

    @property
    def full_cells(self) -> int:
        """The number of cells of the full design."""
        return prod(len(factor.levels) for factor in self.factors)

    def levels(self, cell: Sequence[int]) -> dict[str, str]:
        """Return the level of each factor in a cell."""
        return {factor.name: factor.levels[at] for factor, at in zip(self.factors, cell, strict=True)}

    @cached_property
    def all_levels(self) -> tuple[dict[str, str], ...]:
        """The levels of each cell."""
        return tuple(self.levels(cell) for cell in self.cells)

    def calls(self, has_image: bool, has_text: bool) -> int:
        """Return the number of cells that differ for an instance with or without an image and a passage."""
        present = {"image": has_image, "text": has_text, "both": has_image and has_text}
        places = [place for place, factor in enumerate(self.factors) if present[factor.kind.part]]
        return len({tuple(cell[place] for place in places) for cell in self.cells})

    def to_json(self) -> dict[str, Any]:
        """Return the design as JSON."""
        return {
            "factors": [{"name": factor.name, "levels": list(factor.levels)} for factor in self.factors],
            "cells": [list(cell) for cell in self.cells],
            "conditions": list(self.conditions),
        }

    @classmethod
    def from_json(cls, value: Any) -> Design:
        """Return the design of a build's manifest. Raises SourceError for anything that is no design."""
        try:
            factors = tuple(_factor(item) for item in value["factors"])
            cells = tuple(tuple(int(number) for number in cell) for cell in value["cells"])
            conditions = tuple(str(name) for name in value["conditions"])
            fits = all(
                len(cell) == len(factors)
                and all(0 <= number < len(factor.levels) for number, factor in zip(cell, factors, strict=True))
                for cell in cells
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SourceError(f"the design of this build is damaged ({error!r:.80}); make it again.") from error
        if not fits or not 0 < len(cells) <= MOST_CELLS:
            raise SourceError("the design of this build is damaged; make it again with `rashomon vary`.")
        return cls(factors, cells, conditions)


def _factor(value: Mapping[str, Any]) -> Factor:
    kind = KINDS[value["name"]]
    return Factor(value["name"], tuple(kind.parse(level) for level in value["levels"]))
