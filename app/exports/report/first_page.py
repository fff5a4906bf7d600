"""First page of a report: which model, why, and what it gets wrong, for readers who know nothing of the project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.compare.non_inferiority import TargetShares, format_points
from app.compare.run_view import RunView
from app.exports.export_input import media_of
from app.exports.report.document import Block, Bullets, Example, Paragraph, Shares, Verdict
from app.exports.report.evidence import Evidence, percent, single_source
from app.exports.report.limitations import limitations
from app.report.competence import join_names
from app.report.media import media_path, preview_media
from app.text.escape import size
from benchmarks.answers import AnswerKind
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record

_PICTURE_PIXELS = 320
_MOST_MISTAKES = 3
_MOST_CAUTIONS = 4
_MOST_POLICIES = 3
_LONGEST = 160
"""The most characters of a question, a source or an answer in the example."""

_AS_FAST = 0.05
"""The relative difference below which speeds count as equal."""

_UNLABELLED = {
    "unparsed": "gives nothing that can be labelled",
    "error": "fails with an error",
    "judge-failed": "gives an answer that the judge cannot label",
}


def first_page(evidence: Evidence) -> list[Block | str]:
    """Return the blocks of the first page."""
    blocks: list[Block | str] = [verdict(evidence), "What was tested", Paragraph(_setting(evidence))]
    shares = _shares(evidence)
    if shares.rows and shares.columns:
        blocks += ["How often the answers are right" if evidence.counted else "What the answers do", shares]
    mistakes = _mistakes(evidence)
    if mistakes:
        blocks += [f"What {evidence.subject.label} gets wrong", Bullets(tuple(("", line) for line in mistakes))]
    if (example := _example(evidence)) is not None:
        blocks.append(example)
    cautions = [(item.name, item.text) for item in limitations(evidence)[:_MOST_CAUTIONS]]
    return [*blocks, "Before you rely on this", Bullets(tuple(cautions))] if cautions else blocks


# --- verdict ---------------------------------------------------------------------------------------


def verdict(evidence: Evidence) -> Verdict:
    """Return which model to choose, and why."""
    if not evidence.models:
        return Verdict(
            "These runs hold no model to choose.",
            ("They are simple rules that read neither image nor text, and show what can be reached without reading.",),
        )
    decision = evidence.decision
    if decision is None:
        return Verdict(
            "There are too few labelled answers to choose.",
            ("The runs share fewer than two questions that have a label in all of them.",),
        )
    objections = list(_objections(evidence))
    if len(evidence.models) == 1:
        return _verdict_on_one(evidence, decision.basis, objections)
    headline, sentences = _choice(evidence)
    if objections:
        among = f"Among them: {headline[:1].lower()}{headline[1:]}"
        return Verdict("Do not rely on any of these models yet.", (*objections, among, *sentences))
    return Verdict(headline, tuple(sentences))


def _verdict_on_one(evidence: Evidence, shares: TargetShares, objections: Sequence[str]) -> Verdict:
    model = shares.views.runs[0]
    share = f"{model.label} is right in {percent(float(shares.shares[0]))} of {len(shares.group):,} answers."
    alone = "Only one model was tested, so there is nothing to choose between."
    if objections:
        return Verdict(f"Do not rely on {model.label} yet.", (share, *objections, alone))
    better = [
        f"That is better than {_policy(evidence, floor.policy)}, which reads nothing and is right in "
        f"{percent(float(floor.basis.shares[1]))}."
        for floor in evidence.floors
    ]
    return Verdict(share, (*better, alone))


def _objections(evidence: Evidence) -> Iterator[str]:
    """Yield the reasons against all models: a source that none of them reads, or a policy that none of them beats."""
    models = len(evidence.models)
    subject = "It" if models == 1 else "Neither model" if models == 2 else "None of the models"
    for source in evidence.sources:
        readings = [by_source[source] for by_source in evidence.readings.values() if source in by_source]
        if len(readings) == models and all(reading.fails for reading in readings):
            shares = sorted(reading.share.value or 0.0 for reading in readings)
            spread = percent(shares[0]) if models == 1 else f"{percent(shares[0])} to {percent(shares[-1])}"
            verb = "does not read" if models == 1 else "reads"
            yield f"{subject} {verb} the {source}s: shown the {source} alone, {spread} of the answers are right."
    if evidence.floors and len(evidence.floors) == models and not any(floor.beats for floor in evidence.floors):
        policies = list(dict.fromkeys(_policy(evidence, floor.policy) for floor in evidence.floors))
        verb = "is not" if models == 1 else "is"
        yield f"{subject} {verb} shown to do better than {' or '.join(policies)}, which reads nothing."


def _policy(evidence: Evidence, policy: RunView) -> str:
    """Return a policy as a noun phrase."""
    answer = evidence.describe_policy(policy)
    return f"a rule that answers {answer}" if answer else policy.label


def _choice(evidence: Evidence) -> tuple[str, list[str]]:
    """Return the headline and the reasons, for two or more models."""
    decision = evidence.decision
    assert decision is not None
    shares, runs = decision.basis, decision.basis.views.runs
    points = f"{format_points(decision.margin)} percentage points"
    listing = _listing(shares)
    if not decision.holds:
        more = f"With {shares.groups:,} questions, the test cannot tell whether the models are within {points} of one another."
        return "It is too early to choose.", [f"The results so far: {listing}.", more]
    if len(decision.holds) == 1:
        chosen = runs[decision.holds[0]]
        reason = f"It is the only one shown to be within {points} of the best: {listing}."
        return f"Choose {chosen.label}.", [reason]
    equal = f"{_count(len(decision.holds))} models are shown to be within {points} of the best: {listing}."
    smallest, fastest = decision.smallest, decision.fastest
    if smallest is not None and fastest is not None:
        costs = [_cost(runs[index]) for index in dict.fromkeys((smallest, fastest))]
        seconds, least = (runs[index].cost.seconds_per_answer or 0.0 for index in (smallest, fastest))
        if seconds <= (1 + _AS_FAST) * least:
            speed = "is the fastest" if smallest == fastest else "as fast as the fastest"
            return f"Choose {runs[smallest].label}.", [equal, f"Of these it is the smallest and {speed}: {costs[0]}."]
        headline = f"Choose {runs[smallest].label} if memory is short, {runs[fastest].label} if speed counts."
        return headline, [equal, f"{'; '.join(costs)}."]
    if smallest is not None:
        return f"Choose {runs[smallest].label}.", [equal, f"Of these it is the smallest: {_cost(runs[smallest])}."]
    labels = join_names([runs[index].label for index in decision.holds])
    return f"Choose any of {labels}.", [equal, "Size and speed were not measured for all of them."]


def _listing(shares: TargetShares) -> str:
    """Return each model's share of right answers, best first."""
    order = sorted(range(len(shares.views.runs)), key=lambda index: -float(shares.shares[index]))
    parts = [f"{shares.views.runs[index].label} {percent(float(shares.shares[index]))}" for index in order]
    return f"{', '.join(parts)} of {len(shares.group):,} answers right"


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
    models, policies = len(evidence.models), len(evidence.policies)
    runs = [run.label for run in evidence.views.runs]
    questions = max(evidence.examples(run) for run in runs)
    prompts = max(len(evidence.answers[run]) for run in runs)
    amount = f"{questions:,} questions" + (f" in {prompts:,} prompts" if prompts > questions else "")
    who = (
        [f"{models} model{'s' * (models != 1)} ({join_names([run.label for run in evidence.models])})"]
        if models
        else []
    )
    if policies:
        who.append("a rule that reads nothing" if policies == 1 else f"{policies} rules that read nothing")
    purpose = " Such a rule shows what can be reached without reading: a useful model does better." if policies else ""
    return f"{evidence.benchmark.in_plain_words} {amount} went to {join_names(who)}.{purpose}".strip()


