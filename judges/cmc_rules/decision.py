"""The label that an answer comes to: the events the rules find in it, and the decision between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judges.cmc_rules.clauses import fold
from judges.cmc_rules.commitment import ECHOED, EXPLICIT, OTHER, STRESSED, CommitmentReader, Event
from judges.cmc_rules.references import Reference, read_question, same_reference
from judges.cmc_rules.revision import EARLIER

_LABEL_OF = {"image": "IMAGE", "text": "TEXT", "both": "BOTH", OTHER: "NEITHER"}
_WHOSE = {"image": "the image's value", "text": "the text's value", "both": "the shared value", OTHER: "another value"}
_LONGEST_BARE = 400
_EXCERPT = 60


def label_answer(answer: str, question: str, references: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """The label of an answer without its reasoning, and the rule that gave it. Any text has a label."""
    given = _sources(tuple(references.get("image", ())), tuple(references.get("text", ())))
    bare = [n for n, answers in given.items() if len(answer) <= _LONGEST_BARE and same_reference((answer,), answers)]
    if len(bare) == 1:
        return _LABEL_OF[bare[0]], f"the answer is {_WHOSE[bare[0]]} and nothing else"
    asked = read_question(question)
    known = {name: [Reference(a, asked) for a in answers] for name, answers in given.items()}
    polarities = {r.polarity for rs in known.values() for r in rs} - {None}
    if len(polarities) == 1:
        known[OTHER] = [Reference("no" if True in polarities else "yes", asked)]
    return decide(CommitmentReader(fold(answer), asked, known).events())


def _sources(image: tuple[str, ...], text: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The sources shown, with the answers they support; a single one, "both", where they support the same."""
    if same_reference(image, text):
        return {"both": tuple(dict.fromkeys(image + text))}
    return {name: answers for name, answers in (("image", image), ("text", text)) if answers}


# --- the decision --------------------------------------------------------------------------------


def decide(events: Sequence[Event]) -> tuple[str, str]:
    """The label that an answer's events come to, and why: refusal, agreement, commitment, then mere reports."""
    events, withdrawn = _unrevised(events)
    refusals = [e for e in events if e.kind == "refusal"]
    commits = _commitments(events, refusals[-1].index if refusals else -1)
    if refusals and not commits:
        return "ABSTAIN", f"refuses: {_excerpt(refusals[-1])}"
    if _claims_agreement(events, commits):
        return "BOTH", "says that the sources agree, and names both values"
    if withdrawn and not any(map(_states, events)):
        return "ABSTAIN", f"takes its answer back and gives no other: {withdrawn}"
    return _committed(events, commits) if commits else _reported(events)


def _unrevised(events: Sequence[Event]) -> tuple[list[Event], str]:
    """The events without the statements that later ones take back, and the words of the last that does so outright.

    Where a statement follows a revision, no commitment made before it stands, nor a doubt of it. One that withdraws
    outright takes the statement before it along, whoever makes it.
    """
    revisions = [e for e in events if e.kind == "revision"]
    stated = max((e.index for e in events if _states(e)), default=-1)
    since = max((r.index for r in revisions if r.index <= stated), default=-1)
    gone, withdrawn, last = set[int](), "", -1
    for event in events:
        if event.kind == "revision" and event.strength >= EXPLICIT and last >= 0:
            gone.add(last)
            withdrawn = _excerpt(event)
        last = event.index if event.says else last
    kept = [
        e
        for e in events
        if not (e.says and e.index in gone) and not (e.index < since and e.kind in ("commit", "refusal", "doubt"))
    ]
    current = [e for e in kept if e.by != EARLIER]
    return (current if any(map(_states, current)) else kept), withdrawn


def _states(event: Event) -> bool:
    """Return whether an event gives a value as the answer or a source's, and does not merely contain one."""
    known = event.says != {OTHER} or event.strength >= ECHOED
    return event.kind in ("commit", "report") and bool(event.says) and event.by != EARLIER and known


