"""Contents of a report: first page, setup, results, agreement with people, licences, limitations, and all tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from app.compare.runs.cost_tables import COSTS
from app.exports.export_input import ExportedRun
from app.exports.figures_export import export_figures
from app.exports.report.report_document import Block, Bullets, Facts, Paragraph, Plot, Report, Section
from app.exports.report.report_first_page import first_page
from app.exports.report.report_inputs import Evidence
from app.exports.report.report_limitations import limitations
from app.exports.report.report_one_page import fitted, short_names, with_short_names
from app.exports.report.report_verdict import few_names
from app.report.samples.sample_rows import prompt_text
from app.report.tables.judge_selection import caveat
from app.report.tables.latex_tables import without_commands, without_papers_number
from app.report.tables.single_source_accuracy import join_names
from app.text.text_escaping import size
from benchmarks.vocabulary import Cell, Table
from judges.base import HUMAN

_AGREEMENT = ("corrected", "agreement", "agreement-labels", "confusion", "fleiss")
"""The tables about people and other judges."""

_LONGEST_PROMPT = 1_500
_FIELD = re.compile(r"^\s+(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)

_METHODS = (
    ("Wilson", "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22."),
    ("Zou and Donner", "Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general "
     "approach. Statistics in Medicine 27."),
    ("Holm", "Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6."),
    ("Cohen", "Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20."),
)  # fmt: skip
"""Statistical methods, by the name under which the notes of tables mention them."""


def report_of(evidence: Evidence, title: str = "") -> Report:
    """Return the report; ``title`` replaces its automatic one."""
    sections = [
        Section("Setup", list(_setup(evidence))),
        Section("Results", list(_results(evidence))),
        Section("Agreement with people", list(_agreement(evidence))),
        Section("Limitations", list(_limitations(evidence))),
        Section("Licences", list(_licences(evidence))),
        Section("All tables", list(_other_tables(evidence)), appendix=True),
        Section("What was run", [evidence.export.runs_table()], appendix=True),
    ]
    sections = _edited(sections)
    names = [run.label for run in evidence.models] or [run.label for run in evidence.views.runs]
    short = short_names([run.label for run in evidence.views.runs])
    title = title or f"Evaluation of {few_names([short.get(name, name) for name in names])}"
    subtitle = _subtitle(evidence)
    return Report(
        title,
        subtitle,
        fitted(title, subtitle, with_short_names(first_page(evidence), short)),
        [section for section in sections if section.blocks],
        _references(evidence),
    )


def _edited(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with each note under its first table only, and without advice for a terminal.

    The titles of tables lose the paper's numbers, since a report numbers its own.
    """
    seen: set[str] = set()

    def shorten(block: Block | str) -> Block | str:
        if not isinstance(block, Table):
            return block
        notes = [note for note in without_commands(block.notes) if note not in seen]
        seen.update(notes)
        return replace(block, title=without_papers_number(block.title), notes=tuple(notes))

    return [replace(section, blocks=[shorten(block) for block in section.blocks]) for section in sections]


def _subtitle(evidence: Evidence) -> str:
    data = "own documents" if evidence.views.own_rows_only else evidence.benchmark.title.partition(":")[0]
    tested = f"Tested with {data}{_dates(evidence)}."
    return (
        f"What happens when sources disagree. {tested}"
        if evidence.benchmark.conflicts and not evidence.lacks_conflicts
        else tested
    )


def _dates(evidence: Evidence) -> str:
    if evidence.export.options.canonical:
        return ""
    days = [datetime.fromtimestamp(run.created, UTC) for run in evidence.export.runs]
    first, last = (f"{day:%d %B %Y}".removeprefix("0") for day in (min(days), max(days)))
    return f" on {last}" if first == last else f" from {first} to {last}"


# --- setup -----------------------------------------------------------------------------------------


