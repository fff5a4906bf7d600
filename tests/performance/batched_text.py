"""Speedup of a text-only model by batching, with and without a form.

Run it by hand: ``python -m tests.performance.batched_text [REQUESTS] [MODEL]``, where MODEL is a folder or Hub id and a tiny
random model is built where none is named. It prints, and asserts nothing: the ratios can be compared between machines, the times
cannot. On the CPU a batch gains what it saves in calls; what it gains on Metal only Metal shows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.vocabulary import Choice, Decoding, Form, Media, Message, Request, Text
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from tests.support.tiny_qwen3 import build_tiny_lm

LABELS = Choice(("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"))
QUESTION = "The reference is {}. The answer to be judged is: the value of the bar is {}. Which source does it follow?"


def requests(count: int, form: Form | None) -> list[Request]:
    """Requests of a judge's kind, of different lengths."""
    texts = [" ".join([QUESTION.format(number, number + 1)] * (1 + number % 3)) for number in range(count)]
    decoding = Decoding(max_tokens=32)
    return [Request(f"{n}", 0, (Message("user", (Text(text),)),), decoding, form) for n, text in enumerate(texts)]


def seconds(backend: Backend, requests: Sequence[Request], at_once: int) -> float:
    """Return the seconds to answer all requests with at most ``at_once`` in progress."""
    waiting, under_way = list(requests), 0
    began = time.perf_counter()
    while waiting or under_way:
        while waiting and under_way < at_once:
            backend.submit(waiting.pop(0))
            under_way += 1
        under_way -= len(backend.step())
    return time.perf_counter() - began


def no_media(media: Media) -> Path:
    """Text-only requests name no medium."""
    raise FileNotFoundError(media.name)


def main() -> None:
    """Print the ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    with tempfile.TemporaryDirectory() as scratch:
        named = sys.argv[2] if len(sys.argv) > 2 else None
        model = named or str(build_tiny_lm(Path(scratch) / "tiny", [QUESTION] * 20, quantise=True))
        backend = load_backend(model, no_media)
        for label, form in (("free", None), ("a label", LABELS)):
            prompts = requests(count, form)
            seconds(backend, prompts[:8], backend.capacity)  # what is compiled and cached once
            alone = seconds(backend, prompts, 1)
            print(f"{label}: one by one {alone / count * 1000:.1f} ms an answer")
            for width in (2, 4, backend.capacity):
                print(f"    {width} together: {alone / seconds(backend, prompts, width):.2f} times as fast")
        backend.close()


if __name__ == "__main__":
    main()
