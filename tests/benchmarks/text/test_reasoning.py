"""Tests of the rule that takes the answer out of a reply."""

from __future__ import annotations

from time import perf_counter

import pytest

from benchmarks.text.answer_text import visible_answer
from benchmarks.text.reasoning import Reply, opened_reasoning, read_reply

BODY = "The chart shows 43. The passage says 68, so I cannot decide."
WRAPS = [
    ("<think>", "</think>"),
    ("<Thinking>", "</Thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>\n\n<|begin_of_solution|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("Here is my thought process: ", "Here is my response: "),
]


@pytest.mark.parametrize(("opening", "closing"), WRAPS)
def test_reasoning_is_no_part_of_the_answer(opening: str, closing: str) -> None:
    assert read_reply(f"{opening}\n{BODY}\n{closing}\n\n43") == Reply("43", reasons=True)
    assert read_reply(f"{opening}{closing}43").answer == "43"  # a template with the reasoning switched off
    assert read_reply(opening + BODY) == Reply("", reasons=True)


@pytest.mark.parametrize(("opening", "closing"), WRAPS[:-1])
def test_a_closing_marker_alone_ends_reasoning_that_the_prompt_opened(opening: str, closing: str) -> None:
    assert read_reply(f"{BODY}{closing}43") == Reply("43", reasons=True)


@pytest.mark.parametrize(
    "reply",
    [
        "43<|im_end|>\n<|im_start|>user\nWhat is the value of rye?",
        "43</s>",
        "43<end_of_turn>\n<start_of_turn>model\n68",
        "43<|endoftext|>The passage says 68",
        "43<turn|>\n<|turn>user\n68",
        "43<|eot_id|><|start_header_id|>user<|end_header_id|>68",
        "43\nuser\nWhat is the value of rye?\nassistant\n68",
        "<|im_start|>assistant\n43",
        "<s> 43</s>",
        "43<|im_end|>\n<|im_start|>assistant\n<think>hm</think>68",
        "<answer>43</answer>",
        "<|begin_of_box|>43<|end_of_box|>",
        "<answer><|begin_of_box|>43<|end_of_box|></answer>",
        "$\\boxed{43}$",
        "analysisThe chart shows 68.assistantfinal43",
        "<think>The prompt ends with <|im_end|>, so</think>43",
        "<think>\n<think>hm</think>\n</think>43",
    ],
)
def test_the_turn_ends_the_answer_and_a_box_is_its_wrapping(reply: str) -> None:
    assert visible_answer(reply) == "43"


@pytest.mark.parametrize(
    "reply",
    [
        'The tag "<think>" is in line 3, "</think>" in line 9.',
        "Write `[THINK]` before it, and `</thought>` behind it.",
        "I was thinking of 43; the <thought> of 68 came later.",
        "The plan [THINK] and the plan [ACT] cost 43.",
        "The price was <s>43</s> and is 68.",
        "admin\nuser\nguest\nassistant\nowner",
        "analysis of the chart: 43",
        "[43] is the value, not [68].",
        "It is <answer>43</answer>, or <answer>68</answer>.",
        "5 < 7 and 9 > 3",
        "`</s>` ends it",
    ],
)
def test_words_that_look_like_markers_stay(reply: str) -> None:
    assert read_reply(reply) == Reply(reply)


def test_replies_with_think_tags_are_read_as_before() -> None:
    assert visible_answer("43 <think>hm") == "43"
    assert visible_answer("43 <THINK>hm</thinking> or so") == "43  or so"
    assert visible_answer("a</think>b</think>c") == "b</think>c"
    assert visible_answer("<think>a<|im_end|>\n") == ""


@pytest.mark.parametrize(
    ("prompt_end", "opened"),
    [
        ("<|im_end|>\n<|im_start|>assistant\n<think>\n", "<think>\n"),
        ("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", ""),
        ("<\uff5cAssistant\uff5c></think>", ""),
        ("<start_of_turn>model\n<|channel>thought\n<channel|>", ""),
        ("[/INST][THINK]", "[THINK]"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "<|channel|>analysis<|message|>"),
        ("<|start|>assistant", ""),
        ("<think>\nOkay,", "<think>\nOkay,"),
    ],
)
def test_what_a_prompt_opens(prompt_end: str, opened: str) -> None:
    assert opened_reasoning(prompt_end) == opened
    if opened:
        assert read_reply(opened + BODY) == Reply("", reasons=True)


@pytest.mark.parametrize(
    "piece",
    ["<think>", "</think>", "[THINK]", "<s>", "</s>", "<thought>", "<|channel|>", "\nuser\n", "<|im_end|>", "<answer>"],
)
def test_hostile_replies_are_read_in_no_time(piece: str) -> None:
    started = perf_counter()
    read_reply("x" + piece * 20_000)
    read_reply("<thought>" + (piece + " ") * 20_000)
    assert perf_counter() - started < 2.0
