"""L2 by a text model under structured instructions (section "Question Generation"): it is given a draft's pictures as clues,
writes the question, and names the clues and the answer that follows; what it replies is checked against the graph.

The paper does not print its instructions: these are ours. Its human reviewers are ``quality.py``'s annotators.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.base import Decoding, Generation, JSONObject, Message, Request, Text, canonical_json, digest
from benchmarks.crosscheck_bench.constants import LETTERS, TASKS
from benchmarks.crosscheck_bench.construction.clue_graph import Clue, stands_in
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft
from benchmarks.crosscheck_bench.construction.template_data import TemplateData
from benchmarks.crosscheck_bench.sample import PLACE
from benchmarks.text.answer_equality import normalise
from benchmarks.text.json_replies import UnreadableReply, field, read_object
from benchmarks.text_model import TextModel, ask_all

ATTEMPTS = 3
"""How often the writer is asked before a draft is given up for a reply that cannot be read."""

_DECODING = Decoding(max_tokens=512)
_WARMER = 0.7
_SHOWN = 600
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_GIVEN_AWAY = re.compile(r"\b(?:correct |right )?answer\b\W*(?:is|=|:)", re.IGNORECASE)

INSTRUCTION = """You write one question for a benchmark that tests whether a vision-language model can check the sources of a product listing against each other.

Task: {name} ({what}).
What a person is asked in this task: {ask}
What the question is shown with: {given}
Pictures, in the order of <image>, each with its entity and view:
{pictures}
Possible answers: {answers}

Clues, each with its id, entity, modality, attribute and value:
{clues}

Write a question of the same meaning as the one above, in your own words, that can be answered only by putting together at least two of the clues. Rules:
1. The question is one line. It names no brand and no number that is not shown with it, and it does not say or hint at the answer.
2. "facts" are the ids of the clues that decide the answer, separated by commas, and no others.
3. "answer" is one of the possible answers, exactly as it stands there.

