"""Conditions, limits and fields of retrieval logs."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.cmc_bench.constants import ACCURATE as CMC_ACCURATE
from benchmarks.cmc_bench.constants import CONFLICT_CONDITIONS as CMC_CONFLICTS
from benchmarks.cmc_bench.constants import PAPER_CONDITIONS, UNDECIDED
from benchmarks.rows.base import DOCUMENT_COLUMNS
from benchmarks.vocabulary import TRUST

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

COLUMN_NAMES = {
    "question": ("question", "query"),
    "passages": ("passages", "passage", "texts", "contexts"),
    "images": ("images", "image", "pages", "page_images"),
    "answer": ("answer", "label", "gold"),
    "group": ("group", "subject"),
    "document": DOCUMENT_COLUMNS,
    "image_answer": ("image_answer",),
    "text_answer": ("text_answer",),
    TRUST: (TRUST,),
}
"""The keys of a log's lines, with their alternative names. The first three are required."""
