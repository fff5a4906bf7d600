"""JSON of ``rashomon try`` and ``rashomon history``: models on a question set."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.compare.question_sets.question_set_history import SetHistory, history_table
from app.json_output.tables_json import EstimateJson, TableJson, estimate_json, table_json
from mlx_backends.portable_model_names import without_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedModel:
    """A model that was tried, with the names of its runs, the newest last, of which ``run`` is compared.

    ``look`` is "first", or "again" for a model that was tried before with other prompts, settings or weights; ``versions`` are
    those of the set that it was asked. ``verdict`` and ``p``, corrected for all models tried, are null without another model.
    """

    model: str
    run: str
    runs: tuple[str, ...]
    incumbent: bool
    look: str
    versions: str
    share: EstimateJson
    lead: EstimateJson
    verdict: str | None
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """The models of a question set, in the order in which they were tried, with the ``headline`` above their table."""

    set: str
    headline: str
    models: tuple[TriedModel, ...]
    table: TableJson


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadJson:
    """A lead as a difference of shares, with its interval, which is corrected for all models tried."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswerJson:
    """An answer that differs: gained, lost or different otherwise. ``picture`` is its picture's name, or else its row."""

    id: str
    picture: str | None
    question: str
    before: str
    after: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TryResult:
    """The verdict on a model: better, worse or not shown, and the ``sentences`` in which it is printed, after the ``remarks``.

    Attributes:
        version: The number of the set's version.
        part: The part of the rows: "open", "final", or null for all.
        against, against_run, against_share: The model to compare with; null if there is none yet.
        named: Whether that one was named, now or before; otherwise it is the best of the others.
        tried: The number of models tried; of decisions, on the held-out rows.
        rule: What counts as right, in words.
        answers, rows: The number of answers that all compared models gave, and of their rows.
        reused: The number of the model's answers that are another run's.
        share: The share of right answers.
        p: The corrected p of no difference.
        peak_memory: In bytes; null is unknown.
        changed: The answers that changed most.
    """

    set: str
    version: int
    part: str | None
    verdict: str
    sentences: tuple[str, ...]
    remarks: tuple[str, ...]
    model: str
    run: str
    against: str | None
    against_run: str | None
    named: bool
    tried: int
    rule: str
    answers: int
    rows: int
    reused: int
    share: float | None
    against_share: float | None
    lead: LeadJson | None
    p: float | None
    peak_memory: int | None
    seconds_per_answer: float | None
    changed: tuple[ChangedAnswerJson, ...]


def history_result(history: SetHistory) -> HistoryResult:
    """Return the history of a set."""
    table = history_table(history)
    return HistoryResult(
        set=history.question_set.name,
        headline=table.notes[0],
        models=tuple(_tried_model(history, place) for place in range(len(history.runs))),
        table=table_json(replace(table, notes=table.notes[1:])),
    )


def _tried_model(history: SetHistory, place: int) -> TriedModel:
    run, claim = history.runs[place], history.claims.get(place)
    return TriedModel(
        model=without_folders(run.model),
        run=run.name,
        runs=tuple(other.name for other in history.every if other.subject == run.subject),
        incumbent=place == history.incumbent,
        look=history.look(place),
        versions=history.versions(place),
        share=estimate_json(history.share(place)),
        lead=estimate_json(history.lead(place)),
        verdict=None if claim is None else claim.verdict,
        p=None if claim is None else claim.p,
    )
