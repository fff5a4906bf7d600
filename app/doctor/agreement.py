"""Answers of one model in Rashomon and in a plain loop around its library: tokens, memory and speed.

``python -m app.doctor.agreement MODEL FOLDER`` answers in Rashomon, one at a time and in batches, and prints one line of JSON.
:func:`compare_with_loop` starts it, and then the loop, each as a process of its own: only one holds the model at a time.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from app.doctor.child import child_json
from app.doctor.measure import PASSAGE, QUESTION, Pictures
from app.parity.numerics import replay
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Part, Request, Text
from mlx_backends.base import Backend
from mlx_backends.core.batch_invariance import MARGIN_FACTOR
from mlx_backends.models.discovery import read_config, resolve
from mlx_backends.models.memory_estimate import memory_fit, peak_memory, required_memory
from mlx_backends.models.request_memory import pixels_per_token
from mlx_backends.registry import load_backend

CHARTS = 4
_ANSWER_TOKENS = 24
_TEXTS = (
    QUESTION,
    "Which bar is the highest, and what is its value?",
    PASSAGE + QUESTION,
    "List every name in the chart with its value. ",
    PASSAGE * 8 + QUESTION,
)
_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers in one way: ``tokens`` by prompt, the ``seconds`` of all, and MLX's ``peak`` in bytes."""

    tokens: Sequence[Sequence[int]]
    seconds: float
    peak: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rashomon's answers beside those of the loop, and the estimates of memory in bytes.

    ``way`` is how Rashomon answered several requests, ``check_s`` the seconds of the check that allowed it. ``near_ties`` are
    the prompts whose answers differ from the sequential ones by a tie that rounding explains.
    """

    library: str
    patches: str
    device: str
    loop: Answers
    exact: Answers
    batched: Answers
    way: str
    check_s: float
    near_ties: int
    need: int
    estimate: int
    available: int

    @property
    def count(self) -> int:
        return len(self.loop.tokens)

    def same(self, answers: Answers) -> int:
        """Return the number of ``answers`` that are the loop's, token for token."""
        return sum(ours == theirs for ours, theirs in zip(answers.tokens, self.loop.tokens, strict=True))

    @property
    def is_same(self) -> bool:
        """True if all answers are the loop's, but for near ties in batches."""
        return self.same(self.exact) == self.count and self.same(self.batched) + self.near_ties == self.count

    def first_difference(self, answers: Answers) -> str:
        """Return the place of the first difference to the loop; empty if there is none."""
        for number, (ours, theirs) in enumerate(zip(answers.tokens, self.loop.tokens, strict=True), 1):
            if ours != theirs:
                pairs = zip(ours, theirs, strict=False)
                place = next((i for i, (a, b) in enumerate(pairs, 1) if a != b), min(len(ours), len(theirs)) + 1)
                return f"prompt {number}, token {place}"
        return ""


def compare_with_loop(model: str) -> Agreement | str:
    """Return the comparison for ``model``, which MLX runs, or a sentence on why there is none."""
    with tempfile.TemporaryDirectory(prefix="rashomon-doctor-") as name:
        folder = Path(name)
        ours = child_json(["-m", "app.doctor.agreement", model, name], _SECONDS, RASHOMON_VISION_CACHE="0")
        if isinstance(ours, str):
            return ours.removeprefix("none: ")
        if "problem" in ours:
            return str(ours["problem"])
        file = folder / "prompts.json"
        file.write_text(json.dumps([ours["prompts"][0], *ours["prompts"]]))
        arguments = ["-m", "app.doctor.plain_loop", str(resolve(model)), str(file), ours["library"].partition(" ")[0]]
        loop = child_json(arguments, _SECONDS, HF_HUB_OFFLINE="1")
        if isinstance(loop, str):
            return f"the loop around {ours['library']} did not answer: {loop.removeprefix('none: ')}"
    # The first prompt comes twice, because the first answer compiles kernels.
    theirs = Answers(loop["tokens"][1:], sum(loop["seconds"][1:]), loop["peak_memory"])
    names = ("library", "patches", "device", "way", "check_s", "near_ties", "need", "estimate", "available")
    return Agreement(
        loop=theirs,
        exact=Answers(**ours["exact"]),
        batched=Answers(**ours["batched"]),
        **{name: ours[name] for name in names},
    )


