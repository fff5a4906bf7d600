"""First page of a report: which model, why, and what it gets wrong, for readers who know nothing of the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from app.compare.advice import rule_clause
from app.compare.fine_tuning import fine_tunings
from app.compare.non_inferiority import format_points
from app.compare.pairs import RunPair
from app.compare.recommendation_evidence import RuleLead
from app.compare.run_view import RunView
from app.compare.target_shares import TargetShares
from app.compare.transitions import transitions_headline
from app.compare.verdict import verdict as tuning_verdict
from app.exports.report.document import Block, Bullets, Paragraph, Shares, Verdict
from app.exports.report.evidence import Evidence
from app.exports.report.limitations import limitations
from app.exports.report.mistakes import find_example, frequent_mistakes, others_mistakes
from app.report.competence import join_names
from app.report.tables import RESAMPLES
from app.text.escape import size
from benchmarks.acts import ACTS, names_sources
from benchmarks.scorecard import RIGHT
from benchmarks.stats.intervals import few_pages, percent, span
from benchmarks.vocabulary import RULES, Estimate, Table

_MOST_CAUTIONS = 4
_MOST_POLICIES = 2
_MOST_MODELS = 6
_MOST_NAMES = 3

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


def few_names(names: Sequence[str]) -> str:
    """Return names as prose; of many, the first ones and the number of the others."""
    if len(names) <= _MOST_NAMES + 1:
        return join_names(names)
    return join_names([*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more"])


# --- verdict ---------------------------------------------------------------------------------------


def verdict(evidence: Evidence) -> Verdict:
    """Return which model to choose, and why."""
    if not evidence.models:
        return Verdict(
            "These runs hold no model to choose.",
            ("They are simple rules, which show what can be reached without any model.",),
        )
    if not evidence.counted and evidence.lacks_conflicts:
        return Verdict("These runs do not show what happens when sources disagree.", ())
    if not evidence.counted:
        return _behaviour_verdict(evidence)
    decision = evidence.decision
    if not evidence.comparable:
        return Verdict(
            "These scores do not decide between models.",
            ("The judge gives an answer several labels; choose another judge.",),
        )
    if decision is None:
        return Verdict(
            "There are too few scored answers to choose.",
            ("The models share fewer than two questions whose answers are scored for all of them.",),
        )
    assert evidence.recommendation is not None
    by_rule, few = evidence.recommendation.by_rule, few_pages(decision.basis.clusters.own_count)
    chosen = _depends(evidence, by_rule) if by_rule else _chosen(evidence, decision.basis)
    headline = " ".join(filter(None, [chosen.headline, evidence.recommendation.missing]))
    return Verdict(headline, (*chosen.sentences, *filter(None, (evidence.recommendation.bounds, few))))


def _depends(evidence: Evidence, by_rule: Mapping[str, RuleLead]) -> Verdict:
    """Return what each rule on what should win would decide, of which the user has not said one."""
    question = "what should win where your sources disagree"
    headline = f"Which model to choose depends on {question}."
    if len(evidence.models) == 1:
        headline = f"Whether {evidence.models[0].label} is good enough depends on {question}."
    elif not any(lead.is_shown for lead in by_rule.values()):
        headline = "No difference between the models is shown, whatever should win where your sources disagree."
    rules = [f"If {RULES[rule]}: {rule_clause(rule, lead, brief=True)}" for rule, lead in by_rule.items()]
    decide = "Decide what should win; a report with --trust image, text or flag is then about that."
    unreliable = evidence.recommendation.unreliable if evidence.recommendation else ""
    return Verdict(headline, (*filter(None, [unreliable]), *rules, decide))


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


def _chosen(evidence: Evidence, shares: TargetShares) -> Verdict:
    """Return the verdict where the models can be compared."""
    objections = list(_objections(evidence))
    if len(evidence.models) == 1:
        return _verdict_on_one(evidence, shares, objections)
    headline, sentences = _choice(evidence)
    if objections:
        is_pair = len(evidence.models) == 2
        among = f"{'Between' if is_pair else 'Among'} them: {headline[:1].lower()}{headline[1:]}"
        any_model = "either model" if is_pair else "any of these models"
        return Verdict(f"Do not rely on {any_model} yet.", (*objections, among, *sentences))
    return Verdict(headline, tuple(sentences))


def _behaviour_verdict(evidence: Evidence) -> Verdict:
    """Return what the models do, where no answer is right or wrong by itself."""
    sentences = []
    for run in evidence.models:
        shares = [
            f"{evidence.behaviour(label)} in {percent(share)}"
            for label in evidence.benchmark.behaviours
            if (share := evidence.share_labelled(run.label, label, evidence.benchmark.conflicts)) is not None
        ]
        if shares:
            sentences.append(f"Where sources disagree, {run.label} {join_names(shares)} of its answers.")
    return Verdict("This test shows what the models do; it does not say which is better.", tuple(sentences))


def _verdict_on_one(evidence: Evidence, shares: TargetShares, objections: Sequence[str]) -> Verdict:
    model = shares.views.runs[0]
    does = _does(evidence)
    share = f"{model.label} {does} in {percent(float(shares.shares[0]))} of {_answers(evidence, shares)}."
    alone = "Only one model was tested, so there is nothing to choose between."
    if objections:
        return Verdict(f"Do not rely on {model.label} yet.", (share, *objections, alone))
    better = [
        f"That is better than {_policy(evidence, floor.policy)}, which {does} in "
        f"{percent(float(floor.basis.shares[1]))}."
        for floor in evidence.floors
    ]
    return Verdict(share, (*better, alone))


def _objections(evidence: Evidence) -> Iterator[str]:
    """Yield the reasons against all models: sources that they are not shown to use, or a policy unbeaten."""
    if evidence.recommendation is not None and evidence.recommendation.unreliable:
        yield evidence.recommendation.unreliable
    models = len(evidence.models)
    subject = "It" if models == 1 else "Neither model" if models == 2 else "None of the models"
    for source in evidence.sources:
        readings = [by_source[source] for by_source in evidence.readings.values() if source in by_source]
        if len(readings) == models and all(reading.fails for reading in readings):
            shares = sorted(reading.share.value or 0.0 for reading in readings)
            spread = span(percent(shares[0]), percent(shares[-1]))
            verb = "does not read" if models == 1 else "reads"
            yield f"{subject} {verb} the {source}s: shown the {source} alone, {spread} of the answers are right."
    if evidence.floors and len(evidence.floors) == models and not any(floor.beats for floor in evidence.floors):
        policies = list(dict.fromkeys(_policy(evidence, floor.policy) for floor in evidence.floors))
        verb = "is not" if models == 1 else "is"
        yield f"{subject} {verb} shown to do better than {' or '.join(policies)}."


def _policy(evidence: Evidence, policy: RunView) -> str:
    """Return a policy as a noun phrase."""
    answer = evidence.describe_policy(policy)
    return f"a rule that needs no model ({answer})" if answer else policy.label


def _choice(evidence: Evidence) -> tuple[str, list[str]]:
    """Return the headline and the reasons, for two or more models."""
    decision = evidence.decision
    assert decision is not None
    shares, runs = decision.basis, decision.basis.views.runs
    points = f"{format_points(decision.margin)} percentage points"
    listing = _listing(evidence, shares)
    if not decision.holds:
        pages = shares.clusters.own_count
        few = f"{pages:,} pages" if pages < shares.examples else f"{shares.examples:,} questions"
        more = f"{few} are too few to tell whether the models are within {points} of one another."
        return "It is too early to choose.", [f"So far, {listing}.", more]
    if len(decision.holds) == 1:
        chosen = runs[decision.holds[0]]
        reason = f"It is the only one shown to be within {points} of the best: {listing}."
        if decision.holds[0] == shares.best:
            reason = f"It is the best: {listing}. No other is shown to come within {points} of it."
        return f"Choose {chosen.label}.", [reason]
    equal = f"{_count(len(decision.holds))} models are shown to be within {points} of the best: {listing}."
    smallest, fastest = decision.smallest, decision.fastest
    if smallest is not None and fastest is not None:
        costs = [_cost(runs[index]) for index in dict.fromkeys((smallest, fastest))]
        if decision.is_as_fast(smallest):
            reason = f"Of these it is the smallest and {decision.speed_clause}: {costs[0]}."
            return f"Choose {runs[smallest].label}.", [equal, reason]
        headline = f"Choose {runs[smallest].label} if memory is short, {runs[fastest].label} if speed counts."
        return headline, [equal, f"{'; '.join(costs)}."]
    if smallest is not None:
        return f"Choose {runs[smallest].label}.", [equal, f"Of these it is the smallest: {_cost(runs[smallest])}."]
    labels = few_names([runs[index].label for index in decision.holds])
    return f"Choose any of {labels}.", [equal, "Size and speed were not measured for all of them."]


def _answers(evidence: Evidence, shares: TargetShares) -> str:
    """Return the number of answers that decide, which are not those to one source alone."""
    where = " with several sources" if len(evidence.sources) > 2 else ""
    if len(evidence.sources) == 2:
        where = f" to {join_names(list(evidence.sources))} together"
    return f"{len(shares.group):,} answers{where}"


def _does(evidence: Evidence) -> str:
    """Return what decides, as a verb phrase."""
    return "follows your rule" if evidence.rule else "is right"


def _listing(evidence: Evidence, shares: TargetShares) -> str:
    """Return each model's percentage of right answers, best first."""
    order = sorted(range(len(shares.views.runs)), key=lambda index: -float(shares.shares[index]))
    labels = [run.label for run in shares.views.runs]
    percentages = [percent(float(shares.shares[index])) for index in order]
    answers = f"its {_answers(evidence, shares)}"
    if len({*percentages}) == 1:
        return f"each {_does(evidence)} in {percentages[0]} of {answers}"
    parts = [f"{labels[index]} in {percentage}" for index, percentage in zip(order, percentages, strict=True)]
    parts[0] = f"{labels[order[0]]} {_does(evidence)} in {percentages[0]} of {answers}"
    if len(parts) > _MOST_NAMES + 1:
        others = f"{len(parts) - _MOST_NAMES} others in {span(percentages[-1], percentages[_MOST_NAMES])}"
        parts[_MOST_NAMES:] = [others]
    return ", ".join(parts)


