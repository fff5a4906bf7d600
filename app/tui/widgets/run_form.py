"""The form of a new run: its sections, with their tables and fields, and the estimate below them."""

from __future__ import annotations

from collections.abc import Collection

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.widgets import ContentSwitcher, Static

from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.field import Field
from app.tui.widgets.panel import panel
from app.tui.widgets.prompt_view import PromptView
from app.tui.widgets.table_columns import Column

SECTIONS = {
    "benchmark": ("Benchmark", ("benchmark", "data")),
    "models": ("Models", ("model",)),
    "scope": ("Scope", ("limit", "prompt_set", "conditions", "strata")),
    "sampling": (
        "Sampling",
        (
            "max_tokens",
            "temperature",
            "top_p",
            "seed",
            "max_pixels",
            "protocol",
            "samples",
            "repeats",
            "kv_bits",
            "score",
            "name",
            "restarts",
        ),
    ),
    "judges": ("Judges", ("judge", "cost_ceiling", "token_ceiling", "input_price", "output_price", "concurrency")),
    "preview": ("Prompt", ()),
}
"""The sections by id, with their titles and the keys of a spec that each of them sets."""

_SAMPLING = (
    ("max_tokens", "max new tokens", "of an answer"),
    ("temperature", "temperature", "0 is greedy"),
    ("top_p", "top p", "nucleus sampling"),
    ("seed", "seed", "for examples and sampling"),
    ("max_pixels", "max pixels", "larger images are scaled down"),
    ("protocol", "protocol", "verify, read-then-compare, …"),
    ("samples", "samples", "that vote, with self-consistency"),
    ("repeats", "repeats", "of every instance, with other seeds"),
    ("kv_bits", "kv bits", "8 or 4: quantises the key-value cache"),
    ("name", "name", "of the run"),
    ("restarts", "restarts", "of a worker that ran out of memory"),
)
_API = (
    ("cost_ceiling", "cost ceiling", "of each run and judge; needs the prices"),
    ("input_price", "input price", "of a million tokens"),
    ("output_price", "output price", "of a million tokens"),
    ("token_ceiling", "token ceiling", "of each run and judge"),
    ("concurrency", "concurrency", "simultaneous calls of remote models"),
)
DEFAULTS = {"limit": "all", "seed": "0", "name": "derived from spec", "restarts": "2", "max_pixels": "none"}
DEFAULTS |= {"protocol": "direct", "samples": "5", "repeats": "1", "kv_bits": "none", "concurrency": "8"}
DEFAULTS |= {"cost_ceiling": "none", "token_ceiling": "none"}
_READING = "◐ reading …"
_NO_BENCHMARK = "select a benchmark first"


def section_titles(problems: Collection[str], missing: Collection[str]) -> dict[str, str]:
    """Return the titles of the sections by id, marked where keys of theirs have ``problems`` or are ``missing``."""
    titles = {}
    for name, (title, keys) in SECTIONS.items():
        glyph = "✗ " if any(key in problems for key in keys) else "○ " if any(key in missing for key in keys) else ""
        titles[name] = f"{glyph}{title}"
    return titles


class RunForm(Container):
    """The form, one section of which is on display, and the estimate of its runs."""

    def __init__(self) -> None:
        super().__init__(id="form")

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="benchmark"):
            with Vertical(id="benchmark"):
                columns = (Column("benchmark", 17), Column("build", 0))
                yield panel(ChoiceTable(columns, single=True, empty=_READING, id="benchmarks"), "Benchmark")
                with panel(Vertical(id="build"), "Build"):
                    with VerticalScroll(can_focus=False):
                        yield Static(id="needs")
                    yield Field("data", "build folder", example="default: the workspace's build", long=True)
            with Vertical(id="models"):
                models = (
                    Column("model", 0, min_width=22, tail=0.5),
                    Column("quantisation", 0, min_width=24),
                    Column("size", 8, right=True),
                    Column("memory", 9),
                )
                yield panel(ChoiceTable(models, empty=_READING, id="model-table"), "Models")
                with panel(Vertical(id="another-model"), "This model"):
                    yield Static(id="model-table-detail", classes="detail")
                    yield Field("model", "another", example="folder, ORG/NAME, openai:NAME; Enter adds", long=True)
            with Vertical(id="scope"):
                with panel(Vertical(id="limits"), "Examples"):
                    yield Field("limit", "limit", "examples; each keeps its conditions", DEFAULTS["limit"])
                scope = (
                    Column("", 15),
                    Column("", 0, min_width=14, tail=0.5),
                    Column("instances", 9, right=True),
                    Column("", 0),
                )
                yield panel(ChoiceTable(scope, empty=_NO_BENCHMARK, id="scope-table"), "Prompts, conditions, strata")
                yield Static(id="scope-table-detail", classes="detail")
            with panel(VerticalScroll(id="sampling", can_focus=False), "Sampling"):
                for key, label, hint in _SAMPLING:
                    yield Field(key, label, hint, DEFAULTS.get(key, ""))
                ways = (Column("", 12), Column("", 0))
                yield ChoiceTable(ways, header=False, empty=_NO_BENCHMARK, id="sampling-table")
            with Vertical(id="judges"):
                judges = (Column("judge", 30, tail=0.5), Column("about", 0))
                yield panel(ChoiceTable(judges, empty=_NO_BENCHMARK, id="judge-table"), "Judges")
                yield Static(id="judge-table-detail", classes="detail")
                with panel(VerticalScroll(id="api", can_focus=False), "Another judge, and limits of remote models"):
                    yield Field("judge", "another judge", example="a model, openai:NAME; Enter adds it", long=True)
                    for key, label, hint in _API:
                        yield Field(key, label, hint, DEFAULTS.get(key, ""))
            yield panel(PromptView(id="preview"), "Prompt")
        with panel(VerticalScroll(id="estimate", can_focus=False), "Estimate"):
            yield Static(id="summary")

    def table(self, name: str) -> ChoiceTable:
        """Return a table by its id."""
        return self.query_one(f"#{name}", ChoiceTable)

    def fields(self) -> dict[str, Field]:
        """Return the fields by the keys of a spec that they set."""
        return {field.key: field for field in self.query(Field)}

    def typed_values(self) -> dict[str, str]:
        """Return the values of the fields that are not empty, by key."""
        return {field.key: field.value for field in self.query(Field) if field.value}