def _measured(model: str, folder: Path) -> dict[str, Any]:
    """Return Rashomon's part of the comparison; ``folder`` takes pictures."""
    import mlx.core as mx

    pictures = Pictures(folder, CHARTS)
    backend = load_backend(model, pictures.path)
    info = backend.info
    requests = list(_requests(pictures if "image" in info.takes else None))
    backend.use_sequential_mode()
    _answer(backend, requests[:1])
    exact = _answer(backend, requests)
    started = perf_counter()
    check = backend.choose_mode(requests)
    check_s = perf_counter() - started
    batched = _answer(backend, requests)
    noise = MARGIN_FACTOR * (0.0 if check is None else check.noise)
    config, weights = read_config(resolve(model)), info.weights_bytes or 0
    pixels = max((_pixels(pictures, request) for request in requests), default=0)
    fit = memory_fit(weights)
    return {
        "library": f"{info.engine} {info.versions.get(info.engine, '')}",
        "patches": info.versions.get("patches", ""),
        "device": str(mx.default_device()),
        "prompts": [_prompt(backend, request, pictures) for request in requests],
        "exact": _plain(exact),
        "batched": _plain(batched),
        "way": "one at a time" if check is None else check.way,
        "check_s": check_s,
        "near_ties": _near_ties(backend, requests, exact, batched, noise),
        "need": required_memory(weights),
        "estimate": peak_memory(
            config,
            weights,
            prompt_tokens=max(answer.prompt_tokens or 0 for answer in exact[0]),
            image_tokens=pixels // pixels_per_token(config) if pixels else 0,
            max_tokens=_ANSWER_TOKENS,
        ),
        "available": fit.available,
    }


def _requests(pictures: Pictures | None) -> Iterator[Request]:
    """Yield the questions about each chart, or without pictures the texts alone."""
    for number, chart in enumerate(pictures.charts if pictures else range(CHARTS)):
        for place, text in enumerate(_TEXTS):
            parts: tuple[Part, ...] = (chart, Text(text)) if isinstance(chart, Media) else (Text(f"{number}. {text}"),)
            decoding = Decoding(max_tokens=_ANSWER_TOKENS)
            yield Request(f"{number}-{place}", 0, (Message("user", parts),), decoding)


def _answer(backend: Backend, requests: Sequence[Request]) -> tuple[list[Generation], float]:
    """Return the answers in the order of the ``requests``, and the seconds they took. Raises RuntimeError if one failed."""
    started, done = perf_counter(), dict[str, Generation]()
    waiting, busy = list(requests), 0
    while waiting or busy:
        while waiting and busy < backend.capacity:
            backend.submit(waiting.pop(0))
            busy += 1
        for generation in backend.step():
            if generation.error is not None:
                raise RuntimeError(generation.error)
            done[generation.request_id] = generation
            busy -= 1
    return [done[request.id] for request in requests], perf_counter() - started


def _plain(answers: tuple[list[Generation], float]) -> Mapping[str, Any]:
    generations, seconds = answers
    return {
        "tokens": [list(generation.tokens) for generation in generations],
        "seconds": seconds,
        "peak": max(generation.peak_memory or 0 for generation in generations),
    }


def _prompt(backend: Backend, request: Request, pictures: Pictures) -> Mapping[str, Any]:
    """Return a request as ``plain_loop.py`` takes it."""
    parts = request.messages[0].parts
    images = [str(pictures.path(part)) for part in parts if isinstance(part, Media)]
    texts = "".join(part.text for part in parts if isinstance(part, Text))
    text = backend.probe(request, ()).prompt if backend.info.engine == "mlx-vlm" else texts
    return {"text": text, "images": images, "max_tokens": request.decoding.max_tokens}


def _near_ties(
    backend: Backend,
    requests: Sequence[Request],
    exact: tuple[list[Generation], float],
    batched: tuple[list[Generation], float],
    noise: float,
) -> int:
    """Return how many batched answers that differ from the sequential ones follow a tie that ``noise`` explains."""
    pairs = zip(requests, exact[0], batched[0], strict=True)
    differing = [(request, many.tokens) for request, alone, many in pairs if many.tokens != alone.tokens]
    if not differing or backend.info.engine != "mlx-vlm":
        return 0
    backend.use_sequential_mode()
    replayed = replay([backend.probe(request, tokens) for request, tokens in differing], noise)
    return replayed.answers - replayed.other


def _pixels(pictures: Pictures, request: Request) -> int:
    from PIL import Image

    total = 0
    for part in request.messages[0].parts:
        if isinstance(part, Media):
            with Image.open(pictures.path(part)) as image:
                total += image.width * image.height
    return total


def main(model: str, folder: str) -> None:
    """Print Rashomon's part of the comparison, or the ``problem``."""
    with redirect_stdout(sys.stderr):
        try:
            result = _measured(model, Path(folder))
        except RashomonError as error:
            result = {"problem": str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
