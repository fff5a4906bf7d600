"""The constants of the paper: conditions, labels, conflict types, subjects."""

from __future__ import annotations

from typing import Literal

from benchmarks.vocabulary import CLOSED_BOOK

ConflictType = Literal["factual", "temporal", "entity", "granularity"]

TYPES: tuple[ConflictType, ...] = ("factual", "temporal", "entity", "granularity")
"""The conflict types of section 3.1, in the paper's order."""

PAPER_CONDITIONS = ("aligned", "image-correct", "text-correct", "both-wrong")
CONFLICT_CONDITIONS = PAPER_CONDITIONS[1:]
CONDITIONS = (*PAPER_CONDITIONS, "image-only", "text-only")

ORIGIN, AS_FOUND, CONSTRUCTED = "origin", "as found", "constructed"
"""The stratum of a user's own rows in a build with conflicts that were found, and its values."""

FOUND = "conflicts as found"
"""The key of the number of examples that are conflicts as found, in a manifest's ``evidence``."""

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")

ACCURATE = {
    "aligned": frozenset({"IMAGE", "TEXT", "BOTH"}),
    "image-correct": frozenset({"IMAGE", "BOTH"}),
    "text-correct": frozenset({"TEXT", "BOTH"}),
    "both-wrong": frozenset({"NEITHER", "ABSTAIN"}),
    "image-only": frozenset({"IMAGE"}),
    "text-only": frozenset({"TEXT"}),
    CLOSED_BOOK: frozenset({"IMAGE", "TEXT", "BOTH"}),
}
"""The accurate labels under each condition (section 4.3); a single source is either read or not. Without any source, the right
value counts as what the image and the text of the aligned condition both say."""

SUBJECTS = ("Physics", "History", "Psychology", "Computer_Science", "Art", "Economics")
"""The six subject configurations of MMMU that the paper draws on."""

HUB_IDS = {"chartqa": "HuggingFaceM4/ChartQA", "mmmu": "MMMU/MMMU"}
"""The data sets of the Hub that hold the paper's two sources."""
