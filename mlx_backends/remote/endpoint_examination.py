"""Examination of an endpoint: do its answers depend on the pictures that it is sent?

Before the first answer, a request of the run is sent, and a picture of a random number is to be read, as is its question without
the picture. A model that reads the number is shown to see, and so is one whose answers differ by picture, or whose server counts
the picture as tokens. Only what is shown to be wrong is refused; what stays open is a remark. Spot checks repeat the question
during the run. After a problem, a server must show again what it showed at first.
"""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request, Text
from mlx_backends.remote.remote_media import EncodedMedia

MOST_NUMBERS = 8
"""Pictures of numbers that are shown before a model that read one counts as one that reads none."""

_DIGITS_READ = 9
"""Digits in their places, of all in :data:`MOST_NUMBERS` numbers, that a guess gets right in 0.4% of cases."""

_REPEATS = 3
"""Repetitions of two pictures whose answers must differ by picture alone: a guess passes in below 1% of cases."""

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
    r"(?:provide|upload|attach|share|send|include|supply)\s+(?:the|an?|your|any)\s+"
    r"(?!(?:clear|bett|larg|sharp|high|bigg)er\b|new\b|different\b|readable\b)(?:\w+\s+)?(?:image|picture|photo)\b"
    # "No text in the image provided" is about a picture that came.
    r"|\b(?:no|not|n't)\b(?:(?!\b(?:in|on|of|from|within|by)\b)[^.!?\n]){0,30}\b(?:image|picture|photo)s?\b[^.!?\n]{0,30}"
    r"\b(?:provided|attached|included|uploaded|received|sent)"
    # "I cannot see the image clearly" and "the image details" are as well.
    r"|\b(?:can ?not|can't|unable to|not able to|don't)\s+(?:see|view|access|receive|open)\s+"
    r"(?:any |the |an? |your )?(?:image|picture|photo)s?"
    r"(?=\s*(?:[.,;:!?)]|$|(?:here|because|as|and|or|you|that|attached)\b))",
    re.IGNORECASE,
)
"""Answers that say that no picture came with the prompt."""

Evidence = Literal["number", "answers", "usage", ""]
EVIDENCE: tuple[Evidence, ...] = ("number", "answers", "usage", "")
"""Kinds of evidence, the strongest first."""

_LOST = {
    "number": "numbers in pictures were read before, and none of {n} is now",
    "answers": "answers to different pictures differed before, and this is not so now",
    "usage": "pictures counted as prompt tokens before, and do not now",
}
Conversation = Generator[Request, Generation, str]
"""A check: yields requests, receives their generations, and returns the problem as a clause, empty for none."""


@dataclass(frozen=True, slots=True)
class EndpointCheck:
    """Result of the examination of an endpoint, with the spot checks so far.

    ``problem`` is a clause that says what is shown to be wrong, ``remark`` a sentence on what could not be examined.
    ``evidence`` is what shows that pictures are seen: the number was read, answers differ by picture, or usage counts it.
    ``probe_tokens`` are the prompt tokens of the number's picture with its question, ``question_tokens`` those of the question
    alone, and ``model`` is the digest of the name that the server
    reported. ``calls``, tokens and ``seconds`` are those of the examination with its ``spot_checks``, without the call whose
    answer the run uses.
    """

    problem: str = ""
    remark: str = ""
    evidence: Evidence = ""
    probe_tokens: int | None = None
    question_tokens: int | None = None
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
            model=model or self.model,
        )


class Probe:
    """A picture of a random number of four digits, and the request to read it."""

    alone = Request("", 0, (Message("user", (Text(QUESTION),)),), _DECODING)
    """The question without a picture."""

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
        return self.number in _without_separators(answer)

    def digits_read(self, answer: Generation) -> int:
        """Return the most digits that a number of an answer has in their places; 0 for a number of another length."""
        numbers = re.findall(r"\d+", _without_separators(answer))
        return max(
            (sum(map(str.__eq__, number, self.number)) for number in numbers if len(number) == len(self.number)),
            default=0,
        )


