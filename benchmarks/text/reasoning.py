"""The parts of a model's reply: its reasoning, its answer, and what it wrote after the end of its turn.

The markers are those of the models and servers in use. A reply says by itself what is reasoning: engines keep the markers when
they decode tokens, and write the one that a prompt opened in front of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Markers:
    """A pair of markers around reasoning, as patterns; with ``opens_anywhere``, a lone opening within a line counts, too."""

    opening: str
    closing: str
    opens_anywhere: bool = False


_THINK = r"think(?:ing)?(?:_[a-z]{1,9})?"
THINK = Markers(
    rf"(?i:<{_THINK}(?:\s[^<>\n]{{0,80}})?(?<!/)>)", rf"(?i:</{_THINK}[^\S\n]{{0,4}}>)", opens_anywhere=True
)
"""The markers of most models, and those that others are translated to."""

_SENTENCE = re.compile(r"[^\S\n]+[a-z]")
_NO_SENTENCE = f"(?!{_SENTENCE.pattern})"
"""After a marker, it is not the first word of a sentence that speaks of it."""

MARKERS = (
    THINK,
    *(
        Markers(rf"(?i:<{name}>){_NO_SENTENCE}", rf"(?i:</{name}>)")
        for name in (
            "thoughts?",
            "thought_process",
            "chain_of_thought",
            "inner_monologue",
            "antThinking",
            "reasoning",
            "rationale",
            "reflection",
            "analysis",
            "scratchpad",
            "seed:think",
            "longcat_think",
        )
    ),
    Markers(r"\[THINK\]", r"\[/THINK\]"),
    Markers("◁think▷", "◁/think▷"),
    Markers(r"<\|channel>(?:thought|analysis)\b", r"<channel\|>"),
    Markers(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    Markers(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    Markers(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    Markers(r"<\|think\|>", r"<\|/think\|>|<\|end\|>\s{0,4}<\|begin\|>assistant\s{0,4}<\|content\|>"),
)
_NEVER = "(?!)"
_SPELLED = tuple(
    (re.compile(rf"\A\s*{opening}"), re.compile(closing))
    for opening, closing in (
        (r"Here(?:'s| is) my thought process:", r"Here(?:'s| is) my response:"),
        (r"Thinking(?:\.\.\.|…)[^\S\n]*\n", r"(?:\.\.\.|…)done thinking\."),
        (r"```(?:think(?:ing)?|thoughts?|reasoning)[^\S\n]*\n", r"\n```(?=\s|\Z)"),
        (r'<details type="reasoning"[^<>\n]{0,200}>', "</details>"),
        (r"<details>\s*<summary>(?:Think|Thought|Reason)[^<>\n]{0,80}</summary>", "</details>"),
        ("(?i:&lt;think(?:ing)?&gt;|＜think(?:ing)?＞)", "(?i:&lt;/think(?:ing)?&gt;|＜/think(?:ing)?＞)"),
        (r"(?:<\|im_start\|>)?assistant/think\n", r"(?:<\|im_end\|>\s*<\|im_start\|>|\n)assistant\n"),
        (r"analysis(?=[A-Z])", r"assistant\s?final"),
        (r"thought\n", _NEVER),
    )
)
"""Reasoning at the beginning of a reply whose marks are words, or were escaped; the last two had control tokens, which a
server dropped: of gpt-oss, and of Gemma 4, where nothing is left to show the end."""

_CALL = re.compile(
    rf"^(?:<(?:\w{{1,20}}:)?(?:tool_?calls?|function_calls?|start_function_call|invoke\s[^<>\n]{{0,80}})>{_NO_SENTENCE}"
    r"|<function=[^<>\n]{1,80}>|<\|tool_calls?(?:_section)?(?:_begin|_start)?\|?>|<\|(?:python_tag|action_start|START_ACTION)\|>"
    r"|<\uff5c(?:tool\u2581calls?\u2581begin|DSML\uff5cfunction_calls)\uff5c?>"
    r'|\[TOOL_CALLS\]|```tool_code\b|\A\{\s*"name":\s*"[\w.]+",\s*"(?:arguments|parameters)":)',
    re.MULTILINE,
)
"""The beginning of a call of a tool."""
_CALL_END = re.compile(
    r"</(?:\w{1,20}:)?(?:tool_?calls?|function_calls?|function|invoke|tool_response)>|<end_function_call>|<tool_call\|>"
    r"|<\|(?:/tool_call|tool_calls?(?:_section)?_end|action_end|END_ACTION)\|>|^```\s*$"
    r"|<\uff5ctool\u2581calls?\u2581end\uff5c>|</\uff5cDSML\uff5cfunction_calls>",
    re.MULTILINE,
)
_CHANNEL = r"<\|channel\|>\s{0,4}(\w{1,40})[^<]{0,100}(?:<\|constrain\|>[^<]{0,50})?<\|message\|>"
_FINAL = "final"
"""The channel of an answer in the format of gpt-oss; every other one is reasoning, or a call of a tool."""

_ASSISTANT = "(?:assistant|model|ASSISTANT)"
_TURN_START = (
    r"<\|im_start\|>|<start_of_turn>|<\|turn>|<\|start_header_id\|>|<\|start_of_role\|>|<\|(?:user|assistant|im_user)\|>"
    r"|<\uff5c(?:User|Assistant)\uff5c>"
)
_TURN_END = (
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|end_of_turn|endofturn|return|end|END_OF_TURN_TOKEN)\|>|</s>|<turn\|>"
    r"|<end_of_(?:turn|utterance)>|<eos>|<\uff5cend\u2581of\u2581sentence\uff5c>"
)
_HEADER = (
    rf"<\|(?:im_start|start)\|>{_ASSISTANT}|<(?:start_of_turn|\|turn)>{_ASSISTANT}|<\|assistant\|>|<\uff5cAssistant\uff5c>"
    rf"|(?:<\|begin\|>{_ASSISTANT})?<\|content\|>|<\|start_header_id\|>{_ASSISTANT}<\|end_header_id\|>|<\|start_of_role\|>{_ASSISTANT}<\|end_of_role\|>"
)
_BEGINNING = re.compile(
    rf"(?:\s|{_HEADER}|{_TURN_END}|<bos>|<pad>|<unk>|\[/INST\]|<\|begin_of_text\|>|<\|startoftext\|>"
    r"|<\uff5cbegin\u2581of\u2581sentence\uff5c>)+"
)
"""Control tokens in front of a reply: those that begin a text, fill one, or open the model's own turn."""
_BARE_TURN = re.compile(
    r"\n(?:user|human)\n(?:\S{1,40}[^\S\n]{1,9}){3}.{0,2000}?\n(?:assistant|model)(?:\n|\Z)", re.DOTALL | re.I
)
"""Another turn whose control tokens were dropped, but not its roles."""
_ROLE = r"[*#]{0,4}[^\S\n]?(?i:user|human|question|query|q|instruction)[*]{0,2}:"
_PLAIN_TURN = re.compile(rf"(?<=[^\s:])(?:[^\S\n]*\n[^\S\n]*\n\s*{_ROLE}|\nQ:|\s(?:USER:|\[INST\]))[\s*]")
"""Another turn after an answer, in a format of plain text."""
_FEW_WORDS = 3
_PLAIN_REPLY = re.compile(r"\n[*#]{0,4}[^\S\n]?(?i:assistant|ai|answer|a|response)[*]{0,2}:|\sASSISTANT:|\[/INST\]")
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>")
_SOLUTION = re.compile(
    r"<\|begin_of_solution\|>(.*?)(?:<\|end_of_solution\|>|\Z)|<\|START_RESPONSE\|>(.*?)(?:<\|END_RESPONSE\|>|\Z)"
    r"|<CONCLUSION>(.*?)(?:</CONCLUSION>|\Z)",
    re.DOTALL,
)
_TAG = re.compile(r"<(?:final_)?answer>\s*([^<>\n]{0,200}?)\s*(?:</(?:final_)?answer>)?", re.IGNORECASE)
_BOXED = re.compile(r"\$*\\boxed\{([^{}\\\n]{1,200})\}\$*")
_DROPPED = re.compile(r"\A\s*analysis(?:(?=\S).*?assistant\s?final|\s.*?[.?!]\s+assistant\s+final\b)", re.DOTALL)
"""Reasoning of gpt-oss whose control tokens were dropped, with its end."""
_QUOTES = {"(": ")", "*": "*", "'": "'", '"': '"', "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“"}
_MAY_MARK = re.compile(
    r"[<\[◁\\＜`]|\A\s*(?:analysis|Here|Thinking|thought|assistant|&lt;|\{)|\n\W{0,6}(?:user|human|question|query|q|instruction)\b"
    r"|\sUSER:",
    re.IGNORECASE,
)


