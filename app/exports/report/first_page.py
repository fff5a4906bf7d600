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
from benchmarks.vocabulary import Record, Text

_PICTURE_PIXELS = 320
_MOST_MISTAKES = 3
_MOST_OTHERS = 2
_MOST_CAUTIONS = 4
_MOST_POLICIES = 2
_LONGEST = 160
"""The most characters of a question, a source or an answer in the example."""

_LONGEST_PROMPT = 400
"""The most characters of a prompt in the example; of a longer one, it has the question."""

_SOURCES = ("image", "text", "audio", "video")
"""The names of references that are what a source says."""

_AS_FAST = 0.05
"""The relative difference below which speeds count as equal."""

_UNLABELLED = {
    "unparsed": "gives nothing that can be scored",
    "error": "fails with an error",
    "judge-failed": "gives an answer that could not be scored",
}


def first_page(evidence: Evidence) -> list[Block | str]:
    """Return the blocks of the first page."""
    blocks: list[Block | str] = [verdict(evidence), "What was tested", Paragraph(_setting(evidence))]
    shares = _shares(evidence)
    if shares.rows and shares.columns:
        blocks += ["How often the answers are right" if evidence.counted else "What the answers do", shares]
    mistakes = _mistakes(evidence, evidence.subject.label)
    if not mistakes and evidence.counted:
        mistakes = ["Nothing in these answers: all that could be scored are right."]
    if mistakes:
        lines = [*mistakes, *_others_mistakes(evidence)]
        blocks += [f"What {evidence.subject.label} gets wrong", Bullets(tuple(("", line) for line in lines))]
    if (example := _example(evidence)) is not None:
        blocks.append(example)
    cautions = [(item.name, item.short or item.text) for item in limitations(evidence)[:_MOST_CAUTIONS]]
    return [*blocks, "Before you rely on this", Bullets(tuple(cautions))] if cautions else blocks


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
    objections = list(_objections(evidence))
    if len(evidence.models) == 1:
        return _verdict_on_one(evidence, decision.basis, objections)
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
    share = f"{model.label} is right in {percent(float(shares.shares[0]))} of {_answers(evidence, shares)}."
    alone = "Only one model was tested, so there is nothing to choose between."
    if objections:
        return Verdict(f"Do not rely on {model.label} yet.", (share, *objections, alone))
    better = [
        f"That is better than {_policy(evidence, floor.policy)}, which is right in "
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
        more = f"{shares.groups:,} questions are too few to tell whether the models are within {points} of one another."
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


def _answers(evidence: Evidence, shares: TargetShares) -> str:
    """Return the number of answers that decide, which are not those to one source alone."""
    where = " with several sources" if len(evidence.sources) > 2 else ""
    if len(evidence.sources) == 2:
        where = f" to {join_names(list(evidence.sources))} together"
    return f"{len(shares.group):,} answers{where}"


def _listing(evidence: Evidence, shares: TargetShares) -> str:
    """Return each model's percentage of right answers, best first."""
    order = sorted(range(len(shares.views.runs)), key=lambda index: -float(shares.shares[index]))
    labels = [run.label for run in shares.views.runs]
    percentages = [percent(float(shares.shares[index])) for index in order]
    answers = f"its {_answers(evidence, shares)}"
    if len({*percentages}) == 1:
        return f"each is right in {percentages[0]} of {answers}"
    parts = [f"{labels[index]} in {percentage}" for index, percentage in zip(order, percentages, strict=True)]
    parts[0] = f"{labels[order[0]]} is right in {percentages[0]} of {answers}"
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
    models, policies = len(evidence.models), len(evidence.policies)
    runs = [run.label for run in evidence.models or evidence.views.runs]
    questions = _range([evidence.examples(run) for run in runs])
    prompts = _range([len(evidence.answers[run]) for run in runs])
    amount = f"{questions} questions"
    if prompts != questions:
        amount += f", in several combinations of the sources: {prompts} prompts each"
    who = [f"{models} model{'s' * (models != 1)} ({join_names(runs)})"] if models else []
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
    return f"{evidence.benchmark.in_plain_words}{only} {got} {amount}.{purpose}".strip()


def _both(evidence: Evidence) -> str:
    """Return the sources of a prompt as a subject: "image and text", if both are also shown alone."""
    return join_names(list(evidence.sources)) if len(evidence.sources) == 2 else "sources"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


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
    for run in (*evidence.models, *policies):
        cells = [
            evidence.share_labelled(run.label, label, conditions)
            if label
            else evidence.share_right(run.label, conditions)
            for _, label, conditions in columns
        ]
        cells += [evidence.reading(run.label, source) for source in sources]
        rule = evidence.describe_policy(run) if run.is_policy else ""
        rows.append(("simple rule" if rule else run.label, rule, tuple(cells)))
    titles = (*(title for title, _, _ in columns), *(f"{source} alone" for source in sources))
    note = "Alone: asked with nothing else, which tells whether the model can read it at all. " if sources else ""
    left_out = len(evidence.policies) - len(policies)
    note += f"The tables have {left_out} more simple rule{'s' * (left_out != 1)}." if left_out else ""
    return Shares(titles, tuple(rows), note)


# --- mistakes --------------------------------------------------------------------------------------


def _mistakes(evidence: Evidence, run: str) -> list[str]:
    """Return the most frequent mistake of a run under each condition, the most frequent first."""
    lines = []
    for condition in evidence.counted:
        outcomes = evidence.count(run, lambda kind, of=condition: _outcome(evidence, kind, of))  # type: ignore[misc]
        total = outcomes.total()
        wrong = [(count, label) for label, count in outcomes.items() if not _is_right(evidence, condition, label)]
        if not wrong:
            continue
        (count, label), *rarer = sorted(wrong, reverse=True)
        situation = evidence.situation(condition)
        does = _does(evidence, label)
        others = sum(number for number, _ in rarer)
        rest = f", and is wrong in another way in {others}" if others else ""
        if len(rarer) == 1:
            rest = f", and {_does(evidence, rarer[0][1])} in {others}"
        sentence = f"{situation[:1].upper()}{situation[1:]}, it {does} in {count:,} of {total:,} answers"
        lines.append((-(count + others) / total, f"{sentence} ({percent(count / total)}){rest}."))
    lines.sort()
    return [line for _, line in lines[:_MOST_MISTAKES]]


def _others_mistakes(evidence: Evidence) -> Iterator[str]:
    """Yield the most frequent mistake of each other model, of at most two."""
    others = [run.label for run in evidence.models if run.label != evidence.subject.label]
    for run in others[:_MOST_OTHERS]:
        if lines := _mistakes(evidence, run):
            yield f"{run}: {lines[0][:1].lower()}{lines[0][1:]}"


def _does(evidence: Evidence, label: str) -> str:
    """Return what an answer with this label or outcome does, as a verb phrase."""
    return _UNLABELLED.get(label) or evidence.behaviour(label)


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
    most_frequent = max(sorted(kinds), key=lambda kind: (*_clarity(evidence, kind.partition(" ")[0]), kinds[kind]))
    exported = evidence.exported(run)
    candidates = (
        record
        for record in exported.records
        if record.outcome(exported.judge) == "labelled"
        and f"{record.instance.condition} {record.verdicts[exported.judge].label}" == most_frequent
    )
    record = min(candidates, key=lambda record: (_length(record), record.instance.id), default=None)
    if record is None:
        return None
    condition, _, label = most_frequent.partition(" ")
    answer = record.answer
    prompt = _prompt(record)
    lines = (
        [("Question", _clipped(record.instance.question))] if len(prompt) > _LONGEST_PROMPT else [("Prompt", prompt)]
    )
    lines += [
        (f"The {source} says", _clipped(" or ".join(values)))
        for source, values in record.instance.references.items()
        if values and source in _SOURCES
    ]
    if right := _right_value(evidence, record):
        lines.append(("Right would be", _clipped(right)))
    lines.append((f"{run} answers", _clipped(visible_answer(answer.text) if answer is not None else "")))
    lines.append(("So it", f"{evidence.behaviour(label)}, {evidence.situation(condition)}"))
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


def _clarity(evidence: Evidence, condition: str) -> tuple[bool, bool]:
    """Return what makes an example under a condition clear: a conflict, and one source that is right."""
    return condition in evidence.conflicts, bool(_right_source(evidence, condition))


def _right_source(evidence: Evidence, condition: str) -> str:
    """Return the source whose value is right under a condition; empty if there is no single one."""
    sources = ("image", "text")
    right = [source for source in sources if _is_label_right(evidence, condition, source.upper())]
    return right[0] if len(right) == 1 else ""


def _is_label_right(evidence: Evidence, condition: str, label: str) -> bool:
    return label in evidence.benchmark.labels and evidence.benchmark.correct(condition, label)


def _right_value(evidence: Evidence, record: Record) -> str:
    """Return the value of the source that is right, else the right answer, else what a right answer does."""
    references, condition = record.instance.references, record.instance.condition
    if values := references.get(_right_source(evidence, condition)) or references.get("answer"):
        return " or ".join(values)
    labels = [label for label in evidence.benchmark.behaviours if _is_label_right(evidence, condition, label)]
    return f"an answer that {' or '.join(map(evidence.behaviour, labels))}" if labels else ""


def _prompt(record: Record) -> str:
    """Return the prompt in one line, with a word for each medium."""
    parts = (part.text if isinstance(part, Text) else f"[{part.modality}]" for part in record.instance.parts)
    return " ".join("".join(parts).split())


def _length(record: Record) -> int:
    answer = record.answer
    return len(record.instance.question) + (0 if answer is None else len(visible_answer(answer.text)))


def _clipped(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
