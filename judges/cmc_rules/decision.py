"""The label of an answer: the decision between the events that the rules find in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judges.cmc_rules.clauses import fold
from judges.cmc_rules.commitment import ECHOED, EXPLICIT, OTHER, STRESSED, CommitmentReader, Event
from judges.cmc_rules.options import chosen_option, parse_options, resolve_letters
from judges.cmc_rules.references import Reference, parse_question, same_reference
from judges.cmc_rules.revision import EARLIER

_LABEL_OF = {"image": "IMAGE", "text": "TEXT", "both": "BOTH", OTHER: "NEITHER"}
_DESCRIPTION_OF = {
    "image": "the image's value",
    "text": "the text's value",
    "both": "the shared value",
    OTHER: "another value",
}
_LONGEST_BARE = 400
_EXCERPT = 60


def label_answer(answer: str, question: str, references: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the label of an answer without its reasoning, and the rule that gave it. Every text has a label."""
    options = parse_options(question)
    image, text = (resolve_letters(references.get(name, ()), options) for name in ("image", "text"))
    sources = _sources(image, text)
    label, reason = _label_words(answer, question, sources)
    option = chosen_option(answer, options) if label == "NEITHER" else ""
    if not option:
        return label, reason
    return _label_words(option, question, sources)[0], f"gives the letter of an option: {option!r}"