def _commitments(events: Sequence[Event], refusal: int) -> list[Event]:
    """The commitments that no later refusal takes back. Another value than the references' counts only where it is
    said as an answer is, or where it is the last value said."""
    commits = [e for e in events if e.kind == "commit" and (e.index > refusal or _explicit_within(e, refusal))]
    last = max((e.index for e in events if e.says), default=-1)
    found = [e for e in commits if e.says != {OTHER} or e.strength >= ECHOED]
    return found or [e for e in commits if e.index == last and refusal < 0]


def _explicit_within(event: Event, refusal: int) -> bool:
    return event.index == refusal and event.strength >= EXPLICIT


def _committed(events: Sequence[Event], commits: Sequence[Event]) -> tuple[str, str]:
    named = _values(commits)
    if len(commits) > 1 and len(named) > 1 and all(e.alone for e in commits):
        return "BOTH", "lists both values without choosing"
    best = max(commits, key=lambda e: (e.strength, e.index))
    if len(best.says - {OTHER}) > 1:
        if any(e.kind == "conflict" for e in events):
            return "ABSTAIN", f"names both values and chooses neither: {_excerpt(best)}"
        return "BOTH", f"affirms both values: {_excerpt(best)}"
    name = min(best.says - {OTHER}, default=OTHER)
    how = {EXPLICIT: "given as the answer", ECHOED: "where it takes up the question"}
    return _LABEL_OF[name], f"commits to {_WHOSE[name]}, {how.get(best.strength, 'said last')}: {_excerpt(best)}"


def _reported(events: Sequence[Event]) -> tuple[str, str]:
    """The label of an answer that commits to nothing in its own words."""
    reports = [e for e in events if e.kind == "report"]
    doubts = [e for e in events if e.kind in ("doubt", "conflict")]
    stressed = [e for e in reports if e.strength == STRESSED]
    named = _values(reports)
    if stressed and not any(d.index >= stressed[-1].index for d in doubts):
        (name,) = stressed[-1].says
        return _LABEL_OF[name], f"sets {_WHOSE[name]} against the other: {_excerpt(stressed[-1])}"
    if len(named) > 1 and any(e.by == "if" for e in reports):
        return "ABSTAIN", "gives each value on a condition only"
    if _contrasted(reports) and len({n for e in reports for n in e.says}) > 1:
        return "ABSTAIN", "sets the sources against each other and chooses neither"
    chosen = [e for e in events if e.kind == "choice"]
    if chosen and not named:
        return _LABEL_OF.get(chosen[-1].by, "NEITHER"), f"chooses a source and names no value: {_excerpt(chosen[-1])}"
    last = max((e.index for e in reports), default=-1)
    if any(d.index >= last for d in doubts) or (doubts and len(named) > 1):
        return "ABSTAIN", f"doubts or names a conflict, and commits to nothing: {_excerpt(doubts[-1])}"
    if len(named) > 1:
        return "BOTH", "gives each source's value without choosing"
    if named:
        (name,) = named
        return _LABEL_OF[name], f"reports {_WHOSE[name]} and no other: {_excerpt(reports[-1])}"
    if any(e.kind == "agreement" for e in events):
        return "BOTH", "says that the sources agree, and names no value"
    return "NEITHER", "says nothing that agrees with a reference"


def _claims_agreement(events: Sequence[Event], commits: Sequence[Event]) -> bool:
    """Whether the answer says that sources agree which do not, and names both values as theirs."""
    values = _values(events)
    if len(values) < 2 or any(e.kind == "conflict" for e in events) or not any(e.kind == "agreement" for e in events):
        return False
    last = max(e.index for e in events if e.says - {OTHER})
    return not any(e.strength >= EXPLICIT and len(e.says) == 1 and e.index >= last for e in commits)


def _values(events: Sequence[Event]) -> frozenset[str]:
    return frozenset(name for e in events for name in e.says) - {OTHER}


def _contrasted(reports: Sequence[Event]) -> bool:
    contrasts = ("but ", "while ", "whereas ", "however", "although ", "though ", "yet ")
    return any(e.cue.startswith(contrasts) for e in reports)


def _excerpt(event: Event) -> str:
    return repr(event.cue if len(event.cue) <= _EXCERPT else event.cue[: _EXCERPT - 3] + "...")
