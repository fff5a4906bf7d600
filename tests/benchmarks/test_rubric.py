"""Rubrics: which replies are a label, and the order in which the references stand."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cmc_bench.cmc_rubric import CMCRubric
from benchmarks.crosscheck_bench.crosscheck_rubric import CrossCheckRubric
from benchmarks.mmkc_bench.mmkc_rubric import MMKCRubric
from benchmarks.rubric import Rubric, is_drawn_reversed
from benchmarks.vocabulary import Generation, Instance, Record

RUBRICS: list[Rubric] = [CMCRubric(), MMKCRubric(), CrossCheckRubric()]
SPACE = st.text(" \t\n\r\u00a0\u2003\u3000\u200b", max_size=4)
AROUND = [("", ""), ("**", "**"), ('"', '"'), ("“", "”"), ("'", "'"), ("`", "`"), ("*", "*."), ("", "."), ("__", "__")]
FORMS: dict[str, Callable[[str], str]] = {
    "bare": lambda label: label,
    "JSON": lambda label: json.dumps({"label": label}),
    "JSON with other fields": lambda label: json.dumps({"reason": "it names IMAGE and TEXT", "label": label, "n": 0.9}),
    "JSON with another field of this label": lambda label: json.dumps({"label": label, "answer": label}),
    "JSON, indented": lambda label: json.dumps({"Label": label, "confidence": None}, indent=2),
    "fenced JSON": lambda label: f"```json\n{json.dumps({'label': label})}\n```",
    "fenced": lambda label: f"```\n{label}\n```",
    "reasoned": lambda label: f"<think>IMAGE or TEXT?</think>{label}",
}

rubrics_and_labels = st.sampled_from([(rubric, label) for rubric in RUBRICS for label in rubric.labels])


def in_any_case(label: str) -> st.SearchStrategy[str]:
    cases = st.lists(st.booleans(), min_size=len(label), max_size=len(label))
    return cases.map(lambda upper: "".join(c.upper() if up else c.lower() for c, up in zip(label, upper, strict=True)))


@given(data=st.data(), of=rubrics_and_labels, form=st.sampled_from(sorted(FORMS)), around=st.sampled_from(AROUND))
def test_a_label_in_any_of_these_forms_is_read(
    data: st.DataObject, of: tuple[Rubric, str], form: str, around: tuple[str, str]
) -> None:
    rubric, label = of
    spaces = [data.draw(SPACE) for _ in range(4)]
    dressed = f"{around[0]}{spaces[0]}{data.draw(in_any_case(label))}{spaces[1]}{around[1]}"
    reply = f"{spaces[2]}{FORMS[form](dressed)}{spaces[3]}"
    if form not in ("bare", "reasoned", "fenced"):  # invisible characters outside of the field are no JSON
        reply = reply.strip("\u200b\u00a0\u2003\u3000 \t\n\r")
    assert rubric.read(reply) == rubric.benchmark_label(label)


@given(data=st.data(), rubric=st.sampled_from(RUBRICS), case=st.integers(0, 6))
def test_a_reply_with_two_labels_is_none(data: st.DataObject, rubric: Rubric, case: int) -> None:
    first, second = data.draw(st.permutations(rubric.labels))[:2]
    between = data.draw(st.sampled_from([" ", ", ", "\n", " or ", " and ", " / ", ". ", "** **"]))
    replies = [
        f"{first}{between}{second}",
        json.dumps({"label": first, "second": second}),
        json.dumps({"label": f"{first}{between}{second}"}),
        json.dumps({"label": [first, second]}),
        f'{{"label": "{first}", "label": "{second}"}}',
        f'{{"label": "{first}"}}{between}{{"label": "{second}"}}',
        f"```\n{first}\n```\n```\n{second}\n```",
    ]
    assert rubric.read(replies[case]) is None


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "{}",
        "[]",
        "null",
        '"',
        "```",
        "``````",
        '{"label": null}',
        '{"label": ["IMAGE"]}',
        '{"verdict": "IMAGE"}',
        "The label is IMAGE",
        "IMAGES",
        "not IMAGE",
        '{"label": "IMAGE"',
        '[["label", "IMAGE"]]',
        '"label": "IMAGE"',
        "I cannot label this answer.",
        '{"label": {"label": "IMAGE"}}',
        "IMAGE because TEXT is wrong",
    ],
)
def test_what_is_not_exactly_one_label_is_none(reply: str) -> None:
    assert CMCRubric().read(reply) is None


@given(reply=st.text(st.sampled_from("IMAGETEX{}[]\"':,` \n*<>/labe"), max_size=60))
def test_any_reply_is_a_label_or_none(reply: str) -> None:
    assert CMCRubric().read(reply) in (None, *CMCRubric.labels)


def record(number: int) -> Record:
    instance = Instance(
        f"{number}", "", "image-correct", "Which?", (), {"image": ("this",), "text": ("that",), "answer": ("x",)}
    )
    return Record(instance, (Generation("", "these", "stop"),), basis=Generation("", "those", "stop"))


@pytest.mark.parametrize(
    ("rubric", "references", "labels"),
    [
        (CMCRubric(), ("The image says: this", "The text says: that"), ("- IMAGE:", "- TEXT:")),
        (MMKCRubric(), ("Original answer: those", "Answer of the evidence 1: that"), ("ORIGINAL:", "COUNTER:")),
    ],
)
def test_each_reference_is_first_in_half_of_the_prompts_of_our_own_rubrics(
    rubric: Rubric, references: tuple[str, str], labels: tuple[str, str]
) -> None:
    first = []
    for number in range(200):
        prompt, swapped = rubric.prompt(record(number)), rubric.reversed().prompt(record(number))
        assert prompt == rubric.prompt(record(number)), "the same each time"
        assert sorted(prompt) == sorted(swapped), "nothing but the order changes"
        order = prompt.index(references[0]) < prompt.index(references[1])
        assert order == (prompt.index(labels[0]) < prompt.index(labels[1])), "labels stand in the references' order"
        assert order != (swapped.index(references[0]) < swapped.index(references[1]))
        assert order != is_drawn_reversed(f"{number}")
        first.append(order)
    assert 75 < sum(first) < 125


def test_the_instruction_names_no_label_first_by_itself() -> None:
    prompts = [CMCRubric().prompt(record(number)) for number in range(20)]
    endings = {prompt.rpartition("with one of ")[2] for prompt in prompts}
    assert endings == {"IMAGE, TEXT, BOTH, NEITHER, ABSTAIN.", "TEXT, IMAGE, BOTH, NEITHER, ABSTAIN."}
    assert all('{"label": "..."}' in prompt for prompt in prompts)


def test_a_source_that_was_not_shown_is_named_so() -> None:
    instance = Instance("1", "", "image-only", "Which?", (), {"image": ("", "this")})
    prompt = CMCRubric().prompt(Record(instance, (Generation("", "these", "stop"),)))
    assert "The image says: this\n" in prompt
    assert "The text says: (not shown)\n" in prompt