def _setup(evidence: Evidence) -> Iterator[Block | str]:
    benchmark, runs = evidence.benchmark, evidence.export.runs
    yield Paragraph(f"The benchmark is {benchmark.title} ({benchmark.paper}). {benchmark.in_plain_words}")
    judge = f"{evidence.judge}{caveat(evidence.judge)}"
    sources = {kind.strata.get("source", "") for answers in evidence.answers.values() for kind in answers.kinds}
    facts = [
        ("Questions", _counts(evidence)),
        ("Conditions", _conditions(evidence)),
        ("Origin", _origin(sources, benchmark.rows_source) or "not recorded"),
        ("Prompt sets", ", ".join(dict.fromkeys(str(run.spec["prompt_set"]) for run in runs))),
        ("Decoding", _decoding(evidence)),
        ("Judge", f"{judge}. {evidence.inputs.checked}".strip()),
    ]
    yield Facts(tuple(facts))
    yield "Models"
    yield _models_table(evidence)
    if prompt := _prompt(evidence):
        yield "A prompt"
        yield Paragraph(prompt)


def _counts(evidence: Evidence) -> str:
    counts = {run.label: (evidence.examples(run.label), _prompts(evidence, run.label)) for run in evidence.views.runs}
    if len(set(counts.values())) == 1:
        examples, prompts = next(iter(counts.values()))
        return f"{examples:,}, in {prompts}"
    return "; ".join(f"{run} {examples:,} in {prompts}" for run, (examples, prompts) in counts.items())


def _prompts(evidence: Evidence, run: str) -> str:
    answers = evidence.answers[run]
    times = f", each asked {len(answers) // answers.instances} times" if answers.is_repeated else ""
    return f"{answers.instances:,} prompts{times}"


def _conditions(evidence: Evidence) -> str:
    parts = []
    for condition in evidence.present:
        situation = evidence.benchmark.situations.get(condition, "")
        parts.append(f"{condition} ({situation})" if situation else condition)
    return "; ".join(parts)


def _decoding(evidence: Evidence) -> str:
    models = {run.label for run in evidence.models} or {run.label for run in evidence.views.runs}
    settings: dict[str, list[str]] = {}
    for run in evidence.export.runs:
        if run.label in models:
            keys = ("max tokens", "temperature", "top p", "seed", "max pixels", "kv bits", "protocol")
            parts = [f"{key} {value}" for key in keys if (value := run.identity.get(key)) is not None]
            settings.setdefault(", ".join(parts) or "not known", []).append(run.label)
    if len(settings) == 1:
        return next(iter(settings))
    return "; ".join(f"{join_names(names)}: {setting}" for setting, names in settings.items())


def _models_table(evidence: Evidence) -> Table:
    canonical = evidence.export.options.canonical
    columns = (
        "model",
        "weights",
        "size on disk",
        "engine",
        "machine",
        *(() if canonical else ("peak memory", "s per answer")),
    )
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for view in sorted(evidence.views.runs, key=lambda view: view.is_policy):
        run = evidence.exported(view.label)
        engine = run.engines[-1] if run.engines else {}
        machine = engine.get("machine") or {}
        cells: tuple[Cell, ...] = (
            _model_id(run),
            view.quantisation or "",
            "" if view.weights_bytes is None else size(view.weights_bytes),
            str(run.identity.get("engine") or engine.get("engine") or ""),
            "" if canonical else str(machine.get("chip") or engine.get("device") or ""),
        )
        if not canonical:
            seconds = view.cost.seconds_per_answer
            cells = (
                *cells,
                "" if view.cost.peak_memory is None else size(view.cost.peak_memory),
                "" if not seconds else f"{seconds:.2g}",
            )
        rows.append((view.label, cells))
    return Table("models", "The models", columns, tuple(rows), judges=())


def _model_id(run: ExportedRun) -> str:
    """Return a model's name as it was requested; of a local folder, the folder's name."""
    model = str(run.spec["model"])
    return model if "/" in model or ":" in model else f"{model} (a local folder)"


def _origin(sources: Iterable[str], own: str) -> str:
    """Return the names of sources in words; ``own`` is that of the user's table."""
    return ", ".join("a table of your own" if name == own == "rows" else name for name in sorted(filter(None, sources)))


def _prompt(evidence: Evidence) -> str:
    """Return the first prompt as the models got it."""
    for record in evidence.exported(evidence.subject.label).records:
        text = re.sub(r"\[([A-Z_]+) [0-9a-f]{64}\]", r"[\1]", prompt_text(record))
        return text if len(text) <= _LONGEST_PROMPT else f"{text[:_LONGEST_PROMPT]}…"
    return ""


# --- results ---------------------------------------------------------------------------------------


