"""Conditions, limits and fields of retrieval logs."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.cmc_bench.cmc_constants import ACCURATE as CMC_ACCURATE
from benchmarks.cmc_bench.cmc_constants import CONFLICT_CONDITIONS as CMC_CONFLICTS
from benchmarks.cmc_bench.cmc_constants import PAPER_CONDITIONS
from benchmarks.source_agreement import UNDECIDED

CONDITIONS = (*PAPER_CONDITIONS, UNDECIDED, "image-only", "text-only")
CONFLICT_CONDITIONS = (*CMC_CONFLICTS, UNDECIDED)

ACCURATE: Mapping[str, frozenset[str]] = {**CMC_ACCURATE, UNDECIDED: frozenset({"BOTH", "ABSTAIN"})}
"""The accurate labels under each condition. Where nobody knows which source is right, an answer is accurate if it shows the
conflict: it gives both values, or neither as the answer."""

LONGEST_PASSAGE = 200_000
LONGEST_PASSAGES = 1_000_000
"""The maximum length of a passage, and of all passages of a question, in characters."""

MOST_PASSAGES = 100
MOST_IMAGES = 32
