"""Greedy answers of one model in several programs, each in a process of its own, to see that a conversion keeps them.

``python -m mlx_backends.greedy_check MODEL [PEFT]`` prints the answers of a model, with peft's adapter in the folder ``PEFT``,
as JSON. A process of its own is needed because importing mlx-vlm changes transformers, and so that one model is in memory.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.vocabulary import Decoding, Media, Message, Part, Request, Text
from mlx_backends.core.error_text import one_line

TORCH = "cuda:"
_FP32 = "@fp32@cpu"
_QUESTIONS = ("What does the picture show?", "Which bar is the highest, and what is its value? The text says 40.")
_TOKENS = 24

Tokens = dict[str, list[int]]
"""The tokens of each answer, by the request's id."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Answers of a ``program`` compared with those in MLX: ``same`` of ``total``; ``problem`` says why there are none."""

    program: str
    same: int = 0
    total: int = 0
    problem: str = ""

    @property
    def sentence(self) -> str:
        """Return the result as a line for the terminal."""
        if self.problem:
            return f"{self.program}: not checked: {self.problem}"
        advice = "" if self.same == self.total else "; measure it before you use it"
        return f"{self.program}: {self.same} of {self.total} greedy answers are those of MLX, token for token{advice}"


def torch_problem(*libraries: str) -> str:
    """Return why nothing can be answered in PyTorch with ``libraries`` here; empty where it can."""
    missing = [name for name in ("torch", *libraries) if find_spec(name) is None]
    if not missing:
        return ""
    names = " and ".join({"torch": "PyTorch"}.get(name, name) for name in missing)
    return f"{names} {'is' if len(missing) == 1 else 'are'} not installed."


def compare(program: str, expected: Tokens, model: str, peft: Path | None = None) -> Agreement:
    """Return how many of the ``expected`` answers ``model`` gives in ``program``, as in :func:`greedy_answers`."""
    try:
        actual = greedy_answers(model, peft)
    except ModelError as error:
        return Agreement(program, problem=str(error))
    return Agreement(program, sum(actual.get(key) == tokens for key, tokens in expected.items()), len(expected))


def greedy_answers(model: str, peft: Path | None = None) -> Tokens:
    """Return the tokens that ``model`` answers in a new process: text alone, and questions on two drawn pictures.

    Both engines compute in 32 bits: in fewer, rounding can change an answer. ``model`` is a name as in a run (``cuda:`` for
    transformers, on the CPU); ``peft`` is a folder with peft's adapter, for ``cuda:`` models. Raises ModelError where it
    cannot answer.
    """
    name = f"{model}{_FP32}" if model.startswith(TORCH) else model
    command = [sys.executable, "-m", "mlx_backends.greedy_check", name, *([str(peft)] if peft else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        lines = done.stderr.strip().splitlines() or [f"the process ended with code {done.returncode}"]
        raise ModelError(f"{model} did not answer: {lines[-1][:300]}.") from error
    if isinstance(answer, str):
        raise ModelError(answer)
    return dict(answer)


def _requests(folder: Path) -> list[Request]:
    """Return the requests; their pictures are drawn to ``folder``."""
    pictures = [_picture(folder, values) for values in ((12, 40, 25), (31, 8, 17))]
    parts: list[tuple[Part, ...]] = [(Text("The report says 34. What does the report say?"),)]
    parts += [(picture, Text(question)) for picture in pictures for question in _QUESTIONS]
    return [
        Request(f"{number}", 0, (Message("user", message),), Decoding(max_tokens=_TOKENS, max_pixels=40_000))
        for number, message in enumerate(parts)
    ]


def _picture(folder: Path, values: tuple[int, ...]) -> Media:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (160, 120), "white")
    draw = ImageDraw.Draw(image)
    for place, (value, colour) in enumerate(zip(values, ("navy", "firebrick", "seagreen"), strict=True)):
        draw.rectangle((15 + 50 * place, 110 - 2 * value, 45 + 50 * place, 110), fill=colour)
        draw.text((20 + 50 * place, 96 - 2 * value), str(value), fill="black")
    file = folder / "picture.png"
    image.save(file)
    medium = Media(hashlib.sha256(file.read_bytes()).hexdigest(), ".png")
    file.rename(folder / medium.name)
    return medium


def _main(model: str, peft: str | None = None) -> Any:
    """Return the answers, or a sentence on why there are none."""
    from mlx_backends.engine_registry import load_backend

    with scratch_folder() as folder:
        requests = _requests(folder)
        try:
            backend: Any = load_backend(model, lambda medium: folder / medium.name)
            if peft is not None:
                from peft import PeftModel

                PeftModel.from_pretrained(backend._model, peft)  # puts its layers into the model itself
            elif not model.startswith(TORCH):
                import mlx.core as mx

                backend._model.set_dtype(mx.float32)
            answers = {}
            for request in requests:
                backend.submit(request)
                while not (done := backend.step()):
                    pass
                if done[0].error:
                    return f"{model} failed: {one_line(done[0].error)}"
                answers[request.id] = list(done[0].tokens)
            return answers
        except RashomonError as error:
            return str(error)
        except Exception as error:  # libraries that load a converted model can raise anything
            return f"{model} did not answer: {one_line(error)}"


if __name__ == "__main__":
    print(json.dumps(_main(*sys.argv[1:])))