def _results(evidence: Evidence) -> Iterator[Block | str]:
    yield evidence.export.main
    recommendation = evidence.recommendation
    if recommendation is not None and len(evidence.models) > 1 and evidence.counted:
        yield "Comparison of the models"
        yield Bullets(tuple(("", line) for line in (*recommendation.advice, *recommendation.behaviour)))
        if evidence.export.options.canonical:
            yield _without_costs(recommendation.table)
        else:
            yield recommendation.table
    for name, caption, figure in export_figures(evidence.export):
        yield Plot(name, without_papers_number(caption), figure)


def _without_costs(table: Table) -> Table:
    """Return the table of a recommendation without its columns of times and memory."""
    count = len(table.columns) - len(COSTS)
    return replace(
        table, columns=table.columns[:count], rows=tuple((label, cells[:count]) for label, cells in table.rows)
    )


def _agreement(evidence: Evidence) -> Iterator[Block | str]:
    people = [judge for judge in evidence.inputs.judges if judge.startswith(HUMAN)]
    tables = [table for table in evidence.export.tables if table.name in _AGREEMENT]
    if not people:
        yield Paragraph(
            "No person has labelled answers of these runs, so it is not known how often people would give the same labels. "
            "A blind sample of some 100 labels would tell."
        )
        return
    names = join_names([judge.removeprefix(HUMAN) for judge in people])
    yield Paragraph(f"{names} labelled answers without seeing other labels.")
    yield from tables


def _other_tables(evidence: Evidence) -> Iterator[Block | str]:
    people = any(judge.startswith(HUMAN) for judge in evidence.inputs.judges)
    yield Paragraph("A note that applies to several tables stands under the first of them.")
    for table in evidence.export.tables:
        if table.rows and table is not evidence.export.main and not (people and table.name in _AGREEMENT):
            yield table


def _limitations(evidence: Evidence) -> Iterator[Block | str]:
    if items := tuple((item.name, item.text) for item in limitations(evidence)):
        yield Bullets(items)


# --- licences and references -----------------------------------------------------------------------


def _licences(evidence: Evidence) -> Iterator[Block | str]:
    rows = []
    for view in evidence.models:
        run = evidence.exported(view.label)
        revision = run.identity.get("model revision") or run.identity.get("weights digest") or ""
        rows.append((view.label, (_model_id(run), _licence(evidence, run), str(revision)[:16])))
    if rows:
        note = "Licences as the models' cards state them; they bind whoever uses a model, whatever this report says."
        yield Table(
            "licences", "Models and their licences", ("model", "licence", "revision"), tuple(rows), (note,), judges=()
        )
    if evidence.citations.data:
        yield "The data"
        yield Facts(tuple(evidence.citations.data.items()))


def _licence(evidence: Evidence, run: ExportedRun) -> str:
    """Return the licence that was stored when the run was planned, else what is known of the model today."""
    return run.licence or evidence.citations.models.get(str(run.spec["model"]), "not known here")


def _references(evidence: Evidence) -> list[str]:
    """Return the papers of benchmark, data and engine, this tool, and the statistical methods that the tables name."""
    references = [_reference(entry) for entry in evidence.citations.entries.values()]
    if len(references) == 1:  # only this tool's
        references.append(f"{evidence.benchmark.title}. {evidence.benchmark.paper}.")
    tables = list(evidence.export.tables)
    if evidence.recommendation is not None:
        tables.append(evidence.recommendation.table)
    notes = " ".join(note for table in tables for note in table.notes)
    return [*references, *(text for name, text in _METHODS if name in notes)]


def _reference(entry: str) -> str:
    """Return a BibTeX entry as prose."""
    fields = {name: re.sub(r"[{}]", "", text) for name, text in _FIELD.findall(entry)}
    authors = fields.get("author", "").split(" and ")
    names = authors[0] if len(authors) == 1 else f"{authors[0]} et al." if len(authors) > 3 else "; ".join(authors)
    year = f" ({fields['year']})" if "year" in fields else ""
    version = f"version {fields['version']}" if "version" in fields else ""
    places = [fields.get(name, "") for name in ("booktitle", "journal", "note", "url")]
    rest = ". ".join(text for text in (fields.get("title", ""), version, *places) if text)
    return f"{names}{year}. {rest}."
