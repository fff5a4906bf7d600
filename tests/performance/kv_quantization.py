"""Memory, time and changed answers of a quantised key-value cache.

Run it by hand: ``python -m tests.performance.kv_quantization [EXAMPLES]``. For no quantisation, 8 bits and 4 bits, it prints:

- of a random Qwen3-VL of seven million parameters that computes in bf16 and fp32: the bytes of a cache per token, the peak
  memory of reading 2,048 tokens next to the weights, and the processor time of a decoding step after them;
- of the demo's model on EXAMPLES of CMC-Bench: how the requests were answered, and how many answers differ from those without
  quantisation.

It asserts nothing. A model of the demo's size says little about how many answers of a large one change.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx

from benchmarks.vocabulary import Decoding
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.kv_quantization import PREFILL_TOKENS, make_vlm_cache
from mlx_backends.mlx.mlx_load import load
from tests.performance.compute_bound import build
from tests.support.benchmark_requests import RequestFactory, answers
from tests.support.command import ROOT
from tests.support.tiny_models import TEXTS

BITS = (None, 8, 4)
CONTEXT, STEPS = 2048, 9
ANSWER = Decoding(max_tokens=32)
DEMO = ROOT / "assets" / "demo" / "model-bf16"
HELD_OUT = ROOT / "assets" / "demo" / "held_out" / "cmc-bench"


def measure(model: Any, bits: int | None) -> tuple[float, float, float]:
    """Return the bytes of a token in the caches, the peak bytes of reading a prompt, and the seconds of a step after it."""
    cache = make_vlm_cache(model.language_model, bits)
    ids = mx.arange(CONTEXT)[None] % 100 + 5
    inputs = model.get_input_embeddings(ids, None).to_dict()
    embeddings = inputs["inputs_embeds"]
    mx.eval(embeddings)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    for start in range(0, CONTEXT, PREFILL_TOKENS):
        piece = slice(start, start + PREFILL_TOKENS)
        model.language_model(
            ids[:, piece],
            inputs_embeds=embeddings[:, piece],
            cache=cache,
            n_to_process=PREFILL_TOKENS,
            logits_to_keep=1,
        )
        mx.eval([entry.state for entry in cache])
    peak = mx.get_peak_memory() - before
    steps = []
    for _ in range(STEPS):
        began = time.process_time()
        mx.eval(model.language_model(mx.array([[7]]), cache=cache).logits)
        steps.append(time.process_time() - began)
    return sum(entry.nbytes for entry in cache) / CONTEXT, peak, median(steps)


def memory_and_time(folder: Path, dtype: Any) -> None:
    """Print the memory and time of the random model in ``dtype``."""
    model, _ = load(folder)
    model.set_dtype(dtype)
    for bits in BITS:
        measure(model, bits)
        size, peak, step = measure(model, bits)
        print(
            f"{dtype}, {bits or 'no'} bits: {size:.0f} bytes a token, peak {peak / 2**20:.1f} MiB, "
            f"{step * 1000:.1f} ms a step",
            flush=True,
        )


def changed_answers(scratch: Path, examples: int) -> None:
    """Print how many answers of the demo's model change."""
    factory = RequestFactory(scratch)
    requests = [replace(item, decoding=ANSWER) for item in factory.cmc_bench(examples, HELD_OUT)]
    reference: dict[str, Any] = {}
    for bits in BITS:
        backend = load_backend(str(DEMO), factory.path, kv_bits=bits)
        invariance = backend.choose_mode(requests)
        assert invariance is not None
        given = answers(backend, requests)
        reference = reference or given
        changed = sum(given[key].text != reference[key].text for key in given)
        print(f"{bits or 'no'} bits, {invariance.way}: {changed} of {len(given)} answers changed", flush=True)
        backend.close()


def main() -> None:
    """Print the measurements."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    with tempfile.TemporaryDirectory() as scratch:
        changed_answers(Path(scratch), examples)
        model = build(Path(scratch) / "model", TEXTS)
        for dtype in (mx.float32, mx.bfloat16):
            memory_and_time(model, dtype)


if __name__ == "__main__":
    main()
