"""Answers that need no model: the baselines a benchmark's figures are read against."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import SHOWN_TEXT, Generation, Request
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.models.modalities import ALL_MODALITIES
from mlx_backends.options import LoadOptions

PREFIX = "policy:"
ABSTAIN = "The sources disagree, so the answer cannot be determined."

_LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
_SPEAKS_OF = {
    **dict.fromkeys(("always-image", "always-text", "always-abstain", "random", "uniform"), ("image", "text")),
    **dict.fromkeys(("always-yes", "always-no"), ("answer",)),
}
"""Each policy, and the references without which it means nothing."""
_NEITHER = ("Ouagadougou", "Tbilisi", "Reykjavik", "Quito")


def policy_names() -> tuple[str, ...]:
    """Return the policies, as models are named: ``policy:always-image`` ..."""
    return tuple(PREFIX + name for name in _SPEAKS_OF)


def means_nothing(model: str, references: Iterable[Mapping[str, Sequence[str]]]) -> bool:
    """Return whether ``model`` is a policy that says nothing about instances with these references.

    Policies of sources need one of the references "image" and "text" in any of the instances, always-yes and always-no
    need "answer". False for whatever is no policy.
    """
    needed = _SPEAKS_OF.get(model.removeprefix(PREFIX), ()) if model.startswith(PREFIX) else ()
    return bool(needed) and not any(each.get(source) for each in references for source in needed)


class PolicyEngine(Engine):
    """Baselines that look at no medium, as ``policy:NAME``."""

    def describe(self, model: str) -> EngineInfo:
        """Return what answers as ``model``. Raises SpecError for an unknown name."""
        return PolicyBackend(model).info

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        return PolicyBackend(model)


class PolicyBackend(Backend):
    """Answers from a request's ``references`` alone, in text that a judge labels as the policy means it.

    ``always-image`` and ``always-text`` give their source's first reference, or its option's letter in a multiple choice,
    and abstain where the condition does not show that source; ``random`` gives one of the references there are,
    ``uniform`` an answer for one of the five labels of CMC-Bench. These two draw by a hash of the request, so an answer
    does not depend on what is asked before it. To abstain is to give the ``conflict`` reference where there is one. The
    text's reference is ``SHOWN_TEXT`` where there is one. ``always-yes`` and ``always-no`` answer with that word.
    Raises SpecError for an unknown name.
    """

    capacity = 64

    def __init__(self, model: str) -> None:
        name = model.removeprefix(PREFIX)
        if name not in _SPEAKS_OF:
            raise SpecError(f"there is no policy {model!r}; {did_you_mean(PREFIX + name, policy_names())}")
        self.info = EngineInfo(engine="policy", model=PREFIX + name, needs_device=False, takes=ALL_MODALITIES)
        self._name = name
        self._waiting: deque[Request] = deque()

    def submit(self, request: Request) -> None:
        if len(self._waiting) >= self.capacity:
            raise RuntimeError("the policy already holds as many requests as its capacity")
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        done = [Generation(request.id, self._answer(request), "stop") for request in self._waiting]
        self._waiting.clear()
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(request for request in self._waiting if request.id != request_id)

    def _answer(self, request: Request) -> str:
        references = request.references
        text = SHOWN_TEXT if references.get(SHOWN_TEXT) else "text"
        shown = {
            source: said for source, key in (("image", "image"), ("text", text)) if (said := _said(key, references))
        }
        abstain = _said("conflict", references) or ABSTAIN
        match self._name:
            case "always-yes":
                return "Yes"
            case "always-no":
                return "No"
            case "always-image":
                return shown.get("image", abstain)
            case "always-text":
                return shown.get("text", abstain)
            case "random" if shown:
                return list(shown.values())[self._draw(request, len(shown))]
            case "uniform":
                return _as(_LABELS[self._draw(request, len(_LABELS))], shown, references) or abstain
        return abstain

    def _draw(self, request: Request, choices: int) -> int:
        """One of ``range(choices)``, evenly over requests; the seed is part of the request's digest."""
        key = f"{self._name}\0{request.decoding.seed}\0{request.id}\0{request.digest}"
        return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()) % choices


def _said(source: str, references: Mapping[str, tuple[str, ...]]) -> str:
    """Return what stands for ``source``: its option's letter in brackets in a multiple choice, else its first reference."""
    for key, form in ((f"{source} letter", "({})"), (source, "{}")):
        if references.get(key):
            return form.format(references[key][0])
    return ""


def _as(label: str, shown: Mapping[str, str], references: Mapping[str, tuple[str, ...]]) -> str:
    """Return an answer that a judge gives ``label``; nothing where it is ABSTAIN or the sources shown do not allow it."""
    match label:
        case "IMAGE" if "image" in shown:
            return shown["image"]
        case "TEXT" if "text" in shown:
            return shown["text"]
        case "BOTH" if len(shown) == 2:
            return f"Both sources are right: the image says {shown['image']}, the text says {shown['text']}."
        case "NEITHER":
            return _said("distractor", references) or _neither(references)
    return ""


def _neither(references: Mapping[str, tuple[str, ...]]) -> str:
    """Return a value that no reference is, contains or (references of one or two characters aside) is contained in."""
    taken = [squeezed for values in references.values() for value in values if (squeezed := _squeeze(value))]
    free = (v for v in _candidates() if not any(_squeeze(v) in value or _occurs(value, v) for value in taken))
    return next(free)


def _candidates() -> Iterator[str]:
    return chain(_NEITHER, (str(number) for number in count(7_340_033, 1_000_003)))


def _occurs(value: str, candidate: str) -> bool:
    """Whether the reference ``value`` stands in ``candidate``; a very short one only if it is all of it."""
    return value == _squeeze(candidate) if len(value) < 3 else value in _squeeze(candidate)


def _squeeze(value: str) -> str:
    return re.sub(r"[\W_]+", "", value.casefold())
