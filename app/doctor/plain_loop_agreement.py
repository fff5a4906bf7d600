"""Answers of one model in Rashomon and in a plain loop around its library: tokens, memory and speed.

``python -m app.doctor.plain_loop_agreement MODEL FOLDER`` answers in Rashomon, one at a time and in batches, and prints one line
of JSON. :func:`compare_with_loop` starts it, and then the loop, each as a process of its own: only one holds the model at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from app.doctor.measure_machine import PASSAGE, QUESTION, Pictures, answer_all, make_request
from app.doctor.measuring_process import child_json
from app.parity.batching_stage import largest_tie
from app.parity.numerics_stage import replay
from app.parity.output_stages import first_divergence
from benchmarks.errors import RashomonError
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.vocabulary import Media, Request, Text
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from mlx_backends.models.memory_and_cache_sizes import memory_fit, peak_memory
from mlx_backends.models.model_discovery import read_config, resolve
from mlx_backends.models.request_memory import pixels_per_token

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
    """Rashomon's answers one at a time (``exact``) and as in a run (``batched``), beside the loop's; memory in bytes.

    ``engine`` names the library, its patches and the device; ``way`` is how Rashomon answered several requests, ``check_s`` the
    seconds of the check that allowed it. ``near_ties`` are the batched answers that differ from the exact ones by a tie that
    rounding explains. ``need`` is the estimate for the model, ``estimate`` that for these prompts.
    """

    engine: str
    loop: Answers
    exact: Answers
    batched: Answers
    way: str
    check_s: float
    near_ties: int
    need: int
    estimate: int
    available: int

    def differences(self, answers: Answers) -> list[str]:
        """Return the place of the first difference to the loop, for each of the ``answers`` that differs."""
        pairs = zip(answers.tokens, self.loop.tokens, strict=True)
        places = [first_divergence(ours, theirs) for ours, theirs in pairs]
        return [f"prompt {number}, token {place}" for number, place in enumerate(places, 1) if place is not None]


def compare_with_loop(model: str) -> Agreement | str:
    """Return the comparison for ``model``, which MLX runs, or a sentence on why there is none."""
    with scratch_folder() as folder:
        ours = child_json(
            ["-m", "app.doctor.plain_loop_agreement", model, str(folder)], _SECONDS, RASHOMON_VISION_CACHE="0"
        )
        if isinstance(ours, str) or "problem" in ours:
            return ours.removeprefix("none: ") if isinstance(ours, str) else str(ours["problem"])
        file = folder / "prompts.json"
        # The first prompt comes twice, because the first answer compiles kernels.
        file.write_text(json.dumps([ours["prompts"][0], *ours.pop("prompts")]))
        arguments = ["-m", "app.doctor.plain_loop", str(resolve(model)), str(file), ours["engine"].partition(" ")[0]]
        loop = child_json(arguments, _SECONDS, HF_HUB_OFFLINE="1")
        if isinstance(loop, str):
            return f"the loop around {ours['engine']} did not answer: {loop.removeprefix('none: ')}"
    theirs = Answers(loop["tokens"][1:], sum(loop["seconds"][1:]), loop["peak_memory"])
    exact, batched = (Answers(**ours.pop(name)) for name in ("exact", "batched"))
    return Agreement(loop=theirs, exact=exact, batched=batched, **ours)


def _measure(model: str, folder: Path) -> Mapping[str, Any]:
    """Return Rashomon's part of the comparison; ``folder`` takes pictures."""
    import mlx.core as mx

    pictures = Pictures(folder, CHARTS)
    backend = load_backend(model, pictures.path)
    info, sees = backend.info, "image" in backend.info.takes
    requests = list(_requests(pictures.charts if sees else ()))
    backend.use_sequential_mode()
    answer_all(backend, requests[:1])
    exact, longest = _answers(backend, requests)
    started = perf_counter()
    check = backend.choose_mode(requests)
    check_s = perf_counter() - started
    batched, _ = _answers(backend, requests)
    config, fit = read_config(resolve(model)), memory_fit(info.weights_bytes or 0)
    pixels = max(map(pictures.pixels, pictures.charts)) if sees else 0
    margin = largest_tie(0.0 if check is None else check.noise, info.quantisation)
    return {
        "engine": f"{info.engine} {info.versions.get(info.engine, '')} on {mx.default_device()}, "
        f"patches for this model: {info.versions.get('patches') or 'none'}",
        "prompts": [_prompt(backend, request, pictures) for request in requests],
        "exact": asdict(exact),
        "batched": asdict(batched),
        "way": "one at a time" if check is None else check.way,
        "check_s": check_s,
        "near_ties": near_ties(backend, requests, exact, batched, margin),
        "need": fit.need,
        "estimate": peak_memory(
            config,
            info.weights_bytes or 0,
            prompt_tokens=longest,
            image_tokens=pixels // pixels_per_token(config) if pixels else 0,
            max_tokens=_ANSWER_TOKENS,
        ),
        "available": fit.available,
    }


def _requests(charts: Sequence[Media]) -> Iterator[Request]:
    """Yield the questions about each chart, or without ``charts`` the texts alone."""
    for number in range(CHARTS):
        for place, text in enumerate(_TEXTS):
            question = text if charts else f"{number}. {text}"
            yield make_request(f"{number}-{place}", charts[number : number + 1], question, _ANSWER_TOKENS)


def _answers(backend: Backend, requests: Sequence[Request]) -> tuple[Answers, int]:
    """Return the answers, and the tokens of the longest prompt."""
    started = perf_counter()
    answers = answer_all(backend, requests)
    seconds, peak = perf_counter() - started, max(answer.peak_memory or 0 for answer in answers)
    longest = max(answer.prompt_tokens or 0 for answer in answers)
    return Answers([list(answer.tokens) for answer in answers], seconds, peak), longest


def _prompt(backend: Backend, request: Request, pictures: Pictures) -> Mapping[str, Any]:
    """Return a request as ``plain_loop.py`` takes it."""
    parts = request.messages[0].parts
    images = [str(pictures.path(part)) for part in parts if isinstance(part, Media)]
    texts = "".join(part.text for part in parts if isinstance(part, Text))
    text = backend.probe(request, ()).prompt if backend.info.engine == "mlx-vlm" else texts
    return {"text": text, "images": images, "max_tokens": request.decoding.max_tokens}


def near_ties(backend: Backend, requests: Sequence[Request], exact: Answers, batched: Answers, margin: float) -> int:
    """Return how many batched answers that differ from the exact ones follow a tie of at most ``margin``."""
    rows = zip(requests, exact.tokens, batched.tokens, strict=True)
    differing = [(request, tokens) for request, alone, tokens in rows if tokens != alone]
    if not differing or backend.info.engine != "mlx-vlm":  # mlx-lm's models show no logprobs of forced tokens
        return 0
    backend.use_sequential_mode()
    replayed = replay([backend.probe(request, tokens) for request, tokens in differing], margin)
    return replayed.answers - replayed.other


def main(model: str, folder: str) -> None:
    """Print Rashomon's part of the comparison, or the ``problem``."""
    with redirect_stdout(sys.stderr):
        try:
            result = _measure(model, Path(folder))
        except RashomonError as error:
            result = {"problem": str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