def _label_words(answer: str, question: str, sources: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the label of an answer by its words, without the letters of options, and the rule that gave it."""
    bare = [n for n, answers in sources.items() if len(answer) <= _LONGEST_BARE and same_reference((answer,), answers)]
    if len(bare) == 1:
        return _LABEL_OF[bare[0]], f"the answer is {_DESCRIPTION_OF[bare[0]]} and nothing else"
    parsed = parse_question(question)
    parsed_references = {name: [Reference(a, parsed) for a in answers] for name, answers in sources.items()}
    polarities = {r.polarity for rs in parsed_references.values() for r in rs} - {None}
    if len(polarities) == 1:
        parsed_references[OTHER] = [Reference("no" if True in polarities else "yes", parsed)]
    return decide(CommitmentReader(fold(answer), parsed, parsed_references).events())


def _sources(image: tuple[str, ...], text: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the visible sources with the answers they support; a single one, "both", if they support the same."""
    if same_reference(image, text):
        return {"both": tuple(dict.fromkeys(image + text))}
    return {name: answers for name, answers in (("image", image), ("text", text)) if answers}


# --- the decision --------------------------------------------------------------------------------


def decide(events: Sequence[Event]) -> tuple[str, str]:
    """Return the label of an answer's events and the reason: refusal, agreement, commitment, then mere reports."""
    events, withdrawn = _drop_withdrawn(events)
    refusals = [e for e in events if e.kind == "refusal"]
    commits = _commitments(events, refusals[-1].index if refusals else -1)
    if refusals and not commits:
        return "ABSTAIN", f"refuses: {_excerpt(refusals[-1])}"
    if _claims_agreement(events, commits):
        return "BOTH", "says that the sources agree, and names both values"
    if withdrawn and not any(map(_is_statement, events)):
        return "ABSTAIN", f"takes its answer back and gives no other: {withdrawn}"
    return _label_commitments(events, commits) if commits else _label_reports(events)


def _drop_withdrawn(events: Sequence[Event]) -> tuple[list[Event], str]:
    """Return the events without statements that later ones retract, and the words of the last outright withdrawal.

    If a statement follows a revision, no earlier commitment or doubt stands. An outright withdrawal also removes the
    statement before it, whoever makes it.
    """
    revisions = [e for e in events if e.kind == "revision"]
    last_statement = max((e.index for e in events if _is_statement(e)), default=-1)
    revision_index = max((r.index for r in revisions if r.index <= last_statement), default=-1)
    withdrawn_indices, withdrawn, last = set[int](), "", -1
    for event in events:
        if event.kind == "revision" and event.strength >= EXPLICIT and last >= 0:
            withdrawn_indices.add(last)
            withdrawn = _excerpt(event)
        last = event.index if event.values else last
    standing = [
        e
        for e in events
        if not (e.values and e.index in withdrawn_indices)
        and not (e.index < revision_index and e.kind in ("commit", "refusal", "doubt"))
    ]
    current = [e for e in standing if e.speaker != EARLIER]
    return (current if any(map(_is_statement, current)) else standing), withdrawn


def _is_statement(event: Event) -> bool:
    """Return whether an event gives a value as the answer or as a source's, and does not merely contain one."""
    definite = event.values != {OTHER} or event.strength >= ECHOED
    return event.kind in ("commit", "report") and bool(event.values) and event.speaker != EARLIER and definite


def _commitments(events: Sequence[Event], refusal: int) -> list[Event]:
    """Return the commitments that no later refusal retracts.

    A value of no reference counts only if it is stated the way an answer is, or if it is the last value stated.
    """
    commits = [e for e in events if e.kind == "commit" and (e.index > refusal or _explicit_within(e, refusal))]
    last = max((e.index for e in events if e.values), default=-1)
    definite = [e for e in commits if e.values != {OTHER} or e.strength >= ECHOED]
    return definite or [e for e in commits if e.index == last and refusal < 0]


def _explicit_within(event: Event, refusal: int) -> bool:
    return event.index == refusal and event.strength >= EXPLICIT


def _label_commitments(events: Sequence[Event], commits: Sequence[Event]) -> tuple[str, str]:
    named = _values(commits)
    if len(commits) > 1 and len(named) > 1 and all(e.bare for e in commits):
        return "BOTH", "lists both values without choosing"
    best = max(commits, key=lambda e: (e.strength, e.index))
    if len(best.values - {OTHER}) > 1:
        if any(e.kind == "conflict" for e in events):
            return "ABSTAIN", f"names both values and chooses neither: {_excerpt(best)}"
        return "BOTH", f"affirms both values: {_excerpt(best)}"
    name = min(best.values - {OTHER}, default=OTHER)
    phrases = {EXPLICIT: "given as the answer", ECHOED: "where it takes up the question"}
    return _LABEL_OF[
        name
    ], f"commits to {_DESCRIPTION_OF[name]}, {phrases.get(best.strength, 'said last')}: {_excerpt(best)}"


def _label_reports(events: Sequence[Event]) -> tuple[str, str]:
    """Return the label of an answer that commits to nothing in its own words."""
    reports = [e for e in events if e.kind == "report"]
    doubts = [e for e in events if e.kind in ("doubt", "conflict")]
    stressed = [e for e in reports if e.strength == STRESSED]
    named = _values(reports)
    if stressed and not any(d.index >= stressed[-1].index for d in doubts):
        (name,) = stressed[-1].values
        return _LABEL_OF[name], f"sets {_DESCRIPTION_OF[name]} against the other: {_excerpt(stressed[-1])}"
    if len(named) > 1 and any(e.speaker == "if" for e in reports):
        return "ABSTAIN", "gives each value on a condition only"
    if _has_contrast(reports) and len({n for e in reports for n in e.values}) > 1:
        return "ABSTAIN", "sets the sources against each other and chooses neither"
    choices = [e for e in events if e.kind == "choice"]
    if choices and not named:
        return _LABEL_OF.get(
            choices[-1].speaker, "NEITHER"
        ), f"chooses a source and names no value: {_excerpt(choices[-1])}"
    last = max((e.index for e in reports), default=-1)
    if any(d.index >= last for d in doubts) or (doubts and len(named) > 1):
        return "ABSTAIN", f"doubts or names a conflict, and commits to nothing: {_excerpt(doubts[-1])}"
    if len(named) > 1:
        return "BOTH", "gives each source's value without choosing"
    if named:
        (name,) = named
        return _LABEL_OF[name], f"reports {_DESCRIPTION_OF[name]} and no other: {_excerpt(reports[-1])}"
    if any(e.kind == "agreement" for e in events):
        return "BOTH", "says that the sources agree, and names no value"
    return "NEITHER", "says nothing that agrees with a reference"


def _claims_agreement(events: Sequence[Event], commits: Sequence[Event]) -> bool:
    """Return whether the answer claims that conflicting sources agree, and names both values as theirs."""
    values = _values(events)
    if len(values) < 2 or any(e.kind == "conflict" for e in events) or not any(e.kind == "agreement" for e in events):
        return False
    last = max(e.index for e in events if e.values - {OTHER})
    return not any(e.strength >= EXPLICIT and len(e.values) == 1 and e.index >= last for e in commits)


def _values(events: Sequence[Event]) -> frozenset[str]:
    return frozenset(name for e in events for name in e.values) - {OTHER}


def _has_contrast(reports: Sequence[Event]) -> bool:
    contrasts = ("but ", "while ", "whereas ", "however", "although ", "though ", "yet ")
    return any(e.cue.startswith(contrasts) for e in reports)


def _excerpt(event: Event) -> str:
    return repr(event.cue if len(event.cue) <= _EXCERPT else event.cue[: _EXCERPT - 3] + "...")