class Examiner:
    """Examiner of one endpoint; ``media`` encodes what it is sent. The server must show ``required`` evidence, or a stronger one.

    ``counted`` are the ids of requests whose usage names tokens of pictures.
    """

    def __init__(self, media: EncodedMedia, check: EndpointCheck | None = None, required: Evidence = "") -> None:
        self.check = check or EndpointCheck()
        self.counted: set[str] = set()
        self._media = media
        self._required = required
        self._probes: list[tuple[Probe, Generation]] = []

    def first(self, request: Request) -> Conversation:
        """Examine by a real ``request`` of the run with pictures."""
        problem = yield from self._examine(request)
        is_shown = EVIDENCE.index(self.check.evidence) <= EVIDENCE.index(self._required)
        return problem or ("" if is_shown else _LOST[self._required].format(n=len(self._probes)))

    def _examine(self, request: Request) -> Conversation:
        real = yield _renamed(request)
        (probe, shown), alone = (yield from self._ask_probe()), (yield _renamed(Probe.alone))
        self.check = replace(self.check, probe_tokens=_prompt(shown), question_tokens=_prompt(alone))
        if real.finish_reason == shown.finish_reason == "error":
            if alone.finish_reason != "error":
                return f"its server answers without a picture, but not with one ({real.error})"
            same = len({_cause(answer) for answer in (real, shown, alone)}) == 1
            return f"its server answers no request ({real.error})" if same else ""  # else each reports its own failure
        if stands_at := _limit_of([real, shown, alone]):
            return f"{TRUNCATES}: different ones all stand at exactly {stands_at:,} tokens"
        if probe.is_read(shown):
            return self._shown("number")
        if shown.finish_reason == "error":
            return self._open(f"the server refused a picture of a number ({shown.error})")
        return (yield from self._examine_unread(request, probe, (real, shown, alone)))

    def _examine_unread(
        self, request: Request, probe: Probe, answers: tuple[Generation, Generation, Generation]
    ) -> Conversation:
        """Examine a model that misread the number of a ``probe``; the answers are to ``request``, to it, and to no picture."""
        real, shown, alone = answers
        _, other = yield from self._ask_probe(unlike=probe.number)
        while self._required == "number" and not _is_any_read(self._probes) and len(self._probes) < MOST_NUMBERS:
            yield from self._ask_probe()
        if _is_any_read(self._probes):
            return self._shown("number")
        if self._required == "number":
            return _LOST["number"].format(n=len(self._probes))
        counted = self._counts_pictures or shown.request_id in self.counted
        if _answer(shown) != _answer(other):
            if (yield from self._differs_by_picture()):
                return self._shown("answers")
            return self._shown("usage") if counted else self._open("its answers to one request differ")
        if counted:
            return self._shown("usage")
        if all(_NO_PICTURE.search(answer.text) for answer in (shown, other)):
            return f"its server drops pictures: asked to read one, it answers {_quoted(shown)}"
        if _prompt(shown) is not None and _prompt(shown) == _prompt(alone) != _prompt(real):
            mirrored = yield self._mirrored(request)
            if _answer(mirrored) == _answer(real):
                return (
                    f"its server drops pictures: a prompt has {_prompt(shown):,} tokens with and without its picture, and the "
                    f"answers to different pictures are the same"
                )
        return self._open("it read no number, and gave different pictures the same answer")

    def _differs_by_picture(self) -> Generator[Request, Generation, bool]:
        """Return whether each of two pictures gets the same answer again and again."""
        for probe, before in self._probes[:2] * _REPEATS:
            now = yield _renamed(probe.request)
            if now.finish_reason == "error" or _answer(now) != _answer(before):
                return False
        return True

    def spot(self) -> Conversation:
        """Check that pictures are still seen: in one call if they are, except by a model that misreads numbers."""
        self.check = replace(self.check, spot_checks=self.check.spot_checks + 1)
        if self.check.evidence != "answers" or not self._probes:
            return (yield from self._spot_by_new_numbers())
        (first, before), (second, _) = self._probes[:2]
        now = yield _renamed(first.request)
        if now.finish_reason == "error":
            return ""
        if self._fell(now):
            return (yield from self._spot_by_new_numbers())
        if _answer(now) != _answer(before):
            other = yield _renamed(second.request)
            if other.finish_reason != "error" and _answer(other) == _answer(now):
                return "answers to different pictures differed at first, and are the same now"
        return ""

    @property
    def is_worth_repeating(self) -> bool:
        """True if a spot check could show anything."""
        return bool(self.check.evidence)

    def _spot_by_new_numbers(self) -> Conversation:
        """Check by new numbers, which no cache of the server holds."""
        shown: list[tuple[Probe, Generation]] = []
        while len(shown) < MOST_NUMBERS:
            probe = Probe(self._media)
            answer = yield probe.request
            shown.append((probe, answer))
            if answer.finish_reason == "error" or _is_any_read(shown):
                return ""
            if len(shown) > 1 and all(self._fell(answer) for _, answer in shown[-2:]):
                return (
                    f"its server drops pictures now: a prompt with one had {self.check.probe_tokens:,} tokens at first, and has "
                    f"{_prompt(answer):,} since"
                )
            if self.check.evidence != "number" and not self._fell(answer):
                return ""
        return f"{_LOST['number'].format(n=len(shown))}; the last one is answered {_quoted(answer)}"

    @property
    def _counts_pictures(self) -> bool:
        """True if the server's usage counted a picture at first."""
        shown, alone = self.check.probe_tokens, self.check.question_tokens
        return shown is not None and alone is not None and shown >= alone + PICTURE_TOKENS

    def _fell(self, answer: Generation) -> bool:
        """Return whether a prompt with a picture has no more tokens than the question alone, and had at first."""
        now, alone = _prompt(answer), self.check.question_tokens
        return self._counts_pictures and now is not None and abs(now - (alone or 0)) < PICTURE_TOKENS

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


def _is_any_read(probes: Sequence[tuple[Probe, Generation]]) -> bool:
    """Return whether a number was read, or more digits than a guess gets right, as by a model that misreads some."""
    return any(probe.is_read(answer) for probe, answer in probes) or (
        sum(probe.digits_read(answer) for probe, answer in probes) >= _DIGITS_READ
    )


def _cause(answer: Generation) -> str:
    """Return the error of an answer without the parts that change from call to call, such as numbers and ids."""
    return re.sub(r"\b[\w-]*\d[\w-]*\b", "", answer.error or "") if answer.finish_reason == "error" else ""


def _prompt(answer: Generation) -> int | None:
    return answer.prompt_tokens if answer.finish_reason != "error" else None


def _answer(answer: Generation) -> str:
    return " ".join(answer.text.split())


def _quoted(answer: Generation) -> str:
    text = _answer(answer)
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


def _is_picture(part: object) -> bool:
    return isinstance(part, Media) and part.modality == "image"


def _without_separators(answer: Generation) -> str:
    return re.sub(r"(?<=\d)[\s,.'_-]+(?=\d)", "", answer.text)


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