def _shares(evidence: Evidence) -> Shares:
    """Return the share of right answers of each run, where sources agree, where they disagree, and alone."""
    agree = tuple(name for name in evidence.counted if name not in evidence.conflicts)
    columns: list[tuple[str, str, tuple[str, ...]]] = []
    if evidence.conflicts:
        columns += [("sources agree", "", agree)] if agree else []
        columns.append(("sources disagree", "", evidence.conflicts))
    elif evidence.counted:
        columns.append(("all questions", "", agree))
    else:
        conflicts = tuple(name for name in evidence.present if name in evidence.benchmark.conflicts)
        behaviours = [label for label in evidence.benchmark.labels if label in evidence.benchmark.behaviours]
        columns += [(evidence.behaviour(label), label, conflicts) for label in behaviours if conflicts]
    sources = evidence.sources
    rows = []
    policies = evidence.policies[:_MOST_POLICIES]
    for run in (*evidence.models, *policies):
        cells = [
            evidence.share_labelled(run.label, label, conditions)
            if label
            else evidence.share_right(run.label, conditions)
            for _, label, conditions in columns
        ]
        cells += [evidence.reading(run.label, source) for source in sources]
        remark = evidence.describe_policy(run) if run.is_policy else ""
        rows.append((run.label, remark, tuple(cells)))
    titles = (*(title for title, _, _ in columns), *(f"{source} alone" for source in sources))
    note = "Bars: the share of all labelled answers. Line: the range in which the true share lies with 95% confidence."
    left_out = len(evidence.policies) - len(policies)
    note += f" {left_out} more rules are in the tables." if left_out else ""
    return Shares(titles, tuple(rows), note)


