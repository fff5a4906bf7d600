"""L2 questions written by a text model under structured instructions (section "Question Generation").

The model receives a draft's pictures as clues, writes the question, and names the clues and the answer that follows;
the reply is checked against the graph. The paper does not print its instructions, so these are ours. Its human
reviewers are the annotators of ``quality_control``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.crosscheck_bench.construction.clue_graph import Clue, occurs_in
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft
from benchmarks.crosscheck_bench.construction.template_data import TemplateData
from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS, TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER
from benchmarks.text.json_replies import UnreadableReply, line_field, read_object
from benchmarks.text.normal_form import normalise
from benchmarks.text_model import TextModel, generate_all
from benchmarks.values import compare
from benchmarks.vocabulary import Decoding, Generation, JSONObject, Message, Request, Text, canonical_json, digest

ATTEMPTS = 3
"""The number of times the writer is prompted before a draft with unreadable replies is dropped."""

_DECODING = Decoding(max_tokens=512)
_RETRY_TEMPERATURE = 0.7
_MAX_QUOTED = 600
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_STATED_ANSWER = re.compile(r"\b(?:correct |right )?answer\b\W*(?:is|=|:)", re.IGNORECASE)

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
    """The writer's reply."""

    question: str
    facts: tuple[str, ...]
    answer: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """A draft that gave no sample: the check that failed, the reason, and the reply."""

    draft: QuestionDraft
    check: str
    reason: str
    reply: str = ""

    def __str__(self) -> str:
        replied = f"; reply: {canonical_json(self.reply[:_MAX_QUOTED])}" if self.reply else ""
        return f"{self.check}: {self.reason}{replied}"


Check = Callable[[ModelQuestion, QuestionDraft, Mapping[str, Clue], TemplateData], str | None]
"""A function that returns why a question is rejected, or None; its third argument is the clues the writer saw, by id.
"""


def write_questions(
    drafts: Sequence[QuestionDraft], target: int, data: TemplateData, model: TextModel
) -> Iterator[QuestionDraft | RejectedQuestion]:
    """Yield at most ``target`` drafts of one task with questions written by ``model``, and the rejected ones.

    Drafts are taken in order, as many at a time as are still needed; a rejected draft is replaced by another of its
    stratum, which keeps the balance. Raises ModelError if the model answers none of many requests.
    """
    waiting: defaultdict[str, list[QuestionDraft]] = defaultdict(list)
    for draft in drafts:
        waiting[draft.stratum].append(draft)
    wave = list(drafts[:target])
    for draft in wave:
        waiting[draft.stratum].remove(draft)
    while wave:
        outcomes = _write_wave(wave, data, model)
        yield from outcomes
        strata = [outcome.draft.stratum for outcome in outcomes if isinstance(outcome, RejectedQuestion)]
        wave = [waiting[stratum].pop(0) for stratum in strata if waiting[stratum]]


def writer_prompt(draft: QuestionDraft, data: TemplateData) -> str:
    """Return the writer's prompt for a draft."""
    task = TASKS[draft.task]
    clues = "\n".join(canonical_json(_clue(fact)) for fact in visible_clues(draft, data).values())
    return INSTRUCTION.format(
        name=task.name,
        what=task.description,
        ask=draft.ask,
        given=" ".join(piece for piece in (draft.context, draft.text) if piece),
        answers=", ".join(_answers(draft)),
        pictures="\n".join(f"{n}. {shot.product.id}, {shot.picture.view}" for n, shot in enumerate(draft.shots, 1)),
        clues=clues,
    )


def visible_clues(draft: QuestionDraft, data: TemplateData) -> dict[str, Clue]:
    """Return the clues visible in a draft, by id: those of its pictures and titles, the style, and a brand's categories."""
    clues: dict[str, Clue] = {}
    for shot in draft.shots:
        graph = data.graphs[shot.product.id]
        for fact in graph.facts:
            title = fact.place == "title" and any(occurs_in(fact.value, title) for title in draft.titles)
            style = fact.place == "listing" and fact.attribute == "spu" and draft.task == "SPU"
            if fact.place == shot.picture.view or title or style:
                clues[fact.id] = fact
    return clues | {fact.id: fact for fact in draft.clues}


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


def _write_wave(
    drafts: Sequence[QuestionDraft], data: TemplateData, model: TextModel
) -> list[QuestionDraft | RejectedQuestion]:
    """Return the outcome of each draft; unreadable replies are requested again, all in one batch."""
    ended: dict[int, QuestionDraft | RejectedQuestion] = {}
    for attempt in range(ATTEMPTS):
        open_drafts = [
            i for i in range(len(drafts)) if not isinstance(ended.get(i), QuestionDraft) and _needs_retry(ended.get(i))
        ]
        if not open_drafts:
            break
        replies = _ask([drafts[i] for i in open_drafts], data, model, attempt)
        for i, reply in zip(open_drafts, replies, strict=True):
            ended[i] = _outcome(drafts[i], reply, data)
    return [ended[i] for i in range(len(drafts))]


