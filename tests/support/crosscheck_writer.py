"""A language model by rule that writes CrossCheck-Bench's L2 questions from the clues in its prompt, honestly or with a lie."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.vocabulary import Generation, Request, Text

Reply = dict[str, str]
Clue = dict[str, str]

QUESTIONS = {
    "BrandRecognition*": "Which maker's product do these frames offer?",
    "SPU": "Which of the others is a variant of what the first picture shows?",
    "SKU": "Would somebody who orders either listing get the same thing?",
    "BrandCategory": "Does this maker offer such things at all?",
}
ATTRIBUTES = ("colour", "volume", "weight", "power")


@dataclass(frozen=True)
class ParsedPrompt:
    """The contents of a prompt."""

    task: str
    shown_with: str
    answers: str
    pictures: list[tuple[str, str]]
    clues: list[Clue]


def parse_prompt(prompt: str) -> ParsedPrompt:
    """Parse a prompt of the construction."""
    task = re.search(r"^Task: (.*) \(", prompt, re.MULTILINE)
    shown_with = re.search(r"^What the question is shown with: (.*)$", prompt, re.MULTILINE)
    answers = re.search(r"^Possible answers: (.*)$", prompt, re.MULTILINE)
    assert task
    assert shown_with
    assert answers
    pictures = re.findall(r"^\d\. (\S+), (\S+)$", prompt.split("Possible answers:")[0], re.MULTILINE)
    clues = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"attribute"')]
    return ParsedPrompt(task[1], shown_with[1], answers[1], pictures, clues)


def honest(prompt: str) -> Reply:
    """A good reply: question, deciding clues, answer."""
    task = parse_prompt(prompt)
    facts, answer = _RULES[task.task](task)
    return {
        "question": QUESTIONS[task.task],
        "facts": ", ".join(facts),
        "answer": answer,
        "reasoning": "It follows from the clues.",
    }


def _brand(task: ParsedPrompt) -> tuple[list[str], str]:
    brand = [clue for clue in task.clues if clue["attribute"] == "brand"]
    product = [clue["id"] for clue in task.clues if clue["attribute"] == "product"]
    return [clue["id"] for clue in brand[:1]] + product[:2], brand[0]["value"] if brand else "Unknown"


def _spu(task: ParsedPrompt) -> tuple[list[str], str]:
    style = {clue["entity"]: clue for clue in task.clues if clue["attribute"] == "spu"}
    first, *others = (style[entity] for entity, _ in task.pictures)
    same = [i for i, clue in enumerate(others) if clue["value"] == first["value"]]
    if len(others) == 1:
        return [first["id"], others[0]["id"]], "Yes" if same else "No"
    return [first["id"], others[same[0]]["id"]], "ABCD"[same[0]]


def _sku(task: ParsedPrompt) -> tuple[list[str], str]:
    titles = re.findall(r'Title "([^"]*)"', task.shown_with)
    sides = [
        {
            clue["attribute"]: clue
            for clue in task.clues
            if clue["entity"] == entity
            and clue["attribute"] in ATTRIBUTES
            and (clue["id"].split("/")[1] == view or clue["value"] in title)
        }
        for (entity, view), title in zip(task.pictures, titles, strict=True)
    ]
    both = sides[0].keys() & sides[1].keys()
    facts = [clue["id"] for side in sides for clue in side.values()]
    if any(sides[0][name]["value"] != sides[1][name]["value"] for name in both):
        return facts, "B"
    return facts, "A" if sides[0].keys() == sides[1].keys() else "C"


def _category(task: ParsedPrompt) -> tuple[list[str], str]:
    product = next(clue for clue in task.clues if clue["attribute"] == "product")
    sells = [clue for clue in task.clues if clue["attribute"] == "sells"]
    answer = "Yes" if product["value"] in [clue["value"] for clue in sells] else "No"
    return [product["id"], *(clue["id"] for clue in sells)], answer


_RULES: dict[str, Callable[[ParsedPrompt], tuple[list[str], str]]] = {
    "BrandRecognition*": _brand,
    "SPU": _spu,
    "SKU": _sku,
    "BrandCategory": _category,
}


def _other(prompt: str) -> str:
    answer = honest(prompt)["answer"]
    if answer in ("Yes", "No"):
        return "No" if answer == "Yes" else "Yes"
    if len(answer) == 1:
        return "B" if answer == "A" else "A"
    return "Nobody"


LIES: dict[str, tuple[str, Callable[[str, Reply], Reply]]] = {
    "names a fact that is not there": ("facts", lambda p, r: r | {"facts": r["facts"] + ", moon/front/brand"}),
    "names a true fact of a picture that is not shown": (
        "facts",
        lambda p, r: r | {"facts": r["facts"] + ", plain-mug-300/listing/price"},
    ),
    "leaves the deciding facts out": (
        "clues",
        lambda p, r: r | {"facts": _beside_the_point(p)},
    ),
    "answers wrongly": ("answer", lambda p, r: r | {"answer": _other(p)}),
    "answers what was not offered": ("answer", lambda p, r: r | {"answer": "perhaps"}),
    "puts a picture into the question": ("picture-mark", lambda p, r: r | {"question": "<image> What is this?"}),
    "says the answer": ("leak", lambda p, r: r | {"question": f"Is it so? The answer is {r['answer']}."}),
    "invents a brand": ("invented", lambda p, r: r | {"question": f"Is this {_strange(p)} as sold last year?"}),
    "invents a number": ("invented", lambda p, r: r | {"question": "Is the one that holds 31 litres among them?"}),
}
"""A lie's description: the check that catches it, and what it makes of an honest reply."""

NOISE: dict[str, str] = {
    "prose": "Here is a question for you: which brand is it?",
    "list": '[{"question": "Which?"}]',
    "missing field": '{"question": "Which?", "facts": "", "answer": "A"}',
    "two lines": '{"question": "Which?\\nAnswer A.", "facts": "a", "answer": "A", "reasoning": "x"}',
    "too long": json.dumps(
        {"question": "Which? " * 200, "facts": "a", "answer": "A", "reasoning": "It follows from the clues."}
    ),
}
"""Replies that cannot be read."""


def _beside_the_point(prompt: str) -> str:
    """A true clue that decides nothing: a colour, or for two SKUs what kind of product they are."""
    task = parse_prompt(prompt)
    attribute = "product" if task.task == "SKU" else "colour"
    return next(clue["id"] for clue in task.clues if clue["attribute"] == attribute)


def _strange(prompt: str) -> str:
    """A brand of the set that the prompt does not show with the question."""
    task = parse_prompt(prompt)
    brands = ("Lumora", "Lumera", "Nordbrew", "Kestra", "Velmo", "Sonnar", "Plovo")
    own = {clue["value"] for clue in task.clues if clue["attribute"] == "brand"}
    return next(name for name in brands if name not in task.shown_with and name not in own)


def text_of(request: Request) -> str:
    """The prompt of a request."""
    part = request.messages[0].parts[0]
    assert isinstance(part, Text)
    return part.text


def as_generation(reply: Reply | str) -> Generation:
    """A reply as a backend gives it."""
    return Generation("", reply if isinstance(reply, str) else json.dumps(reply), "stop")
