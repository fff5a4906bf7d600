"""Policies: answers without a model, as baselines for a benchmark's metrics."""

from __future__ import annotations

import hashlib
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from string import ascii_uppercase

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import NOT_SHOWN, SHOWN_TEXT, Candidates, Generation, Request
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.models.model_modalities import ALL_MODALITIES
from mlx_backends.options import LoadOptions

PREFIX = "policy:"
ABSTAIN = ABSTENTION
ABSTAIN_ALONE = "The answer cannot be determined."
"""The abstention where fewer than two sources are displayed, which cannot disagree."""

_LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
_NEEDED_REFERENCES = {
    **dict.fromkeys(("always-image", "always-text", "always-abstain", "random", "uniform"), ("image", "text")),
    **dict.fromkeys(("always-yes", "always-no", "chance"), ("answer",)),
}
"""The references that each policy needs; one of them is enough."""
_DESCRIPTIONS = {
    "always-image": "always the image's value",
    "always-text": "always the text's value",
    "always-abstain": "always that it cannot be determined",
    "random": "the image's or the text's value, by chance",
    "uniform": "one of the five labels, by chance",
    "always-yes": "always yes",
    "always-no": "always no",
    "chance": "one of the options, by chance",
}
_NEITHER = ("Ouagadougou", "Tbilisi", "Reykjavik", "Quito")


def policy_names() -> tuple[str, ...]:
    """Return the policies' model names: ``policy:always-image`` ..."""
    return tuple(PREFIX + name for name in _NEEDED_REFERENCES)


def lacks_references(model: str, references: Iterable[Mapping[str, Sequence[str]]]) -> bool:
    """Return True if ``model`` is a policy, and these references of instances lack the ones that it needs.

    Policies of sources need "image" or "text" in any of the instances; always-yes, always-no and chance need "answer".
    """
    needed = _NEEDED_REFERENCES.get(model.removeprefix(PREFIX), ()) if model.startswith(PREFIX) else ()
    return bool(needed) and not any(instance.get(source) for instance in references for source in needed)


def policy_description(model: str) -> str:
    """Return what a policy answers, in a few words; empty for an unknown one."""
    return _DESCRIPTIONS.get(model.removeprefix(PREFIX), "")


