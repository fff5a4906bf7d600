"""What is asked about one caption, and of which of the two models; why it is given up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Literal, TypeVar

from benchmarks.base import Decoding, Form, Generation, Message, Request, Text, canonical_json
from benchmarks.build import BuildOptions
from benchmarks.clash.construction.checks import CaptionDraft, Check, ModelCheck, refused
from benchmarks.errors import SpecError
from benchmarks.text.json_replies import UnreadableReply
from benchmarks.text_model import TextModel, ask_all

Who = Literal["writer", "checker"]

ATTEMPTS = 3
"""How often a model is asked before a caption is given up for a reply that cannot be read."""

_MAX_TOKENS = 512
_WARMER = 0.7
_SHOWN = 600

_Read = TypeVar("_Read")


class RejectedCaption(Exception):
    """Why a caption gives no sample: the check's name, the reason, what was written and replied so far."""

    def __init__(self, check: str, reason: str, draft: CaptionDraft | None = None, reply: str = "") -> None:
        written = f"; written: {canonical_json(asdict(draft))}" if draft else ""
        replied = f"; reply: {canonical_json(reply[:_SHOWN])}" if reply else ""
        super().__init__(f"{check}: {reason}{written}{replied}")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request and which of the two models it is for."""

    who: Who
    request: Request


Way = Generator[ModelRequest, Generation, CaptionDraft]
"""What is asked about one caption; returns the accepted draft or raises Rejected."""


@dataclass(frozen=True, slots=True)
class ConstructionModels:
    """The two models of a construction."""

    writer: TextModel
    checker: TextModel

    @classmethod
    def of(cls, options: BuildOptions) -> ConstructionModels:
        """Those of the options; the checker is the writer where none is named. Raises SpecError without a writer."""
        if options.writer is None:
            raise SpecError(
                "a construction needs a model that writes: give --writer MODEL, and --checker MODEL for another one that "
                "checks what was written (else the writer does)."
            )
        if options.per_stratum < 1:
            raise SpecError(f"the target of samples a kind of change is {options.per_stratum}; it must be at least 1.")
        return cls(options.writer, options.checker or options.writer)

    def ask(self, asks: Sequence[ModelRequest]) -> list[Generation]:
        """The replies to ``asks``, in their order; requests of the same content are asked once.

        Raises ModelError where a model answers none of many requests.
        """
        replies: dict[tuple[Who, str], Generation] = {}
        for who, model in self._both().items():
            requests: dict[str, Request] = {}
            for ask in asks:
                if ask.who == who:
                    requests.setdefault(ask.request.digest, ask.request)
            digests = {request.id: digest for digest, request in requests.items()}
            replies |= {(who, digests[of]): reply for of, reply in ask_all(model, requests.values()).items()}
        nothing = Generation("", "", "error", error="no reply came")
        return [replies.get((ask.who, ask.request.digest), nothing) for ask in asks]

    def _both(self) -> Mapping[Who, TextModel]:
        return {"writer": self.writer, "checker": self.checker}


class CaptionDialogue:
    """Asks about one caption: numbers the requests, asks again where a reply cannot be read."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._decoding = Decoding(max_tokens=_MAX_TOKENS, seed=seed)
        self._steps = count()

    def ask(
        self, who: Who, text: str, form: Form | None, read: Callable[[str], _Read], draft: CaptionDraft | None = None
    ) -> Generator[ModelRequest, Generation, _Read]:
        """What ``read`` makes of the reply. Raises Rejected after ``ATTEMPTS`` replies that it cannot read."""
        problem, reply = "", Generation("", "", "error")
        for attempt in range(ATTEMPTS):
            # A greedy reply is the same under any seed, so asking again is not greedy.
            again = replace(self._decoding, seed=self._decoding.seed + attempt, temperature=_WARMER if attempt else 0.0)
            message = Message("user", (Text(text),))
            reply = yield ModelRequest(who, Request(self._name, next(self._steps), (message,), again, form))
            if reply.finish_reason == "error":
                raise RejectedCaption("error", f"the {who} gave no reply ({reply.error})", draft)
            try:
                return read(reply.text)
            except UnreadableReply as error:
                cut = ", and was cut at the token limit" if reply.finish_reason == "length" else ""
                problem = f"{error}{cut}"
        raise RejectedCaption("unparsed", f"the {who}'s reply cannot be read: {problem}", draft, reply.text)

    def check(self, check: ModelCheck, draft: CaptionDraft) -> Generator[ModelRequest, Generation, None]:
        """Puts a check of Appendix B.2 to the checker. Raises Rejected where it refuses the draft."""
        reason, said = yield from self.ask(
            "checker", check.text(draft), check.form, lambda reply: (check.refused(reply), reply), draft
        )
        if reason is not None:
            raise RejectedCaption(check.name, reason, draft, said)


def check(checks: Mapping[str, Check], draft: CaptionDraft) -> None:
    """Raises Rejected where one of the automatic ``checks`` refuses the draft."""
    found = refused(checks, draft)
    if found is not None:
        raise RejectedCaption(*found, draft)