Reply with a JSON object with the fields "question", "facts", "answer" and "reasoning", each of them one line of text."""  # noqa: E501

FORM = JSONObject({"question": (), "facts": (), "answer": (), "reasoning": ()})


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """What the writer replied."""

    question: str
    facts: tuple[str, ...]
    answer: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """A draft that gave no sample: which check refused it, why, and what was replied."""

    draft: QuestionDraft
    check: str
    reason: str
    reply: str = ""

    def __str__(self) -> str:
        replied = f"; reply: {canonical_json(self.reply[:_SHOWN])}" if self.reply else ""
        return f"{self.check}: {self.reason}{replied}"


Check = Callable[[ModelQuestion, QuestionDraft, Mapping[str, Clue], TemplateData], str | None]
"""Why what was written is refused, or None. Third: the clues that the writer was shown, by id."""


def written(
    drafts: Sequence[QuestionDraft], target: int, material: TemplateData, model: TextModel
) -> Iterator[QuestionDraft | RejectedQuestion]:
    """At most ``target`` drafts of one task with questions that ``model`` wrote, and those it failed at.

    Drafts are taken in order, as many at a time as are wanted; each that is rejected is followed by a further one of its
    stratum, so that the balance stays. Raises ModelError where the model answers none of many requests.
    """
    waiting: defaultdict[str, list[QuestionDraft]] = defaultdict(list)
    for draft in drafts:
        waiting[draft.stratum].append(draft)
    wave = list(drafts[:target])
    for draft in wave:
        waiting[draft.stratum].remove(draft)
    while wave:
        outcomes = _wave(wave, material, model)
        yield from outcomes
        strata = [outcome.draft.stratum for outcome in outcomes if isinstance(outcome, RejectedQuestion)]
        wave = [waiting[stratum].pop(0) for stratum in strata if waiting[stratum]]


def prompt(draft: QuestionDraft, material: TemplateData) -> str:
    """What the writer is asked about a draft."""
    task = TASKS[draft.task]
    clues = "\n".join(canonical_json(_clue(fact)) for fact in offered(draft, material).values())
    return INSTRUCTION.format(
        name=task.name,
        what=task.what,
        ask=draft.ask,
        given=" ".join(each for each in (draft.given, draft.text) if each),
        answers=", ".join(_answers(draft)),
        pictures="\n".join(f"{n}. {shot.product.id}, {shot.picture.view}" for n, shot in enumerate(draft.shots, 1)),
        clues=clues,
    )


def offered(draft: QuestionDraft, material: TemplateData) -> dict[str, Clue]:
    """The clues of what a draft shows, by id: its pictures', its titles', the style, and what a brand sells."""
    found: dict[str, Clue] = {}
    for shot in draft.shots:
        graph = material.graphs[shot.product.id]
        for fact in graph.facts:
            title = fact.place == "title" and any(stands_in(fact.value, title) for title in draft.titles)
            style = fact.place == "listing" and fact.attribute == "spu" and draft.task == "SPU"
            if fact.place == shot.picture.view or title or style:
                found[fact.id] = fact
    return found | {fact.id: fact for fact in draft.clues}


def _clue(fact: Clue) -> dict[str, str]:
    return {
        "id": fact.id,
        "entity": fact.entity,
        "modality": fact.modality,
        "attribute": fact.attribute,
        "value": fact.value,
    }


def _answers(draft: QuestionDraft) -> list[str]:
    if draft.options:
        return [f"{letter} ({option})" for letter, option in zip(LETTERS, draft.options, strict=False)]
    return ["Yes", "No"] if draft.answer in ("Yes", "No") else ["the brand's name", "Unknown"]


# --- asking --------------------------------------------------------------------------------------


def _wave(
    drafts: Sequence[QuestionDraft], material: TemplateData, model: TextModel
) -> list[QuestionDraft | RejectedQuestion]:
    """How each of the drafts ends; what cannot be read is asked for again, all together."""
    ended: dict[int, QuestionDraft | RejectedQuestion] = {}
    for attempt in range(ATTEMPTS):
        left = [i for i in range(len(drafts)) if not isinstance(ended.get(i), QuestionDraft) and _again(ended.get(i))]
        if not left:
            break
        replies = _ask([drafts[i] for i in left], material, model, attempt)
        for i, reply in zip(left, replies, strict=True):
            ended[i] = _outcome(drafts[i], reply, material)
    return [ended[i] for i in range(len(drafts))]


def _again(ended: QuestionDraft | RejectedQuestion | None) -> bool:
    return ended is None or (isinstance(ended, RejectedQuestion) and ended.check == "unparsed")


def _ask(drafts: Sequence[QuestionDraft], material: TemplateData, model: TextModel, attempt: int) -> list[Generation]:
    # A greedy reply is the same under any seed, so asking again is not greedy.
    decoding = replace(_DECODING, seed=attempt, temperature=_WARMER if attempt else 0.0)
    requests: dict[str, Request] = {}
    for draft in drafts:
        text = prompt(draft, material)
        message = Message("user", (Text(text),))
        requests[text] = Request(f"crosscheck-{digest(text)[:16]}", attempt, (message,), decoding, FORM)
    found = ask_all(model, requests.values())
    nothing = Generation("", "", "error", error="no reply came")
    return [found.get(requests[prompt(draft, material)].id, nothing) for draft in drafts]


def _outcome(draft: QuestionDraft, reply: Generation, material: TemplateData) -> QuestionDraft | RejectedQuestion:
    if reply.finish_reason == "error":
        return RejectedQuestion(draft, "error", f"the writer gave no reply ({reply.error})")
    try:
        found = _read(reply.text)
    except UnreadableReply as error:
        cut = ", and was cut at the token limit" if reply.finish_reason == "length" else ""
        return RejectedQuestion(draft, "unparsed", f"the writer's reply cannot be read: {error}{cut}", reply.text)
    clues = offered(draft, material)
    for name, check in CHECKS.items():
        reason = check(found, draft, clues, material)
        if reason is not None:
            return RejectedQuestion(draft, name, reason, reply.text)
    named = tuple(clues[name] for name in found.facts)
    return replace(draft, ask=found.question, clues=named, reasoning=found.reasoning, made="model")


def _read(reply: str) -> ModelQuestion:
    value = read_object(reply)
    question, facts, answer, reasoning = (field(value, name) for name in FORM.properties)
    return ModelQuestion(
        question, tuple(name for each in facts.split(",") if (name := each.strip())), answer, reasoning
    )


# --- checks --------------------------------------------------------------------------------------


def _known_facts(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    unknown = [name for name in found.facts if name not in clues]
    return f"{unknown[0][:80]!r} is no clue of what is shown" if unknown else None


def _deciding_facts(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    """The answer follows from the clues that the graph decides it by; one of the same entity, attribute and value will do."""
    named = {_content(clues[name]) for name in found.facts}
    missing = [fact for fact in draft.clues if _content(fact) not in named]
    return f"the answer does not follow without {missing[0].id}" if missing else None


def _content(fact: Clue) -> tuple[str, str, str]:
    return fact.entity, fact.attribute, normalise(fact.value)


def _right_answer(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    # "A (Confirmed ...)" is how the possible answers stand in the instruction.
    said = found.answer.split(" ", 1)[0].rstrip(".):") if draft.options else found.answer
    if normalise(said) == normalise(draft.answer):
        return None
    return f"the graph says {draft.answer!r}, the writer {found.answer[:80]!r}"


def _plain_question(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    return f"the question holds {PLACE}, which marks where a picture stands" if PLACE in found.question else None


def _kept_secret(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    if _GIVEN_AWAY.search(found.question):
        return "the question says what the answer is"
    answer = draft.options[LETTERS.index(draft.answer)] if draft.options else draft.answer
    if answer not in ("Yes", "No") and stands_in(answer, found.question):
        return f"the question holds the answer {answer!r}"
    return None


def _nothing_invented(
    found: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], material: TemplateData
) -> str | None:
    shown = f"{draft.given} {draft.ask} {draft.text}"
    for name in material.names:
        if stands_in(name, found.question) and not stands_in(name, shown):
            return f"the question names {name!r}, which is not shown with it"
    known = {normalise(number) for number in _NUMBER.findall(shown)}
    strange = [number for number in _NUMBER.findall(found.question) if normalise(number) not in known]
    return f"the question names the number {strange[0]}, which is not shown with it" if strange else None


CHECKS: Mapping[str, Check] = {
    "facts": _known_facts,
    "clues": _deciding_facts,
    "answer": _right_answer,
    "picture-mark": _plain_question,
    "leak": _kept_secret,
    "invented": _nothing_invented,
}
"""The automatic checks, by the name that a rejected reply is noted under, in their order."""
