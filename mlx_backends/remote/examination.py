"""Examination of an endpoint: do its answers depend on the pictures that it is sent?

Before the first answer, a request of the run is sent as it is and without its pictures, and a picture of a random number is to
be read. A model that reads it is shown to see, and so is one whose answers differ by picture, or whose server counts the picture
as tokens. Only what is shown to be wrong is refused; what stays open is a remark. Spot checks repeat the question during the run.
"""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request, Text
from mlx_backends.remote.media import EncodedMedia

MAX_CALLS = 5
"""Most calls of an examination before the first answer, without retries; three suffice where the number is read."""

_FIRST_SPOT, _MOST_BETWEEN = 8, 100
"""Answers after which a first spot check follows, and the most between two; until then, their number doubles."""

PICTURE_TOKENS = 16
"""Fewest prompt tokens by which a picture must lengthen a prompt, to show that it is part of it: a mere mark for it has fewer."""

LIMIT_STEP = 1024
"""Servers' context lengths are multiples of this many tokens, from twice as many on. Ollama's default is 4,096 on small machines
(docs.ollama.com/context-length), and it drops the start of a longer prompt without an error."""

QUESTION = "Which number does the picture show? Answer with the number only."
TRUNCATES = "its server truncates prompts"
"""The beginning of a problem with the context length."""

EXAMINATION = "examination of the endpoint"
"""The beginning of the ids of an examination's requests."""

_DECODING = Decoding(temperature=0.0, max_tokens=128)

_NO_PICTURE = re.compile(
    r"(?:provide|upload|attach|share|send|include|supply)\s+(?:the|an?|your|any)\s+(?:\w+\s+)?(?:image|picture|photo)\b"
    r"|\b(?:no|not|n't)\b[^.!?\n]{0,30}\b(?:image|picture|photo)s?\b[^.!?\n]{0,30}"
    r"\b(?:provided|attached|included|uploaded|received|sent)"
    r"|\b(?:can ?not|can't|unable to|not able to|don't)\s+(?:see|view|access|receive|open)\s+"
    r"(?:any |the |an? )?(?:image|picture|photo)",
    re.IGNORECASE,
)
"""Answers that say that no picture came with the prompt."""

Evidence = Literal["number", "answers", "usage", ""]
Conversation = Generator[Request, Generation, str]
"""A check: yields requests, receives their generations, and returns the problem as a clause, empty for none."""


@dataclass(frozen=True, slots=True)
class EndpointCheck:
    """Result of the examination of an endpoint, with the spot checks so far.

    ``problem`` is a clause that says what is shown to be wrong, ``remark`` a sentence on what could not be examined.
    ``evidence`` is what shows that pictures are seen: the number was read, answers differ by picture, or usage counts it.
    ``probe_tokens`` are the prompt tokens of the number's picture, and ``model`` is the digest of the name that the server
    reported. ``calls``, tokens and ``seconds`` are those of the examination with its ``spot_checks``, without the call whose
    answer the run uses.
    """

    problem: str = ""
    remark: str = ""
    evidence: Evidence = ""
    probe_tokens: int | None = None
    model: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    spot_checks: int = 0

    def with_usage(
        self, answer: Generation, sign: Literal[1, -1] = 1, *, model: str | None = None, seconds: float = 0.0
    ) -> EndpointCheck:
        """Return the result with the usage of another ``answer``, or without that of one if ``sign`` is -1."""
        return replace(
            self,
            calls=self.calls + sign * answer.calls,
            prompt_tokens=self.prompt_tokens + sign * (answer.prompt_tokens or 0),
            completion_tokens=self.completion_tokens + sign * (answer.completion_tokens or 0),
            seconds=self.seconds + seconds,
            model=self.model or model,
        )


class Probe:
    """A picture of a random number of four digits, and the request to read it."""

    def __init__(self, media: EncodedMedia, *, unlike: str = "") -> None:
        digits = unlike
        while not digits or set(digits) & set(unlike):
            digits = str(1000 + secrets.randbelow(9000))
        self.number = digits
        picture = media.add_png(_drawn(digits))
        self.request = Request(
            f"{EXAMINATION} {secrets.token_hex(4)}", 0, (Message("user", (picture, Text(QUESTION))),), _DECODING
        )

    def is_read(self, answer: Generation) -> bool:
        """Return whether an answer holds the number, with or without separators."""
        return self.number in re.sub(r"(?<=\d)[\s,.'_-]+(?=\d)", "", answer.text)