def _cost(run: RunView) -> str:
    """Return a run's memory and speed."""
    parts = []
    if run.cost.peak_memory is not None:
        parts.append(f"{size(run.cost.peak_memory)} of memory")
    elif run.weights_bytes is not None:
        parts.append(f"{size(run.weights_bytes)} on disk")
    if run.cost.seconds_per_answer is not None:
        parts.append(f"{run.cost.seconds_per_answer:.2g} s per answer")
    return f"{run.label} takes {' and '.join(parts)}"


def _count(number: int) -> str:
    return {2: "Two", 3: "Three", 4: "Four", 5: "Five"}.get(number, str(number))


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
    agree = tuple(name for name in evidence.counted if name not in evidence.conflicts)
    columns: list[tuple[str, str, tuple[str, ...]]] = []
    if evidence.conflicts:
        columns += [(f"{_both(evidence)} agree", "", agree)] if agree else []
        columns.append((f"{_both(evidence)} disagree", "", evidence.conflicts))
    elif evidence.counted:
        columns.append(("all questions", "", agree))
    else:
        conflicts = tuple(name for name in evidence.present if name in evidence.benchmark.conflicts)
        behaviours = [label for label in evidence.benchmark.labels if label in evidence.benchmark.behaviours]
        columns += [(evidence.behaviour(label), label, conflicts) for label in behaviours if conflicts]
    sources = evidence.sources
    rows = []
    hardest = {floor.policy.label: floor.policy for floor in evidence.floors}
    policies = [*hardest.values(), *(run for run in evidence.policies if run.label not in hardest)][:_MOST_POLICIES]
    models = _most_right(evidence, evidence.models)
    for run in (*models, *policies):
        cells = [
            evidence.share_labelled(run.label, label, conditions)
            if label
            else evidence.share_right(run.label, conditions)
            for _, label, conditions in columns
        ]
        cells += [evidence.reading(run.label, source) for source in sources]
        rule = evidence.describe_policy(run) if run.is_policy else ""
        rows.append(("simple rule" if rule else run.label, rule, tuple(cells)))
    blind = tuple(None if label else evidence.share_blind(conditions) for _, label, conditions in columns)
    if any(blind):
        closed = (
            f"the best rule that looks at no source, on {max(share.n for share in blind if share):,} closed questions"
        )
        rows.append(("without looking", closed, (*blind, *[None] * len(sources))))
    titles = (*(title for title, _, _ in columns), *(f"{source} alone" for source in sources))
    note = "Alone: asked with nothing else, which tells whether the model can read it at all. " if sources else ""
    left_out = len(evidence.models) + len(evidence.policies) - len(models) - len(policies)
    return Shares(titles, tuple(rows), note, left_out)


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