def _needs_retry(ended: QuestionDraft | RejectedQuestion | None) -> bool:
    return ended is None or (isinstance(ended, RejectedQuestion) and ended.check == "unparsed")


def _ask(drafts: Sequence[QuestionDraft], data: TemplateData, model: TextModel, attempt: int) -> list[Generation]:
    # A greedy reply is the same under any seed, so retries sample.
    decoding = replace(_DECODING, seed=attempt, temperature=_RETRY_TEMPERATURE if attempt else 0.0)
    requests: dict[str, Request] = {}
    for draft in drafts:
        text = writer_prompt(draft, data)
        message = Message("user", (Text(text),))
        requests[text] = Request(f"crosscheck-{digest(text)[:16]}", attempt, (message,), decoding, FORM)
    replies = generate_all(model, requests.values())
    nothing = Generation("", "", "error", error="no reply came")
    return [replies.get(requests[writer_prompt(draft, data)].id, nothing) for draft in drafts]


def _outcome(draft: QuestionDraft, reply: Generation, data: TemplateData) -> QuestionDraft | RejectedQuestion:
    if reply.finish_reason == "error":
        return RejectedQuestion(draft, "error", f"the writer gave no reply ({reply.error})")
    try:
        question = _read(reply.text)
    except UnreadableReply as error:
        truncation = ", and was cut at the token limit" if reply.finish_reason == "length" else ""
        return RejectedQuestion(
            draft, "unparsed", f"the writer's reply cannot be read: {error}{truncation}", reply.text
        )
    clues = visible_clues(draft, data)
    for name, check in CHECKS.items():
        reason = check(question, draft, clues, data)
        if reason is not None:
            return RejectedQuestion(draft, name, reason, reply.text)
    named = tuple(clues[name] for name in question.facts)
    return replace(draft, ask=question.question, clues=named, reasoning=question.reasoning, origin="model")


def _read(reply: str) -> ModelQuestion:
    value = read_object(reply)
    question, facts, answer, reasoning = (line_field(value, name) for name in FORM.properties)
    return ModelQuestion(
        question, tuple(name for item in facts.split(",") if (name := item.strip())), answer, reasoning
    )


# --- checks --------------------------------------------------------------------------------------


def _known_facts(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    unknown = [name for name in question.facts if name not in clues]
    return f"{unknown[0][:80]!r} is no clue of what is shown" if unknown else None


def _deciding_facts(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    """Check that the named clues include those that decide the answer, by entity, attribute and value."""
    named = {_content(clues[name]) for name in question.facts}
    missing = [fact for fact in draft.clues if _content(fact) not in named]
    return f"the answer does not follow without {missing[0].id}" if missing else None


def _content(fact: Clue) -> tuple[str, str, str]:
    return fact.entity, fact.attribute, normalise(fact.value)


def _right_answer(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    # The instruction lists possible answers as "A (Confirmed ...)".
    answer = question.answer.split(" ", 1)[0].rstrip(".):") if draft.options else question.answer
    if compare(answer, draft.answer, question.question).verdict == "same":
        return None
    return f"the graph says {draft.answer!r}, the writer {question.answer[:80]!r}"


def _plain_question(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    return (
        f"the question holds {IMAGE_PLACEHOLDER}, which marks where a picture stands"
        if IMAGE_PLACEHOLDER in question.question
        else None
    )


def _hidden_answer(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    if _STATED_ANSWER.search(question.question):
        return "the question says what the answer is"
    answer = draft.options[LETTERS.index(draft.answer)] if draft.options else draft.answer
    if answer not in ("Yes", "No") and occurs_in(answer, question.question):
        return f"the question holds the answer {answer!r}"
    return None


def _nothing_invented(
    question: ModelQuestion, draft: QuestionDraft, clues: Mapping[str, Clue], data: TemplateData
) -> str | None:
    visible_text = f"{draft.context} {draft.ask} {draft.text}"
    for name in data.brand_names:
        if occurs_in(name, question.question) and not occurs_in(name, visible_text):
            return f"the question names {name!r}, which is not shown with it"
    visible_numbers = {normalise(number) for number in _NUMBER.findall(visible_text)}
    invented = [number for number in _NUMBER.findall(question.question) if normalise(number) not in visible_numbers]
    return f"the question names the number {invented[0]}, which is not shown with it" if invented else None


CHECKS: Mapping[str, Check] = {
    "facts": _known_facts,
    "clues": _deciding_facts,
    "answer": _right_answer,
    "picture-mark": _plain_question,
    "leak": _hidden_answer,
    "invented": _nothing_invented,
}
"""The automatic checks in order, by the name recorded with a rejected reply."""