class Examiner:
    """Examiner of one endpoint; ``media`` encodes what it is sent."""

    def __init__(self, media: EncodedMedia, check: EndpointCheck | None = None) -> None:
        self.check = check or EndpointCheck()
        self._media = media
        self._probes: list[tuple[Probe, Generation]] = []

    def first(self, request: Request) -> Conversation:
        """Examine by a real ``request`` of the run with pictures."""
        real = yield _renamed(request)
        (probe, shown), (_, none) = (yield from self._ask_probe()), (None, (yield _without_pictures(request)))
        self.check = replace(self.check, probe_tokens=_prompt(shown))
        if real.finish_reason == shown.finish_reason == "error":
            if none.finish_reason == "error":
                return ""  # each request reports its own failure
            return f"its server answers without a picture, but not with one ({real.error})"
        if stands_at := _limit_of([real, shown, none]):
            return f"{TRUNCATES}: different ones all stand at exactly {stands_at:,} tokens"
        if probe.is_read(shown):
            return self._shown("number")
        if shown.finish_reason == "error":
            return self._open(f"the server refused a picture of a number ({shown.error})")
        ignored = _is_ignored(real, none) and _prompt(shown) not in (None, _prompt(real))
        counted = _is_counted(real, none)
        second, other = yield from self._ask_probe(unlike=probe.number)
        if second.is_read(other):
            return self._shown("number")
        if _answer(shown) != _answer(other):
            again = yield _renamed(probe.request)
            if again.finish_reason != "error" and _answer(again) == _answer(shown):
                return self._shown("answers")
            if counted:
                return self._shown("usage")
            return self._open("its answers to one request differ, so they show nothing")
        if counted:
            return self._shown("usage")
        if all(_NO_PICTURE.search(answer.text) for answer in (shown, other)):
            return f"its server drops pictures: asked to read one, it answers {_quoted(shown)}"
        if ignored:
            mirrored = yield self._mirrored(request)
            if _answer(mirrored) == _answer(real):
                return (
                    f"its server drops pictures: a prompt has {_prompt(real):,} tokens with and without its picture, and the "
                    f"answers to different pictures are the same"
                )
        return self._open("it read no number, and gave different pictures the same answer")

    def spot(self) -> Conversation:
        """Check that pictures are still seen, in one call if they are, and in at most three."""
        self.check = replace(self.check, spot_checks=self.check.spot_checks + 1)
        if self.check.evidence == "number" or not self._probes:
            return (yield from self._spot_by_number())
        (first, before), *others = self._probes
        now = yield _renamed(first.request)
        if now.finish_reason == "error" or (_answer(now) == _answer(before) and not self._fell(now)):
            return ""
        if self._fell(now):
            now = yield _renamed(first.request)
            return self._fewer_tokens(now) if self._fell(now) else ""
        if self.check.evidence == "answers" and others:
            other = yield _renamed(others[0][0].request)
            if other.finish_reason != "error" and _answer(other) == _answer(now):
                return "answers to different pictures differed at first, and are the same now"
        return ""

    @property
    def is_worth_repeating(self) -> bool:
        """Whether a spot check could show anything."""
        return bool(self.check.evidence) or self.check.probe_tokens is not None

    def _spot_by_number(self) -> Conversation:
        answers: list[Generation] = []
        for _ in range(3):
            probe = Probe(self._media)
            answer = yield probe.request
            if answer.finish_reason == "error" or probe.is_read(answer):
                return ""
            answers.append(answer)
            if len(answers) > 1 and all(map(self._fell, answers)):
                return self._fewer_tokens(answer)
            if self.check.evidence != "number" and not self._fell(answer):
                return ""
        if len({_answer(answer) for answer in answers}) == 1:
            return f"numbers in pictures were read at first, and {_quoted(answers[0])} answers all of them now"
        return ""

    def _fell(self, answer: Generation) -> bool:
        before, now = self.check.probe_tokens, _prompt(answer)
        return before is not None and now is not None and now <= before - PICTURE_TOKENS

    def _fewer_tokens(self, answer: Generation) -> str:
        return (
            f"its server drops pictures now: a prompt with one had {self.check.probe_tokens:,} tokens at first, and has "
            f"{_prompt(answer):,} since"
        )

    def _ask_probe(self, unlike: str = "") -> Generator[Request, Generation, tuple[Probe, Generation]]:
        probe = Probe(self._media, unlike=unlike)
        answer = yield probe.request
        self._probes.append((probe, answer))
        return probe, answer

    def _shown(self, evidence: Evidence) -> str:
        self.check = replace(self.check, evidence=evidence)
        return ""

    def _open(self, reason: str) -> str:
        usage = (
            "the server reports no usage that tells"
            if self.check.probe_tokens is None
            else "its usage does not tell either"
        )
        self.check = replace(
            self.check,
            remark=f"it could not be shown that the model behind the address sees pictures: {reason}, and {usage}.",
        )
        return ""

    def _mirrored(self, request: Request) -> Request:
        """Return a request with every picture replaced by its inverted mirror image."""
        from PIL import Image, ImageOps

        def mirrored(part: Media) -> Media:
            with Image.open(io.BytesIO(self._media.png(part, request.decoding.max_pixels))) as picture:
                return self._media.add_png(_png(ImageOps.invert(ImageOps.mirror(picture.convert("RGB")))))

        return _with_messages(
            request,
            [
                Message(message.role, tuple(mirrored(part) if _is_picture(part) else part for part in message.parts))  # type: ignore[arg-type]
                for message in request.messages
            ],
        )


