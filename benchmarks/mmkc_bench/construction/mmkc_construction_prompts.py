"""The prompts of the construction.

Those of Figures 8 to 11 are as printed. Those of logos have the printed form with the texts of Figure 21; that of visual
semantics is ours, in the same form. The paper does not print how a prompt receives its input: it becomes one more turn
of the printed example.
"""

from __future__ import annotations

from dataclasses import dataclass

_PEOPLE = "The person in the image is Musk. Musk was born in {year}. Musk is an {nation}. and Musk is a {work}."
_BRAND = "Coca-Cola was created in {year}, and created by {creator}. Coca-Cola is the brand of {product}."


@dataclass(frozen=True, slots=True)
class _PromptExample:
    """A printed example: the input, and the two texts of the output."""

    before: str
    first: str
    second: str


def _person(year: str = "1971", nation: str = "American", work: str = "businessman") -> str:
    return _PEOPLE.format(year=year, nation=nation, work=work)


def _brand(year: str = "1886", creator: str = "John Stith Pemberton", product: str = "a carbonated soft drink") -> str:
    return _BRAND.format(year=year, creator=creator, product=product)


def _prompt(task: str, rules: tuple[str, str], example: _PromptExample) -> str:
    return (
        "You are a powerful counterfactual knowledge generator. Please read the following knowledge carefully, "
        f"{task} You must meet the following rules.\n\n"
        f"Rule1: {rules[0]}\nRule2: {rules[1]}\n\n"
        f"Example User:\n\nInput: {example.before}\nOutput:\n\n1. {example.first}\n2. {example.second}"
    )


def _replacing(target: str) -> str:
    return f"replace the {target} with counterfactual knowledge, and generate two different counterfactual knowledge."


_NAME_RULES = ("Only the entity name is replaced.", "Other information remains the same")
_CONSISTENT = "It is imperative to ensure that other aspects of knowledge remain consistent."
_WHITE_HOUSE = "The building in this image is the {name}. The {name} is located in the United States. {style}."

WRITER_PROMPTS = {
    "ER": _prompt(
        "replace the entity names with counterfactuals, and generate two different counterfactuals.",
        _NAME_RULES,
        _PromptExample(
            _WHITE_HOUSE.format(name="White House", style="The design style of the White House is neoclassical"),
            _WHITE_HOUSE.format(name="Forbidden City", style="The design style of the Forbidden City is neoclassical"),
            _WHITE_HOUSE.format(
                name="Empire State Building", style="The Empire State Building is designed in a neoclassical style"
            ),
        ),
    ),
    "PT": _prompt(
        _replacing("temporal knowledge"),
        ("Only the year of the time can be replaced.", _CONSISTENT),
        _PromptExample(_person(), _person(year="1975"), _person(year="1977")),
    ),
    "PL": _prompt(
        _replacing("character nationality knowledge"),
        ("You can only change the nationality of the character.", _CONSISTENT),
        _PromptExample(_person(), _person(nation="Chinese"), _person(nation="Indian")),
    ),
    "PC": _prompt(
        _replacing("character occupation knowledge"),
        _NAME_RULES,
        _PromptExample(_person(), _person(work="singer"), _person(work="chef")),
    ),
    "LT": _prompt(
        _replacing("temporal knowledge"),
        ("Only the year of the time can be replaced.", _CONSISTENT),
        _PromptExample(_brand(), _brand(year="1890"), _brand(year="1882")),
    ),
    "LC": _prompt(
        _replacing("brand creator knowledge"),
        ("You can only change the creator of the brand.", _CONSISTENT),
        _PromptExample(_brand(), _brand(creator="Jack"), _brand(creator="Tom")),
    ),
    "LO": _prompt(
        _replacing("brand product knowledge"),
        ("You can only change the main products of the brand.", _CONSISTENT),
        _PromptExample(_brand(), _brand(product="cloth"), _brand(product="tools")),
    ),
    "VS": _prompt(
        "replace the visual semantics with counterfactuals, and generate two different counterfactuals.",
        ("Only the meaning of the image is replaced.", "Other information remains the same"),
        _PromptExample("This is a happy expression.", "This is a sad expression.", "This is a nervous expression."),
    ),
}

CHECKER_PROMPT = """\
Somebody was to replace one answer by another of the same kind that is wrong. Question: {question}
Right answer: {own}
Other answer: {counter}
Is the other answer of the same kind as the right one, and does it certainly mean something else? Reply yes or no."""
"""The prompt of the checking model, if there is one. Ours: the paper has people look at every text."""


def writer_prompt(kind: str, text: str) -> str:
    """Return the prompt for two edits of ``text``, which is one line."""
    return f"{WRITER_PROMPTS[kind]}\n\nUser:\n\nInput: {text}\nOutput:\n"


def checker_prompt(question: str, own: str, counter: str) -> str:
    """Return the prompt that checks one counter answer."""
    return CHECKER_PROMPT.format(question=question, own=own, counter=counter)
