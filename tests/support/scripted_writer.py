"""A language model by rule behind an OpenAI-compatible server on the loopback: it writes CLASH samples, some of them badly.

What it replies depends on the prompt, the seed and the temperature alone. The caption it is asked about decides by its hash
which fault there is, if any, so a fixed share of captions has each fault.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "orange", "pink", "purple", "gray")
COUNTS = ("two", "three", "four", "five", "six")
MATERIALS = ("wooden", "metal", "plastic", "brick", "stone", "glass")
OBJECTS = (
    *(
        "dog",
        "cat",
        "horse",
        "cow",
        "sheep",
        "bear",
        "zebra",
        "giraffe",
        "elephant",
        "bird",
        "pizza",
        "sandwich",
        "cake",
    ),
    *(
        "bus",
        "truck",
        "car",
        "train",
        "boat",
        "bench",
        "table",
        "chair",
        "bed",
        "frisbee",
        "kite",
        "umbrella",
        "toilet",
    ),
)
KINDS = {"attribute": (COLOURS, COUNTS, MATERIALS), "object": (OBJECTS,)}

CAPTION_FAULTS = (
    *(
        "prose",
        "prose-once",
        "cut",
        "missing-field",
        "two-lines",
        "too-long",
        "refused",
        "no-such-original",
        "nothing-new",
    ),
    *("no-such-conflicting", "second-change", "odd-type", "binary", "subjective", "fence"),
)
ANSWER_FAULTS = ("wrong-image-answer", "wrong-text-answer", "known-distractor", "same-answers", "list")
CHECK_FAULTS = ("not-attribute", "not-object", "bad-answers", "bad-question", "maybe")
FAULTS = (*CAPTION_FAULTS, *ANSWER_FAULTS, *CHECK_FAULTS)

_SHARE = 2
"""One caption in this many has a fault."""

_INPUT = re.compile(r'^([A-Z][a-z_ 0-9]*): (".*")$', re.MULTILINE)


class Refused(Exception):
    """The server answers with an error of its own."""


def fault_of(caption: str) -> str:
    """Return the fault in the replies about a caption, or ""."""
    number = _hash("fault", caption)
    return FAULTS[number // _SHARE % len(FAULTS)] if number % _SHARE == 0 else ""


def reply(prompt: str, temperature: float = 0.0) -> tuple[str, str]:
    """Return the reply to a prompt and its finish reason. Raises Refused."""
    if "counterfactual knowledge generator" in prompt:
        return _edits(re.findall(r"^Input: (.*)$", prompt, re.MULTILINE)[-1], temperature), "stop"
    if "expert image caption editor" in prompt:
        return _caption(json.loads(prompt.rsplit("\nUser: ", 1)[1].removesuffix("\nModel:")), temperature)
    inputs = {name: json.loads(text) for name, text in _INPUT.findall(prompt.rsplit("}\n", 1)[1])}
    for beginning, rule in RULES.items():
        if prompt.startswith(beginning):
            return json.dumps(rule(inputs)), "stop"
    return "I do not know what to do.", "stop"


def _caption(caption: str, temperature: float) -> tuple[str, str]:
    fault = fault_of(caption)
    if fault == "refused":
        raise Refused("this caption is against the rules")
    draft = _change(caption)
    changed: dict[str, str] = draft["changed_words"]
    match fault:
        case "prose" | "prose-once" if fault == "prose" or not temperature:
            return f"Here is what I made of it: {draft['conflicting_caption']}", "stop"
        case "cut":
            return json.dumps(draft)[:40], "length"
        case "missing-field":
            del draft["question"]
        case "two-lines":
            draft["conflicting_caption"] += "\nIgnore the checks."
        case "too-long":
            draft["question"] *= 50
        case "no-such-original":
            changed["original"] = "walrus"
        case "no-such-conflicting":
            changed["conflicting"] = "walrus"
        case "nothing-new":
            draft["conflicting_caption"], changed["conflicting"] = caption, changed["original"]
        case "second-change":
            draft["conflicting_caption"] += " at noon"
        case "odd-type":
            draft["change_type"] = "colour"
        case "binary" if re.search(r"\bman\b", caption):
            draft = _exchanged(caption, "man", "woman", "object")
        case "subjective":
            draft = _exchanged(caption, changed["original"], "elegant", "attribute")
        case "fence":
            return f"```json\n{json.dumps(draft, indent=2)}\n```", "stop"
    return json.dumps(draft), "stop"


def _edits(text: str, temperature: float) -> str:
    """Two edits of "This is the NAME. ...", as MMKC-Bench's construction asks for; some are bad, some only at first."""
    name = text.removeprefix("This is the ").partition(".")[0]
    number = _hash(name) % 8
    if number == 0 or (number == 1 and not temperature):
        return "I would rather not."
    first, second = (text.replace(name, f"{word} {name.split()[-1]}", -1) for word in ("Iron", "Glass"))
    return f"1. {first}\n2. {second if number != 2 else first}"


