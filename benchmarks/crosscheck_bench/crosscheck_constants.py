"""Tasks, levels, capabilities and prompting strategies, under the names the paper gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["L1", "L2", "L3"]

LEVELS: Mapping[Level, str] = {"L1": "Perception", "L2": "Integration", "L3": "Reasoning"}
"""The three cognitive levels, as Table 1 heads its columns."""

CAPABILITIES: Mapping[str, str] = {
    "A1": "Spatial Anchoring",
    "A2": "Character Recognition",
    "A3": "Attribute Comparison",
    "A4": "Cross-modal Alignment",
    "A5": "Value Plausibility Estimation",
    "A6": "Region-Constrained OCR",
    "A7": "Rule Compliance Reasoning",
}
"""The atomic capabilities by their names in Table 7; the main text calls five of them something else (docs/crosscheck-bench.md).
"""


@dataclass(frozen=True, slots=True)
class Task:
    """One of the 15 subtasks: its abbreviation in Table 1, and its name and description in Tables 4 to 6.

    ``multi_frame`` is the paper's asterisk: several frames of one content. ``closed`` tasks have answers in Figure 8
    that are a letter or yes/no and are scored by exact match; open tasks ask for a text.
    """

    key: str
    name: str
    description: str
    level: Level
    capabilities: tuple[str, ...]
    multi_frame: bool = False
    closed: bool = True


_TASKS = (
    Task("LD", "LogoDiff", "Logo detail comparison", "L1", ("A3",)),
    Task("BR", "BrandRecognition", "Product brand recognition", "L1", ("A2",), closed=False),
    Task("PMP", "ProductMainPart", "Product main-part localisation", "L1", ("A1",)),
    Task("PMO", "ProductMainPartOCR", "Main-part OCR", "L1", ("A6",)),
    Task("PD*", "ProductDiff*", "Cross-frame product match", "L1", ("A4",), multi_frame=True),
    Task("SP", "StylePrice", "Style price recognition", "L1", ("A5",)),
    Task("BR*", "BrandRecognition*", "Content brand recognition", "L2", ("A2", "A4"), multi_frame=True, closed=False),
    Task("SPU", "SPU", "Same-style SPU match", "L2", ("A1", "A3")),
    Task("SKU", "SKU", "Same-style SKU match", "L2", ("A1", "A3", "A5")),
    Task("BDC", "BrandCategory", "Brand operating category", "L2", ("A1", "A2", "A6")),
    Task("BC", "Brand-Circumvention", "Product logo occlusion", "L3", ("A1", "A6", "A7")),
    Task("BC*", "Brand-Circumvention*", "Content logo occlusion", "L3", ("A1", "A4", "A6", "A7"), multi_frame=True),
    Task("BI", "BrandIntent", "Brand intent (4-class)", "L3", ("A1", "A2", "A3", "A6", "A7")),
    Task("PI", "ProductIntent", "Product intent recognition", "L3", ("A1", "A2", "A6", "A7")),
    Task(
        "BI*",
        "BrandIntent*",
        "Content brand intent (4-class)",
        "L3",
        ("A1", "A2", "A3", "A4", "A6", "A7"),
        multi_frame=True,
    ),
)

TASKS: Mapping[str, Task] = {task.key: task for task in _TASKS}
"""The 15 tasks in the order of Table 1, by abbreviation."""

CONDITIONS = ("vanilla", "cot", "som", "cot+som", "mm-cot")
"""The prompting strategies of Table 3 and Figure 6 that need no training; Table 1 uses "vanilla"."""

WITHOUT_SOURCES = ("closed-book", "text-only", "image-only", "options-only")
"""The conditions that leave out pictures, text or question, and are compared with "vanilla". Ours."""

REASONING_CONDITIONS = ("cot", "cot+som", "mm-cot")
"""The strategies that ask for reasoning."""

MARKED_CONDITIONS = ("som", "cot+som", "mm-cot")
"""The strategies that draw boxes; a sample without boxes has no instance under them."""

LABELS = ("CORRECT", "INCORRECT")
"""The labels of an answer."""

LETTERS = "ABCDEFGHIJ"
"""The letters of a question's options."""

STATED = ("right", "wrong", "missed", "unparsed")
"""Outcomes of a value that the folder states: a model reads it, or another, or none, or its reply cannot be read."""