class Reply(NamedTuple):
    """A reply without its reasoning and calls of tools, and whether it has any."""

    answer: str
    reasons: bool = False


def read_reply(text: str) -> Reply:
    """Return the answer in a reply, stripped; it is empty where the reply is nothing but reasoning, or a call of a tool.

    Reasoning that is not closed extends to the end. A closing marker alone ends reasoning that begins with the reply, since
    the opening one can stand in the prompt. A marker in quotation marks is the answer's own words; so is a lone opening
    one within a line, ``<think>`` excepted. What follows the end of the model's turn does not count.
    """
    if not _MAY_MARK.search(text):
        return Reply(text.strip())
    body = _without_beginning(_with_think(text))
    if (channels := _read_channels(body)) is not None:
        return channels
    without = _DROPPED.sub("", body)
    answer, reasons = _without_reasoning(without)
    if bare := _BARE_TURN.search(answer):
        answer = answer[: bare.start()]
    answer = _without_plain_turns(answer).strip()
    spoken = _without_calls(answer)
    return Reply(_unwrapped(spoken), reasons or without != body or spoken != answer)


def opened_reasoning(prompt_end: str) -> str:
    """Return the end of a prompt from the marker by which it opens reasoning that it does not close; "" if there is none.

    ``prompt_end`` is what a chat template writes after the last message.
    """
    if channel := [*re.finditer(_CHANNEL, prompt_end)]:
        return "" if channel[-1][1] == _FINAL else prompt_end[channel[-1].start() :]
    opened = ""
    for mark in _marks().finditer(prompt_end):
        markers, part = _named(mark)
        opened = prompt_end[mark.start() :] if part == "o" and markers is not None else ""
    return opened


