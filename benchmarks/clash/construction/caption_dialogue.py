"""The requests about one caption to the two models of a construction, and its rejection."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Literal, TypeVar

from benchmarks.build import BuildOptions
from benchmarks.clash.construction.caption_checks import CaptionDraft, Check, ModelCheck, first_refusal
from benchmarks.clash.construction.clash_construction_sets import PrintedPrompts
from benchmarks.errors import SpecError
from benchmarks.text.json_replies import UnreadableReply
from benchmarks.text_model import TextModel, generate_all
from benchmarks.vocabulary import Decoding, Form, Generation, Message, Request, Text, canonical_json

ModelRole = Literal["writer", "checker"]

ATTEMPTS = 3
"""The number of requests before a caption is given up because no reply can be read."""

_MAX_TOKENS = 512
_WARMER = 0.7
_SHOWN = 600

_Read = TypeVar("_Read")


class RejectedCaption(Exception):
    """A caption that gives no sample: the check's name, the reason, and what was written and replied so far."""

    def __init__(self, check: str, reason: str, draft: CaptionDraft | None = None, reply: str = "") -> None:
        draft_note = f"; written: {canonical_json(asdict(draft))}" if draft else ""
        replied = f"; reply: {canonical_json(reply[:_SHOWN])}" if reply else ""
        super().__init__(f"{check}: {reason}{draft_note}{replied}")
        self.check = check
        self.draft = draft


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request and the role of the model that it is for."""

    role: ModelRole
    request: Request


CaptionSteps = Generator[ModelRequest, Generation, CaptionDraft]
"""The requests about one caption; returns the accepted draft or raises RejectedCaption."""


@dataclass(frozen=True, slots=True)
class ConstructionModels:
    """The two models of a construction."""

    writer: TextModel
    checker: TextModel

    @classmethod
    def of(cls, options: BuildOptions) -> ConstructionModels:
        """Return the models of ``options``; without a checker the writer checks. Raises SpecError without a writer."""
        if options.writer is None:
            raise SpecError(
                "a construction needs a writing model: add --writer MODEL, and --checker MODEL to have another model check "
                "the result (default: the writer)."
            )
        if options.per_stratum < 1:
            raise SpecError(f"the target of samples per kind of change is {options.per_stratum}; set it to at least 1.")
        return cls(options.writer, options.checker or options.writer)

    def ask(self, asks: Sequence[ModelRequest]) -> list[Generation]:
        """Return the replies to ``asks``, in order; requests with the same content are sent once.

        Raises ModelError if a model answers none of many requests.
        """
        replies: dict[tuple[ModelRole, str], Generation] = {}
        for role, model in self._both().items():
            requests: dict[str, Request] = {}
            for ask in asks:
                if ask.role == role:
                    requests.setdefault(ask.request.digest, ask.request)
            digests = {request.id: digest for digest, request in requests.items()}
            replies |= {(role, digests[of]): reply for of, reply in generate_all(model, requests.values()).items()}
        nothing = Generation("", "", "error", error="no reply came")
        return [replies.get((ask.role, ask.request.digest), nothing) for ask in asks]

    def _both(self) -> Mapping[ModelRole, TextModel]:
        return {"writer": self.writer, "checker": self.checker}


class CaptionDialogue:
    """The requests about one caption: numbers them, and repeats one whose reply cannot be read."""

    def __init__(self, name: str, seed: int, prompts: PrintedPrompts) -> None:
        self._name = name
        self._prompts = prompts
        self._decoding = Decoding(max_tokens=_MAX_TOKENS, seed=seed)
        self._steps = count()

    def ask(
        self,
        who: ModelRole,
        text: str,
        form: Form | None,
        read: Callable[[str], _Read],
        draft: CaptionDraft | None = None,
    ) -> Generator[ModelRequest, Generation, _Read]:
        """Return the reply as parsed by ``read``. Raises RejectedCaption after ``ATTEMPTS`` unreadable replies."""
        problem, reply = "", Generation("", "", "error")
        for attempt in range(ATTEMPTS):
            # A greedy reply is the same under any seed, so a repeated request samples.
            next_decoding = replace(
                self._decoding, seed=self._decoding.seed + attempt, temperature=_WARMER if attempt else 0.0
            )
            message = Message("user", (Text(text),))
            reply = yield ModelRequest(who, Request(self._name, next(self._steps), (message,), next_decoding, form))
            if reply.finish_reason == "error":
                raise RejectedCaption("error", f"the {who} gave no reply ({reply.error})", draft)
            try:
                return read(reply.text)
            except UnreadableReply as error:
                cut = ", and was cut at the token limit" if reply.finish_reason == "length" else ""
                problem = f"{error}{cut}"
        raise RejectedCaption("unparsed", f"the {who}'s reply cannot be read: {problem}", draft, reply.text)

    def check(self, check: ModelCheck, draft: CaptionDraft) -> Generator[ModelRequest, Generation, None]:
        """Send a check of Appendix B.2 to the checker. Raises RejectedCaption if it refuses the draft."""
        reason, reply_text = yield from self.ask(
            "checker", self._prompts.check(check, draft), check.form, lambda reply: (check.refused(reply), reply), draft
        )
        if reason is not None:
            raise RejectedCaption(check.name, reason, draft, reply_text)


def run_checks(checks: Mapping[str, Check], draft: CaptionDraft) -> None:
    """Raise RejectedCaption if one of the automatic ``checks`` refuses the draft."""
    refusal = first_refusal(checks, draft)
    if refusal is not None:
        raise RejectedCaption(*refusal, draft)
