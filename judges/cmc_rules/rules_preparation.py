"""Preparation of the rules beside a model's first answer: patterns, units and names of months take half a second to load."""

from __future__ import annotations

from threading import Lock

_PREPARING = Lock()
_EXAMPLE = "How many kg were sold on 5 May 2020, in % of 3 tons?"
"""A question that takes everything that is loaded when it is first needed."""


def prepare() -> None:
    """Load what a verdict needs. It may be called in another thread."""
    with _PREPARING:
        from judges.cmc_rules.decision_rules import decide

        decide("3 kg", _EXAMPLE, {"image": ("3 kg",), "text": ("4 kg",)}, cut_off=False)


def wait_until_prepared() -> None:
    """Return once no other thread prepares the rules, since both would load the same."""
    with _PREPARING:
        pass