# --- mistakes --------------------------------------------------------------------------------------


def _mistakes(evidence: Evidence) -> list[str]:
    """Return the most frequent mistake under each condition, the most frequent first."""
    run = evidence.subject.label
    lines = []
    for condition in evidence.counted:
        outcomes = evidence.count(run, lambda kind, of=condition: _outcome(evidence, kind, of))  # type: ignore[misc]
        total = outcomes.total()
        wrong = [(count, label) for label, count in outcomes.items() if not _is_right(evidence, condition, label)]
        if not wrong:
            continue
        count, label = max(wrong)
        situation = evidence.situation(condition)
        does = _UNLABELLED.get(label) or evidence.behaviour(label)
        others = sum(number for number, _ in wrong) - count
        rest = f", and is wrong in another way in {others}" if others else ""
        sentence = f"{situation[:1].upper()}{situation[1:]}, it {does} in {count:,} of {total:,} answers"
        lines.append((-(count + others) / total, f"{sentence} ({percent(count / total)}){rest}."))
    lines.sort()
    if not lines and evidence.counted:
        return ["Nothing in these answers: all that have a label are right."]
    return [line for _, line in lines[:_MOST_MISTAKES]]


def _outcome(evidence: Evidence, kind: AnswerKind, condition: str) -> str | None:
    if kind.condition != condition or single_source(kind):
        return None
    outcome = kind.outcome(evidence.judge)
    if outcome == "pending":
        return None
    return kind.label(evidence.judge) if outcome == "labelled" else outcome


def _is_right(evidence: Evidence, condition: str, label: str) -> bool:
    return label not in _UNLABELLED and evidence.benchmark.correct(condition, label)


def _example(evidence: Evidence) -> Example | None:
    """Return the shortest of the most frequent wrong answers; None if there is no wrong answer."""
    run = evidence.subject.label
    kinds = evidence.count(run, lambda kind: _wrong_kind(evidence, kind))
    if not kinds:
        return None
    # An example is clearest where one source is right.
    most_frequent = max(
        sorted(kinds), key=lambda kind: (bool(_right_source(evidence, kind.partition(" ")[0])), kinds[kind])
    )
    exported = evidence.exported(run)
    candidates = [
        record
        for record in exported.records
        if record.outcome(exported.judge) == "labelled"
        and f"{record.instance.condition} {record.verdicts[exported.judge].label}" == most_frequent
    ]
    if not candidates:
        return None
    record = min(candidates, key=lambda record: (_length(record), record.instance.id))
    condition, _, label = most_frequent.partition(" ")
    answer = record.answer
    lines = [("Question", _clipped(record.instance.question))]
    lines += [
        (f"The {source} says", _clipped(" or ".join(values)))
        for source, values in record.instance.references.items()
        if values and source in ("image", "text", "audio", "video", "answer", "original", "conflict", "caption")
    ]
    lines.append((f"{run} answers", _clipped(visible_answer(answer.text) if answer is not None else "")))
    lines.append(("So it", f"{evidence.behaviour(label)}, {evidence.situation(condition)}"))
    if right := _right_value(evidence, record):
        lines.append(("Right would be", _clipped(right)))
    for media in media_of(record):
        preview = preview_media(media, media_path(exported.build, media), _PICTURE_PIXELS)
        if preview.picture is not None:
            return Example(tuple(lines), preview.picture, preview.facts)
    return Example(tuple(lines))


def _wrong_kind(evidence: Evidence, kind: AnswerKind) -> str | None:
    """Return the condition and the label of a wrong answer."""
    if kind.condition not in evidence.counted or kind.outcome(evidence.judge) != "labelled" or single_source(kind):
        return None
    label = kind.label(evidence.judge)
    return None if evidence.benchmark.correct(kind.condition, label) else f"{kind.condition} {label}"


def _right_source(evidence: Evidence, condition: str) -> str:
    """Return the source whose value is right under a condition; empty if there is no single one."""
    sources = ("image", "text")
    right = [source for source in sources if _is_label_right(evidence, condition, source.upper())]
    return right[0] if len(right) == 1 else ""


def _is_label_right(evidence: Evidence, condition: str, label: str) -> bool:
    return label in evidence.benchmark.labels and evidence.benchmark.correct(condition, label)


def _right_value(evidence: Evidence, record: Record) -> str:
    """Return the value of the source that is right, or else of the right answer."""
    references = record.instance.references
    source = _right_source(evidence, record.instance.condition) or "answer"
    return " or ".join(references.get(source, ()))


def _length(record: Record) -> int:
    answer = record.answer
    return len(record.instance.question) + (0 if answer is None else len(visible_answer(answer.text)))


def _clipped(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
