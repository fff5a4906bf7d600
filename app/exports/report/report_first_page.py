"""First page of a report: which model, why, and what it gets wrong, for readers who know nothing of the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from app.compare.differences.lost_and_gained import transitions_headline
from app.compare.fine_tuning.fine_tuning_effect import fine_tunings
from app.compare.fine_tuning.fine_tuning_verdict import verdict as tuning_verdict
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunView
from app.exports.report.report_document import Block, Bullets, Paragraph, Shares
from app.exports.report.report_example_mistakes import find_example, frequent_mistakes, others_mistakes
from app.exports.report.report_inputs import Evidence
from app.exports.report.report_limitations import limitations
from app.exports.report.report_verdict import few_names, verdict
from app.report.tables.run_tables import RESAMPLES
from app.report.tables.single_source_accuracy import join_names
from benchmarks.answer_behaviour import ACTS, names_sources
from benchmarks.stats.intervals import span
from benchmarks.tables.scorecard import RIGHT
from benchmarks.vocabulary import RULES, Estimate, Table

_MOST_CAUTIONS = 4
_MOST_POLICIES = 2
_MOST_MODELS = 6

_OWN_WORDS = (
    "Each question comes with an image, such as a chart, and a text about it. In some prompts both state the right value; in the "
    "others one of them states another, or both do; or one is shown alone."
)
"""The test in plain words where the scorecard leads, which does not say what is right."""

_ELSEWHERE = {
    "knows without sources": "right without any source",
    "gives the value on which they agree": "gives the value of both",
    "reads the image alone": "reads the image alone",
    "reads the text alone": "reads the text alone",
}
"""Rows of the scorecard where nothing disagrees, and their titles."""

_ALONE = (
    "Alone: shown without the other, which tells whether the model can read it at all. Where all answers are alike (0% or 100%), "
    "each page counts as one."
)


def first_page(evidence: Evidence) -> list[Block | str]:
    """Return the blocks of the first page."""
    decision = verdict(evidence)
    decision = replace(decision, sentences=(*_on_fine_tuned(evidence), *decision.sentences))
    blocks: list[Block | str] = [decision, "What was tested", Paragraph(_setting(evidence))]
    if evidence.scorecard:
        blocks += _scorecard(evidence, evidence.scorecard)
    elif (shares := _shares(evidence)).rows and shares.columns:
        blocks += ["How often the answers are right" if evidence.counted else "What the answers do", shares]
    mistakes = frequent_mistakes(evidence, evidence.subject.label)
    if not mistakes and evidence.counted and not evidence.scorecard:
        mistakes = ["Nothing in these answers: all that could be scored are right."]
    if mistakes:
        lines = [*mistakes, *others_mistakes(evidence)]
        whatever = " whatever should win" if evidence.scorecard and not evidence.rule else ""
        title = f"What {evidence.subject.label} gets wrong{whatever}"
        blocks += [title, Bullets(tuple(("", line) for line in lines))]
    if (example := find_example(evidence)) is not None:
        blocks.append(example)
    cautions = [(item.name, item.short or item.text) for item in limitations(evidence)[:_MOST_CAUTIONS]]
    return [*blocks, "Before you rely on this", Bullets(tuple(cautions))] if cautions else blocks


# --- several models ---------------------------------------------------------------------------------


def _on_fine_tuned(evidence: Evidence) -> Iterator[str]:
    """Yield the verdict on each model that was fine-tuned from another of these."""
    for tuning in fine_tunings(evidence.views, resamples=RESAMPLES):
        yield tuning_verdict(tuning, evidence.export.options.margin).text


def _transitions(evidence: Evidence) -> Iterator[str]:
    """Yield what the second of two models loses and gains of what the first one gets."""
    if len(evidence.models) == 2 and evidence.scorecard:
        views = evidence.views
        sentence = transitions_headline(RunPair(*evidence.models, views.label_metrics, RESAMPLES, views.seed), views)
        yield from filter(None, [sentence])


# --- what was tested -------------------------------------------------------------------------------


def _setting(evidence: Evidence) -> str:
    """Return what was asked of whom, in prose."""
    models = len(evidence.models)
    policies = 0 if evidence.scorecard and models else len(evidence.policies)
    runs = [run.label for run in evidence.models or evidence.views.runs]
    questions = _range([evidence.examples(run) for run in runs])
    prompts = _range([evidence.answers[run].instances for run in runs])
    amount = f"{questions} questions"
    pages = _range([evidence.pages(run) for run in runs])
    if pages != questions:
        amount += f" about {pages} pages"
    if prompts != questions:
        amount += f", in several combinations of the sources: {prompts} prompts each"
    who = [f"{models} model{'s' * (models != 1)} ({few_names(runs)})"] if models else []
    purpose = ""
    if policies:
        who.append("a simple rule" if policies == 1 else f"{policies} simple rules")
        answers = sorted(
            filter(None, map(evidence.describe_policy, evidence.policies)),
            key=lambda answer: not answer.startswith("always the "),
        )
        example = f" (such as: {answers[0]})" if answers else ""
        better = "; a useful model does better than it" if evidence.counted else ""
        purpose = f" A simple rule{example} needs no model{better}."
    got = f"{join_names(who)} got"
    got = f"{got[:1].upper()}{got[1:]}"
    only = ""
    if evidence.lacks_conflicts:
        only = f" Here, it was asked only {join_names([evidence.situation(name) for name in evidence.present])}."
    words = evidence.benchmark.in_plain_words
    if evidence.scorecard and names_sources(evidence.benchmark):
        wins = RULES.get(evidence.rule, "each question says what should win")
        words = f"{_OWN_WORDS} Here, {wins}." if evidence.rule else _OWN_WORDS
    return f"{words}{only} {got} {amount}.{purpose}".strip()


def _both(evidence: Evidence) -> str:
    """Return the sources of a prompt as a subject: "image and text", if both are also shown alone."""
    return join_names(list(evidence.sources)) if len(evidence.sources) == 2 else "sources"


def _range(counts: Sequence[int]) -> str:
    return span(f"{min(counts):,}", f"{max(counts):,}")


def _shares(evidence: Evidence) -> Shares:
    """Return the share of right answers of each run, where sources agree, where they disagree, and alone."""
    columns = _columns(evidence)
    sources = evidence.sources
    rows = []
    policies = _shown_policies(evidence)
    models = _most_right(evidence, evidence.models)
    for run in (*models, *policies):
        cells = [column.share(evidence, run.label) for column in columns]
        cells += [evidence.reading(run.label, source) for source in sources]
        rule = evidence.describe_policy(run) if run.is_policy else ""
        rows.append(("simple rule" if rule else run.label, rule, tuple(cells)))
    blind = [None if column.label else evidence.share_blind(column.conditions) for column in columns]
    if any(blind):
        closed = (
            f"the best rule that looks at no source, on {max(share.n for share in blind if share):,} closed questions"
        )
        rows.append(("without looking", closed, (*blind, *[None] * len(sources))))
    titles = (*(column.title for column in columns), *(f"{source} alone" for source in sources))
    note = "Alone: asked with nothing else, which tells whether the model can read it at all. " if sources else ""
    left_out = len(evidence.models) + len(evidence.policies) - len(models) - len(policies)
    return Shares(titles, tuple(rows), note, left_out)


class _Column(NamedTuple):
    """A column of shares: of right answers under some conditions, or of a label."""

    title: str
    conditions: tuple[str, ...]
    label: str = ""

    def share(self, evidence: Evidence, run: str) -> Estimate | None:
        if self.label:
            return evidence.share_labelled(run, self.label, self.conditions)
        return evidence.share_right(run, self.conditions)


def _columns(evidence: Evidence) -> list[_Column]:
    """Return the columns where sources agree and disagree; where no answer is right or wrong, those of behaviours."""
    agree = tuple(name for name in evidence.counted if name not in evidence.conflicts)
    both = _both(evidence)
    if evidence.conflicts:
        disagree = _Column(f"{both} disagree", evidence.conflicts)
        return [_Column(f"{both} agree", agree), disagree] if agree else [disagree]
    if evidence.counted:
        return [_Column("all questions", agree)]
    conflicts = tuple(name for name in evidence.present if name in evidence.benchmark.conflicts)
    behaviours = [label for label in evidence.benchmark.labels if label in evidence.benchmark.behaviours]
    return [_Column(evidence.behaviour(label), conflicts, label) for label in behaviours if conflicts]


def _shown_policies(evidence: Evidence) -> list[RunView]:
    """Return the policies that the page has room for, those that are hardest to beat first."""
    hardest = {floor.policy.label: floor.policy for floor in evidence.floors}
    return [*hardest.values(), *(run for run in evidence.policies if run.label not in hardest)][:_MOST_POLICIES]


def _scorecard(evidence: Evidence, table: Table) -> Iterator[Block | str]:
    """Yield what each model does where sources disagree, and where nothing does, as its scorecard has it."""
    models = evidence.models[:_MOST_MODELS] or evidence.views.runs
    lines = {name: dict(zip(table.columns, cells, strict=True)) for name, cells in table.rows}

    def shares(columns: Mapping[str, str], note: str = "") -> Shares:
        cells = [[lines[name][run.label] for name in columns] for run in models]
        rows = (tuple(cell if isinstance(cell, Estimate) else None for cell in row) for row in cells)
        labelled = tuple((run.label, "", row) for run, row in zip(models, rows, strict=True))
        return Shares(tuple(columns.values()), labelled, note, max(0, len(evidence.models) - len(models)))

    shown = {name for name, cells in lines.items() if any(isinstance(c, Estimate) and c.value for c in cells.values())}
    names = {name: name.removeprefix("conflict: ") for name in lines if name.startswith("conflict: ")}
    conflict = {name: title for name, title in names.items() if name in shown or title == ACTS["flags"]}
    conflict |= {RIGHT: "gives the right value"} if conflict and RIGHT in lines else {}
    other = {name: title for name, title in _ELSEWHERE.items() if name in lines}
    if conflict:
        yield f"What they do where {_both(evidence)} disagree"
        yield shares(conflict)
    if other:
        yield "What they do where nothing disagrees"
        yield shares(other, _ALONE)
    if transitions := "".join(_transitions(evidence)):
        yield "From one model to the other"
        yield Paragraph(transitions)


def _most_right(evidence: Evidence, models: Sequence[RunView]) -> Sequence[RunView]:
    """Return the models with the most right answers, as many as the page has room for, in their order."""

    def share(run: RunView) -> float:
        right = evidence.share_right(run.label, evidence.counted)
        return -1.0 if right is None or right.value is None else right.value

    best = sorted(models, key=share, reverse=True)[:_MOST_MODELS]
    return [run for run in models if run in best]