def suitable_policies(labels: Iterable[str], references: Iterable[Mapping[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the policies that mean something for instances with these references, under a judge that gives ``labels``.

    A source's policy needs that source; always-yes and always-no need questions with such an answer, chance those or options.
    """
    sources: set[str] = set()
    has_yes_no = False
    for instance in references:
        sources.update(name for name, values in instance.items() if values)
        has_yes_no = has_yes_no or _is_yes_no(instance.get("answer", ()))
    has_text = bool(sources & {"text", SHOWN_TEXT})
    both = "image" in sources and has_text
    suitable = {
        "always-image": "image" in sources,
        "always-text": has_text,
        "always-abstain": both,
        "random": both,
        "uniform": both and set(_LABELS) <= set(labels),
        "always-yes": has_yes_no,
        "always-no": has_yes_no,
        "chance": has_yes_no or {"options", "answer"} <= sources,
    }
    return tuple(PREFIX + name for name, is_suitable in suitable.items() if is_suitable)


class PolicyEngine(Engine):
    """Baselines that read no medium, as ``policy:NAME``."""

    def describe(self, model: str) -> EngineInfo:
        """Describe the policy ``model``. Raises SpecError for an unknown name."""
        return PolicyBackend(model).info

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        return PolicyBackend(model)


class PolicyBackend(Backend):
    """A policy: answers from a request's ``references`` alone, in text to which a judge gives the intended label.

    ``always-image`` and ``always-text`` give their source's first reference, or the letter of its option in a multiple
    choice, and abstain if the condition does not display that source; ``random`` gives one of the references, ``uniform``
    an answer for one of the five labels of CMC-Bench. These two draw by a hash of the request, so that an answer does not
    depend on earlier requests. An abstention is the ``conflict`` reference, if there is one; it names a conflict only where
    both sources are displayed. The text's reference is
    ``SHOWN_TEXT``, if there is one. ``always-yes`` and ``always-no`` answer with that word. ``chance`` draws
    a letter of the ``options``, or Yes or No, and abstains if the answer is open: the accuracy of guessing.
    Raises SpecError for an unknown name.
    """

    capacity = 64

    def __init__(self, model: str) -> None:
        name = model.removeprefix(PREFIX)
        if name not in _NEEDED_REFERENCES:
            raise SpecError(f"there is no policy {model!r}; {did_you_mean(PREFIX + name, policy_names())}")
        self.info = EngineInfo(engine="policy", model=PREFIX + name, needs_device=False, takes=ALL_MODALITIES)
        self._name = name
        self._waiting: deque[Request] = deque()

    def submit(self, request: Request) -> None:
        if len(self._waiting) >= self.capacity:
            raise RuntimeError("the policy already holds as many requests as its capacity")
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        done = [self._generation(request) for request in self._waiting]
        self._waiting.clear()
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(request for request in self._waiting if request.id != request_id)

    def _generation(self, request: Request) -> Generation:
        """Return an answer, with the logprobs of a request's candidates: None for what the policy never answers."""
        answers = self._answers(request)
        answer = answers[self._draw(request, len(answers))]
        if not isinstance(request.form, Candidates):
            return Generation(request.id, answer, "stop")
        counts = [answers.count(word) for word in (*request.form.values, request.form.abstention, answer)]
        scores = tuple(math.log(count / len(answers)) if count else None for count in counts)
        return Generation(request.id, answer, "stop", scores=scores)

    def _answers(self, request: Request) -> Sequence[str]:
        """Return the answers that the policy draws one of, all equally likely."""
        references = request.references
        text = SHOWN_TEXT if references.get(SHOWN_TEXT) else "text"
        answers = {
            source: answer
            for source, key in (("image", "image"), ("text", text))
            if source not in references.get(NOT_SHOWN, ()) and (answer := _reference(key, references))
        }
        can_disagree = len(answers) > 1 or isinstance(request.form, Candidates)  # of which one is the former abstention
        abstain = _reference("conflict", references) or (ABSTAIN if can_disagree else ABSTAIN_ALONE)
        match self._name:
            case "always-yes":
                return ["Yes"]
            case "always-no":
                return ["No"]
            case "chance":
                return self._guesses(request)
            case "always-image":
                return [answers.get("image", abstain)]
            case "always-text":
                return [answers.get("text", abstain)]
            case "random" if answers:
                return list(answers.values())
            case "uniform":
                return [_answer_for(label, answers, references) or abstain for label in _LABELS]
        return [abstain]

    def _guesses(self, request: Request) -> Sequence[str]:
        options = request.references.get("options", ())
        is_yes_no = _is_yes_no(request.references.get("answer", ()))
        return ascii_uppercase[: len(options)] or (("Yes", "No") if is_yes_no else (ABSTAIN,))

    def _draw(self, request: Request, choices: int) -> int:
        """Draw one of ``range(choices)``, evenly over requests; the seed is part of the request's digest."""
        key = f"{self._name}\0{request.decoding.seed}\0{request.id}\0{request.unscored.digest}"
        return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()) % choices


def _is_yes_no(answers: Sequence[str]) -> bool:
    return bool(answers) and answers[0].strip().casefold() in ("yes", "no")


def _reference(source: str, references: Mapping[str, tuple[str, ...]]) -> str:
    """Return the answer of ``source``: in a multiple choice the letter of its option in brackets, else its first reference."""
    for key, form in ((f"{source} letter", "({})"), (source, "{}")):
        if references.get(key):
            return form.format(references[key][0])
    return ""


def _answer_for(label: str, answers: Mapping[str, str], references: Mapping[str, tuple[str, ...]]) -> str:
    """Return an answer that a judge labels ``label``; empty for ABSTAIN, and if the displayed sources do not allow it."""
    match label:
        case "IMAGE" if "image" in answers:
            return answers["image"]
        case "TEXT" if "text" in answers:
            return answers["text"]
        case "BOTH" if len(answers) == 2:
            return f"Both sources are right: the image says {answers['image']}, the text says {answers['text']}."
        case "NEITHER":
            return _reference("distractor", references) or _neither(references)
    return ""


def _neither(references: Mapping[str, tuple[str, ...]]) -> str:
    """Return a value that neither equals nor contains nor is part of a reference; one or two characters may be part of it."""
    known = [squeezed for values in references.values() for value in values if (squeezed := _squeeze(value))]
    unknown = (v for v in _candidates() if not any(_squeeze(v) in value or _occurs(value, v) for value in known))
    return next(unknown)


def _candidates() -> Iterator[str]:
    return chain(_NEITHER, (str(number) for number in count(7_340_033, 1_000_003)))


def _occurs(value: str, candidate: str) -> bool:
    """Return whether ``candidate`` contains the reference ``value``; a very short one must be all of it."""
    return value == _squeeze(candidate) if len(value) < 3 else value in _squeeze(candidate)


def _squeeze(value: str) -> str:
    return re.sub(r"[\W_]+", "", value.casefold())