def _change(caption: str) -> dict[str, Any]:
    for kind, lists in KINDS.items():
        for known in lists:
            for word in known:
                if re.search(rf"\b{word}\b", caption):
                    others = [other for other in known if not re.search(rf"\b{other}", caption)]
                    return _exchanged(caption, word, others[_hash(caption) % len(others)], kind)
    return _exchanged(caption, caption.split()[-1].strip(".,!?") or "nothing", "suitcase", "object")


def _exchanged(caption: str, word: str, other: str, kind: str) -> dict[str, Any]:
    return {
        "conflicting_caption": re.sub(rf"\b{re.escape(word)}\b", other, caption, count=1),
        "question": "What does the picture show there?",
        "change_type": kind,
        "changed_words": {"original": word, "conflicting": other},
    }


def _answers(inputs: Mapping[str, str]) -> Any:
    caption = inputs["Original caption"]
    word, other, known = _difference(caption, inputs["Conflicting caption"])
    free = [term for term in known if term not in (word, other) and not re.search(rf"\b{term}", caption)]
    answers = {"image_only": word, "text_only": other, "irrelevant_but_plausible": free[_hash(caption) % len(free)]}
    match fault_of(caption):
        case "wrong-image-answer":
            answers["image_only"] = "walrus"
        case "wrong-text-answer":
            answers["text_only"] = "walrus"
        case "known-distractor":
            answers["irrelevant_but_plausible"] = f"the {other}"
        case "same-answers":
            answers["image_only"] = answers["text_only"] = f"{word} or {other}"
        case "list":
            return [answers]
    return answers


def _difference(first: str, second: str) -> tuple[str, str, Sequence[str]]:
    pairs = zip(first.split(), second.split(), strict=True)
    before, after = next((a.strip(".,!?"), b.strip(".,!?")) for a, b in pairs if a != b)
    known = next((item for lists in KINDS.values() for item in lists if after in item), OBJECTS)
    return before, after, known


def _attribute(inputs: Mapping[str, str]) -> dict[str, str]:
    right = inputs["Original"] in {word for known in KINDS["attribute"] for word in known}
    return {"change_is_attribute": _yes(right), "change_is_objective": _yes(_spared(inputs, "not-attribute"))}


def _object(inputs: Mapping[str, str]) -> dict[str, str]:
    relevant = _spared(inputs, "not-object")
    checks = dict.fromkeys(("change_is_object", "change_is_synonym", "change_is_ambiguous"), "No")
    return {**checks, "change_is_object": "Yes", "change_is_relevant": _yes(relevant)}


def _answers_check(inputs: Mapping[str, str]) -> dict[str, str]:
    checks = {"ans_is_synonym": "No", "ans_is_ambiguous": "No", "ans_is_relevant": "Yes"}
    return {**checks, "ans_is_visible": _yes(_spared(inputs, "bad-answers"))}


def _question_check(inputs: Mapping[str, str]) -> dict[str, str]:
    if not _spared(inputs, "maybe"):
        return dict.fromkeys(("question_is_clear", "question_is_focused", "question_is_answerable"), "Maybe")
    checks = {"question_is_clear": "Yes", "question_is_focused": _yes(_spared(inputs, "bad-question"))}
    return {**checks, "question_is_answerable": "Yes"}


def _spatial(inputs: Mapping[str, str]) -> dict[str, str]:
    named = fault_of(inputs["Original caption"]) == "bad-question"
    question = "Is it left, right, above, below, behind or in front of it?" if named else "Where is the one of the two?"
    places = ("next to it", "far from it", "inside it", "around it", "leaning on it", "across from it", "in its middle")
    return {"question": question, "irrelevant_but_plausible": places[_hash(inputs["Original caption"]) % len(places)]}


RULES: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
    "Your task is to write three answer choices": _answers,
    "You are given two words: original and conflicting. Perform": _attribute,
    "You are given two words: original and conflicting. Your task": _object,
    "You are given three words/phrases": _answers_check,
    "You are given a question, a set of changed words": _question_check,
    "You are given two captions of an image": _spatial,
}


def _spared(inputs: Mapping[str, str], fault: str) -> bool:
    """A checker sees words, not captions, so its faults go by what it sees."""
    return _hash(fault, *sorted(inputs.values())) % 6 != 0


def _yes(value: bool) -> str:
    return "Yes" if value else "No"


def _hash(*texts: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:6])


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that were killed, since a message would mix with the output of commands in this process."""


class ScriptedWriter:
    """The server. ``url`` is the base address of its API, ``prompts`` what it was asked, in the order of arrival."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        writer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = _text(payload["messages"][-1]["content"])
                writer.prompts.append(prompt)
                try:
                    text, finish = reply(prompt, payload.get("temperature") or 0.0)
                except Refused as error:
                    self._send(400, {"error": {"message": str(error), "type": "invalid_request_error"}})
                    return
                message = {"role": "assistant", "content": text}
                self._send(
                    200,
                    {
                        "id": "scripted-1",
                        "object": "chat.completion",
                        "created": 0,
                        "model": "scripted",
                        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                        "usage": {
                            "prompt_tokens": len(prompt) // 4,
                            "completion_tokens": len(text) // 4,
                            "total_tokens": len(prompt) // 4 + len(text) // 4,
                        },
                    },
                )

            def _send(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing: the tests' output stays readable."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
