"""Measurements of this machine with the demo's model, in a process of its own: Metal can end one. Prints one line of JSON."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from app.system.project_paths import ASSETS
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Part, Request, Text
from mlx_backends.base import Backend
from mlx_backends.core.error_text import one_line
from mlx_backends.engine_registry import load_backend
from mlx_backends.models.memory_and_cache_sizes import device_info
from mlx_backends.sight_check import ReplaceableMedia, check_sight, sight_requests

_FACTS = ("device_name", "architecture", "memory_size", "max_recommended_working_set_size", "max_buffer_length")
QUESTION = "What is the value of kale? "
PASSAGE = "Of all that was counted, kale came to 68 in the end. "
_REPEATS = (0, 8, 24)  # of the passage: prompts of some 100, 300 and 900 tokens
_ANSWERS, _ANSWER_TOKENS = 3, 16
_SIDES = (512, 1024, 2048)
_FP32_SIZE = 512


class Pictures:
    """Images in memory and on disk, found by their content."""

    def __init__(self, folder: Path, charts: int) -> None:
        """Take a ``folder`` for the images, and put the first ``charts`` of the demo there."""
        self._folder = folder
        self.charts = [self.add(file.read_bytes()) for file in sorted((ASSETS / _CHARTS).glob("*.png"))[:charts]]

    def add(self, data: bytes) -> Media:
        medium = Media(hashlib.sha256(data).hexdigest(), ".png")
        (self._folder / medium.name).write_bytes(data)
        return medium

    def path(self, medium: Media) -> Path:
        return self._folder / medium.name

    def pixels(self, medium: Media) -> int:
        from PIL import Image

        with Image.open(self.path(medium)) as image:
            return image.width * image.height


_CHARTS = "demo/held_out/cmc-bench/charts"


def measure(folder: Path) -> dict[str, Any]:
    """Return the measurements by name, each a value or a sentence on why there is none; ``folder`` takes pictures."""
    import mlx.core as mx

    info = device_info()
    results: dict[str, Any] = {
        "device": str(mx.default_device()),
        "facts": {name: info[name] for name in _FACTS if isinstance(info.get(name), int | str)},
        "fp32": _try(_fp32_error),
    }
    pictures = Pictures(folder, 3)
    media = ReplaceableMedia(pictures.path)
    started = perf_counter()
    backend = load_backend(str(ASSETS / "demo" / "model-bf16"), media)
    results["load_s"] = perf_counter() - started
    requests = [
        make_request(f"{number}-{text}", picture, text) for number, (picture, text) in enumerate(_prompts(pictures))
    ]
    results["speed"] = _try(lambda: [_speed(backend, pictures.charts[0], repeats) for repeats in _REPEATS])
    results["images"] = _try(lambda: [_preparation(backend, pictures, side) for side in _SIDES])
    results["sight"] = _try(lambda: _plain(check_sight(backend, media, sight_requests(requests))))
    results["batches"] = _try(lambda: _plain(backend.choose_mode(requests)))
    backend.close()
    return results


def _try(part: Callable[[], Any]) -> Any:
    try:
        return part()
    except Exception as error:
        return one_line(error)


def _plain(result: Any) -> Any:
    return "nothing to check" if result is None else asdict(result)


def _fp32_error() -> float:
    """Return the relative error of a product of fp32 matrices: some 1e-7 in fp32, and 1e-4 or more in TF32."""
    import mlx.core as mx
    import numpy as np

    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((_FP32_SIZE, _FP32_SIZE)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(np.array(mx.array(a) @ mx.array(b)) - exact) / np.linalg.norm(exact))


def _prompts(pictures: Pictures) -> Iterator[tuple[tuple[Media, ...], str]]:
    for chart in pictures.charts:
        for text in (QUESTION, PASSAGE + QUESTION):
            yield (chart,), text
    yield tuple(pictures.charts[:2]), QUESTION


def make_request(name: str, images: Sequence[Media], text: str, max_tokens: int = _ANSWER_TOKENS) -> Request:
    """Return a request with ``images`` before its ``text``."""
    parts: tuple[Part, ...] = (*images, Text(text))
    return Request(name, 0, (Message("user", parts),), Decoding(max_tokens=max_tokens))


def answer_all(backend: Backend, requests: Sequence[Request]) -> list[Generation]:
    """Return the answers in the order of the ``requests``. Raises RuntimeError if one failed."""
    waiting, done = list(reversed(requests)), dict[str, Generation]()
    while len(done) < len(requests):
        while waiting and len(requests) - len(waiting) - len(done) < backend.capacity:
            backend.submit(waiting.pop())
        for answer in backend.step():
            if answer.error is not None:
                raise RuntimeError(answer.error)
            done[answer.request_id] = answer
    return [done[request.id] for request in requests]


def _speed(backend: Backend, image: Media, repeats: int) -> dict[str, Any]:
    """Return the speed of reading a prompt with ``repeats`` passages and of generating, over a few answers."""
    text = PASSAGE * repeats + QUESTION
    answers = answer_all(backend, [make_request(f"{number}", (image,), text) for number in range(1 + _ANSWERS)])[1:]
    prompt_tokens = sum(answer.prompt_tokens or 0 for answer in answers)
    tokens = sum(max(0, (answer.completion_tokens or 0) - 1) for answer in answers)
    reading, decoding = (
        sum(answer.prefill_s or 0 for answer in answers),
        sum(answer.decode_s or 0 for answer in answers),
    )
    return {
        "prompt_tokens": answers[0].prompt_tokens,
        "prefill": prompt_tokens / reading if reading else None,
        "decode": tokens / decoding if decoding else None,
        "peak_memory": max(answer.peak_memory or 0 for answer in answers),
    }


def _preparation(backend: Backend, pictures: Pictures, side: int) -> dict[str, Any]:
    """Return the seconds to open and process a square image of random pixels."""
    import numpy as np
    from PIL import Image

    seconds = []
    for seed in range(3):
        pixels = np.random.default_rng(seed).integers(0, 256, (side // 16, side // 16, 3), dtype=np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).resize((side, side)).save(stream, "PNG")
        request = make_request("image", (pictures.add(stream.getvalue()),), QUESTION)
        started = perf_counter()
        backend.probe(request, ())
        seconds.append(perf_counter() - started)
    return {"pixels": side * side, "seconds": median(seconds)}


def main() -> None:
    """Print the measurements; the argument is a folder for pictures."""
    with redirect_stdout(sys.stderr):
        results: Mapping[str, Any] = measure(Path(sys.argv[1]))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
