"""The declaration of a plain data set: its columns, prompts, labels, metrics and origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.base import AbstentionRule, Benchmark, DataSource
from benchmarks.rows.reader_types import Fields
from benchmarks.vocabulary import CLOSED_BOOK

if TYPE_CHECKING:
    from benchmarks.rows.files import RawRow

CONFLICT = "conflict"
SOURCE = "published"
"""The name of the one source of every plain data set: a file or a folder of its rows."""


class Declaration(Benchmark):
    """Published rows with an image, a question, and what the image and a text answer; one class attribute for each fact.

    By default a row is a conflict of two sources, asked with both of them and with each alone, and labelled by ``match``. A data
    set without a second source declares its own conditions, labels and judge.
    """

    columns: Mapping[str, tuple[str, ...]]
    """The columns that each row needs, by role: question, image, image_answer, text, text_answer, type.

    A role has one name for each known form of the data; the first that is there counts. A dot reaches into an object:
    ``context.icc``.
    """
    optional_columns: Mapping[str, tuple[str, ...]] = {}
    """Columns that a row need not have: the roles above, ``group`` (rows of one value are one example), ``document`` (rows of one
    value are not independent, as those of one image), and any that :meth:`template` reads. All of them are kept in the build."""
    image_files: tuple[str, ...] = ("{}",)
    """The files, beside the rows, that a name in the image's column stands for, with {} for the name; the first that is there
    counts."""
    prompts: Mapping[str, Mapping[str, str]]
    """Prompt set to condition to text, with {question}, {image} and {text}; double braces are braces."""
    states_values = True
    """False where a text poses a problem that has to be solved for its value, so that it need not state it."""
    right: str = "image"
    """The source that is right by construction: "image", "text", or "" where the data do not say."""
    types: tuple[str, ...]
    """The known conflict types. Another one is kept, as "unknown: NAME"."""
    metrics: Mapping[str, tuple[str, tuple[str, ...]]]
    """The paper's metrics under conflict: the label that is counted, and the labels among which it is."""
    own_metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    """The same for metrics that compare an answer under conflict with the model's own answers to each source alone, in the words
    of ``own_answers.OWN``. Each row must be an example of its own, without the role ``group``."""
    hub_id: str = ""
    """The id on the Hugging Face Hub; empty if it is not there."""
    hub_files: tuple[str, ...] = ()
    """The beginnings of the names of the files that are fetched from there."""
    amount: str = ""
    """The amount that is fetched, such as "the 229 test rows with their charts"."""

    conditions: tuple[str, ...] = (CONFLICT, "image-only", "text-only", CLOSED_BOOK)
    conflicts = (CONFLICT,)
    labels: tuple[str, ...] = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
    placeholders: tuple[str, ...] = ("question", "image", "text")
    without_sources: Mapping[str, tuple[str, ...]] = {CLOSED_BOOK: ("image-only", "text-only")}
    stratum = "type"
    table_strata: tuple[str, ...] = ("type",)
    """The strata that tables count by: the type, and further roles."""
    judges: tuple[str, ...] = ("match",)
    behaviours: Mapping[str, str] = {
        "IMAGE": "follows the image",
        "TEXT": "follows the text",
        "BOTH": "gives both",
        "NEITHER": "says what neither supports",
        "ABSTAIN": "abstains",
    }
    situations: Mapping[str, str] = {
        CONFLICT: "when image and text disagree",
        "image-only": "when it sees the image alone",
        "text-only": "when it sees the text alone",
        CLOSED_BOOK: "when it sees no source",
    }
    value_labels = frozenset({"IMAGE", "TEXT", "BOTH"})
    inventions = frozenset({"NEITHER"})
    abstention: AbstentionRule | None = AbstentionRule((CONFLICT,), (), {CONFLICT: frozenset({"ABSTAIN"})})

    @property
    def sources(self) -> tuple[DataSource, ...]:  # type: ignore[override]
        return (DataSource(SOURCE, self.amount, self.hub_id or None),)

    @property
    def has_text(self) -> bool:
        """True if each row has a text beside its image."""
        return "text" in self.columns

    def compared(self, answer: str) -> str:
        """Return the text of an answer that :attr:`own_metrics` compare, by the paper's rule; the answer itself by default."""
        return answer

    def answer_warning(self, row: Mapping[str, Any]) -> str:
        """Return a warning about the answer of a row that the build uses; "" for none, unless overridden."""
        return ""

    def condition(self, fields: Fields) -> str:
        """Return the condition of a row, whose fields are by role: a conflict, unless overridden."""
        return CONFLICT

    def examples(self, row: RawRow) -> Iterable[Fields]:
        """Return the fields of each example of a row, whose own fields are by role: those of the row, unless overridden.

        Raises RowProblem for a row that is left out.
        """
        return (row.fields,)
