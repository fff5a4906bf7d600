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
    ("<think_fast>", "</think_fast>"),
    ("<think_faster>", "</think_faster>"),
    ('<think type="slow">', "</think>"),
    ("<analysis>", "</analysis>"),
    ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    *(
        SPELLED := [
            ("Here is my thought process: ", "Here is my response: "),
            ("Thinking...\n", "...done thinking."),
            ('<details type="reasoning" done="true">\n<summary>Thought for 5 seconds</summary>', "</details>"),
            ("&lt;think&gt;", "&lt;/think&gt;"),
            ("```thinking\n", "\n```\n"),
            ("<|im_start|>assistant/think\n", "<|im_end|>\n<|im_start|>assistant\n"),
            ("assistant/think\n", "\nassistant\n"),
            ("analysis", "assistantfinal"),
        ]
    ),
]


@pytest.mark.parametrize(("opening", "closing"), WRAPS)
def test_reasoning_is_no_part_of_the_answer(opening: str, closing: str) -> None:
    assert read_reply(f"{opening}{BODY}\n{closing}\n\n43") == Reply("43", reasons=True)
    assert read_reply(f"{opening}{closing}43").answer == "43"  # a template with the reasoning switched off
    assert read_reply(opening + BODY) == Reply("", reasons=True)


@pytest.mark.parametrize(("opening", "closing"), [wrap for wrap in WRAPS if wrap not in SPELLED])
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
        "43\n\nUser: What is the value of rye?\nAssistant: 68",
        "43\n\nHuman: What is the value of rye?\n\nAssistant: 68",
        "43\n\n**User:** What is the value of rye?\n\n**Assistant:** 68",
        "43 USER: What is the value of rye? ASSISTANT: 68",
        "43\n\n### Instruction:\nWhat is the value of rye?\n\n### Response:\n68",
        "43 [INST] What is the value of rye? [/INST] 68",
        "43\nQ: What is the value of rye?\nA: 68",
        "43\n\nQuestion: What is the value of rye?\nAnswer: 68",
        '<think>hm</think><tool_call>\n{"name": "zoom", "arguments": {"v": 68}}\n</tool_call>\n43',
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
        "<reflection> is the title of the chart.\nThe answer is 43.",
        "<tool_call> is the title of the chart.\nThe answer is 43.",
        "43. I did not use a <think> block.",
        "No tag (<think>) is needed: 43.",
        "The **<think>** tag was not used: 43.",
        "A turn ends with <|im_end|>, but the value is 43.",
        "43\n\nUser guide: see page 2.\nAnswer: 43",
        "The picture is a chat.\n\nQuestion: How many trams run?\nAnswer: 43",
        "A chat:\n\nUser: How many trams run?\nAssistant: 43",
        "Question: How many trams run?\nAnswer: 43",
        "thoughtful\n43",
        "Thinking about the chart ... 43",
        "Analysis: the chart shows 43.",
        "<details><summary>Values</summary>43</details> is the value",
        "```python\nprint(43)\n```",
        '{"answer": "43", "name": "tram"}',
    ],
)
def test_words_that_look_like_markers_stay(reply: str) -> None:
    assert read_reply(reply) == Reply(reply)


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>\n{"name": "zoom", "arguments": {"value": 43}}\n</tool_call>',
        "<tool_call>zoom\n<arg_key>value</arg_key>\n<arg_value>43</arg_value>",
        '[TOOL_CALLS]zoom[ARGS]{"value": 43}',
        "<function=zoom><parameter=value>43</parameter></function>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.zoom:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>zoom 43",
        "<|python_tag|>zoom(value=43)",
        '{"name": "zoom", "parameters": {"value": 43}}',
        "```tool_code\nprint(zoom(43))\n```",
        "<|tool_call>call:zoom{value:43}<tool_call|>",
        '<|START_ACTION|>[{"tool_name": "zoom", "parameters": {"value": 43}}]<|END_ACTION|>',
        '<minimax:tool_call>\n<invoke name="zoom">\n<parameter name="value">43</parameter>\n</invoke>\n</minimax:tool_call>',
        "thought\nThe value is 43",
        "<think>hm</think><answer>",
    ],
)
def test_a_call_of_a_tool_is_no_answer(reply: str) -> None:
    assert read_reply(reply) == Reply("", reasons=True)


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
    [
        "<think>",
        "</think>",
        "[THINK]",
        "<s>",
        "</s>",
        "<thought>",
        "<|channel|>",
        "\nuser\n",
        "<|im_end|>",
        "<answer>",
        "\n\nUser: ",
        "\n\nQ: x\nA:",
        "\n<tool_call>",
        "Thinking...\n",
        "```",
        "&lt;think&gt;",
        "analysisA",
        "\n \n",
    ],
)
def test_hostile_replies_are_read_in_no_time(piece: str) -> None:
    started = perf_counter()
    read_reply("x" + piece * 20_000)
    read_reply("<thought>" + (piece + " ") * 20_000)
    assert perf_counter() - started < 2.0
