"""The settings of POPE, and the conditions without the image."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.vocabulary import CLOSED_BOOK

SETTINGS = ("random", "popular", "adversarial")
"""The samplings of the objects that are absent."""

WITHOUT_SOURCES: Mapping[str, tuple[str, ...]] = {f"{setting}-{CLOSED_BOOK}": (setting,) for setting in SETTINGS}
"""The conditions that leave out the image, with those that they are compared with. Ours."""