def is_reasoning_marker(token: str) -> bool:
    """Return whether a token opens or closes reasoning or a call of a tool, or names what of a reply is reasoning."""
    mark = _marks().fullmatch(token)
    parts = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<|channel>", "<channel|>", "<|begin|>")
    if token in (*parts, "<|content|>") or _CALL.fullmatch(token) or _CALL_END.fullmatch(token):
        return True
    return mark is not None and _named(mark)[0] is not None


def ends_turn(token: str) -> bool:
    """Return whether a token ends a turn, or opens one."""
    return re.fullmatch(f"{_TURN_END}|{_TURN_START}", token) is not None


def _with_think(text: str) -> str:
    """Return a reply whose reasoning is marked in words at its beginning with the markers of ``THINK`` instead."""
    for opening, closing in _SPELLED:
        if (start := opening.match(text)) is not None:
            reasoning, *rest = closing.split(text[start.end() :], maxsplit=1)
            return f"<think>{reasoning}</think>{rest[0]}" if rest else f"<think>{reasoning}"
    return text


def _without_plain_turns(answer: str) -> str:
    """Return an answer up to another turn in plain text: a role, and then the role that replies.

    A question can be the answer's own, which repeats it, unless what stands before it looks like an answer.
    """
    turn = _PLAIN_TURN.search(answer)
    if turn is None or not _PLAIN_REPLY.search(answer, turn.end() - 1):
        return answer
    before = answer[: turn.start()]
    is_answer = len(before.split()) <= _FEW_WORDS or any(map(str.isdigit, before))
    return before if is_answer or not re.search(r"(?i:question|query|q)\W*\Z", turn[0]) else answer


def _without_calls(answer: str) -> str:
    """Return an answer without its calls of tools, from the first to the end of the last."""
    call = _CALL.search(answer)
    if call is None:
        return answer
    ends = [end.end() for end in _CALL_END.finditer(answer, call.end())]
    return answer[: call.start()] + (answer[ends[-1] :] if ends else "")


@cache
def _marks() -> re.Pattern[str]:
    pairs = (f"(?P<o{i}>{m.opening})|(?P<c{i}>{m.closing})" for i, m in enumerate(MARKERS))
    either = "|".join([*pairs, f"(?P<end>{_TURN_END})", f"(?P<start>{_TURN_START})"])
    return re.compile(rf"(?=[<\[◁])(?:{either})")  # most characters begin none of them