def spot_interval(confirmed: int) -> int:
    """Return the answers after which a spot check is due, when ``confirmed`` ones were followed by one."""
    return min(_MOST_BETWEEN, max(_FIRST_SPOT, confirmed))


def examination_calls(answers: int) -> int:
    """Return the calls besides those of ``answers`` that an examination with its spot checks takes where the number is read."""
    calls, confirmed = 2, 0
    while confirmed < answers:
        confirmed += spot_interval(confirmed)
        calls += 1
    return calls


def has_pictures(request: Request) -> bool:
    """Return whether a request shows a picture."""
    return any(_is_picture(part) for message in request.messages for part in message.parts)


def limit_at(prompt_tokens: int | None, completion_tokens: int | None) -> int | None:
    """Return the context length at which a prompt, or it with its answer, stands exactly; None for none."""
    for total in (prompt_tokens, (prompt_tokens or 0) + (completion_tokens or 0)):
        if prompt_tokens and total and total >= 2 * LIMIT_STEP and total % LIMIT_STEP == 0:
            return total
    return None


def _limit_of(answers: Sequence[Generation]) -> int | None:
    """Return the context length at which all ``answers`` stand; None where one of them does not."""
    limits = {limit_at(answer.prompt_tokens, answer.completion_tokens) for answer in answers}
    return limits.pop() if len(limits) == 1 else None


def _is_ignored(real: Generation, none: Generation) -> bool:
    return _prompt(real) is not None and _prompt(real) == _prompt(none)


def _is_counted(real: Generation, none: Generation) -> bool:
    with_picture, without = _prompt(real), _prompt(none)
    return with_picture is not None and without is not None and with_picture >= without + PICTURE_TOKENS


def _prompt(answer: Generation) -> int | None:
    return answer.prompt_tokens if answer.finish_reason != "error" else None


def _answer(answer: Generation) -> str:
    return " ".join(answer.text.split())


def _quoted(answer: Generation) -> str:
    text = _answer(answer)
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


def _is_picture(part: object) -> bool:
    return isinstance(part, Media) and part.modality == "image"


def _without_pictures(request: Request) -> Request:
    messages = (
        Message(message.role, tuple(part for part in message.parts if not _is_picture(part)))
        for message in request.messages
    )
    return _with_messages(request, [message for message in messages if message.parts])


def _with_messages(request: Request, messages: Sequence[Message]) -> Request:
    return _renamed(replace(request, messages=tuple(messages)))


def _renamed(request: Request) -> Request:
    return replace(request, instance_id=f"{EXAMINATION} {secrets.token_hex(4)}", step=0)


def _drawn(text: str) -> bytes:
    """Return a PNG of a short text, black on white, in large letters."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (448, 224), "white")
    ImageDraw.Draw(picture).text((224, 112), text, fill="black", anchor="mm", font=ImageFont.load_default(130))
    return _png(picture)


def _png(picture: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")  # type: ignore[attr-defined]
    return file.getvalue()