def _named(mark: re.Match[str]) -> tuple[Markers | None, str]:
    """Return the pair that a mark belongs to, and "o" or "c"; None and a name for the end or the start of a turn."""
    name = str(mark.lastgroup)
    return (MARKERS[int(name[1:])], name[0]) if name[1:].isdigit() else (None, name)


def _last_closings(marks: Sequence[re.Match[str]]) -> dict[Markers | None, int]:
    """Return where each pair of marks is closed last."""
    return {markers: mark.start() for mark in marks for markers, part in [_named(mark)] if part == "c"}


def _without_reasoning(text: str) -> tuple[str, bool]:
    """Return the text outside of reasoning up to the end of the turn, and whether there is reasoning."""
    marks = [mark for mark in _marks().finditer(text) if not _is_quoted(text, mark)]
    last_closing = _last_closings(marks)
    kept: list[str] = []
    position, open_markers, reasons, began_closed = 0, None, False, False
    for mark, following in zip_longest(marks, marks[1:]):
        markers, part = _named(mark)
        if markers is None:
            if part == "end" and _is_markup(text, mark):
                continue
            if open_markers is None or _is_turn_end(text, mark, following):
                break
        elif open_markers is not None:
            if part == "c" and markers == open_markers:
                position, open_markers = mark.end(), None
        elif part == "o":
            if last_closing.get(markers, -1) > mark.start() or _opens(text, mark, markers):
                kept.append(text[position : mark.start()])
                open_markers, reasons = markers, True
        elif not began_closed:
            kept, position, reasons, began_closed = [], mark.end(), True, True
    else:
        mark = None
    if open_markers is None:
        kept.append(text[position:] if mark is None else text[position : mark.start()])
    return "".join(kept), reasons


def _opens(text: str, mark: re.Match[str], markers: Markers) -> bool:
    """Return whether a mark opens reasoning that nothing closes: it begins a line, or no sentence follows."""
    in_line = markers.opens_anywhere and _SENTENCE.match(text, mark.end()) is None
    return in_line or _begins_line(text, mark.start())


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _is_turn_end(text: str, mark: re.Match[str], later: re.Match[str] | None) -> bool:
    """Return whether a control token within reasoning ends the turn: the text ends with it, or another turn follows."""
    if later is not None and _named(later)[1] not in ("start", "end"):
        return False
    return not text[mark.end() : None if later is None else later.start()].strip()


def _is_markup(text: str, mark: re.Match[str]) -> bool:
    """Return whether ``</s>`` closes a text that is struck through, in HTML, or a token is a word of a sentence."""
    is_word = text[mark.end() : mark.end() + 1] in (",", ";")
    return is_word or (mark[0] == "</s>" and text.find("<s>", 0, mark.start()) >= 0)


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    return bool(before) and _QUOTES.get(before) == after


def _without_beginning(text: str) -> str:
    whole = text.strip()
    if whole.startswith("<s>") and "</s>" not in whole[:-4]:  # else it is HTML for a text that is struck through
        text = whole.removeprefix("<s>").removesuffix("</s>")
    beginning = _BEGINNING.match(text)
    return text if beginning is None else text[beginning.end() :]


def _read_channels(text: str) -> Reply | None:
    """Return the final message of a reply in the format of gpt-oss; None for one without channels."""
    channels = [*re.finditer(_CHANNEL, text)]
    names = [channel[1] for channel in channels]
    if not channels or (text[: channels[0].start()].strip() and _FINAL not in names):
        return None
    if _FINAL not in names:
        return Reply("", reasons=True)
    final = channels[len(names) - 1 - names[::-1].index(_FINAL)]
    message = re.split(rf"<\|(?:end|return|call|start|channel)\|>|{_TURN_END}", text[final.end() :], maxsplit=1)[0]
    return Reply(_unwrapped(message), reasons=final is not channels[0] or final.start() > 0)


def _unwrapped(answer: str) -> str:
    """Return an answer without the box around it."""
    if (solution := _SOLUTION.search(answer)) is not None:
        answer = next(part for part in solution.groups() if part is not None)
    answer = _BOX.sub("", answer).strip()
    wrapped = _TAG.fullmatch(answer) or _BOXED.fullmatch(answer)
    return answer if wrapped is None else wrapped[1].strip()
