"""Speculative decoding of a text-only model with a small draft model, compared with mlx-lm's plain loop and with batches.

Run it by hand: ``python -m tests.performance.speculative [TOKENS] [ROUNDS]``. The target is a random Qwen3 of six million
parameters in fp32, and the draft is its first layer of six, with its embedding and output layer. The other layers are scaled
down, so that the draft agrees with the target often, and always where they add nothing. Answers have TOKENS tokens and are
greedy. It prints how often the target accepts a drafted token, whether all tokens are the same, and the speed as a multiple of
the plain loop's: with 1 to 8 drafted tokens at a time, and of the target alone in a batch of 8, which needs no draft. The times
are processor time, so that other work on the machine does not count. It asserts nothing; what a GPU gains by checking several
tokens at once, only a GPU shows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeVar

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.generate import speculative_generate_step
from mlx_lm.models import qwen3
from mlx_lm.sample_utils import greedy_sampler

from mlx_backends.mlx.lm_batch import TextRow, make_rows

LAYERS, DRAFT_LAYERS = 6, 1
PROMPT_TOKENS = 32
WIDTH = 8
SCALES = (0.0, 0.03, 0.1)
DRAFTED = (1, 2, 4, 8)
T = TypeVar("T")
_CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "rms_norm_eps": 1e-6,
    "vocab_size": 2048,
    "rope_theta": 1e6,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


def models(scale: float) -> tuple[Any, Any]:
    """Return the target and its draft; ``scale`` is that of what the layers beyond the draft's add."""
    target = qwen3.Model(qwen3.ModelArgs.from_dict({**_CONFIG, "num_hidden_layers": LAYERS}))
    draft = qwen3.Model(qwen3.ModelArgs.from_dict({**_CONFIG, "num_hidden_layers": DRAFT_LAYERS}))
    random = np.random.default_rng(0)
    weights = {}
    for name, value in tree_flatten(target.parameters()):
        values = random.standard_normal(value.shape) * (1.0 if value.ndim < 2 else value.shape[-1] ** -0.5)
        values = 1 + 0.1 * values if value.ndim < 2 else values
        layer = int(name.split(".")[2]) if name.startswith("model.layers.") else 0
        if layer >= DRAFT_LAYERS and name.endswith(("o_proj.weight", "down_proj.weight")):
            values = scale * values
        weights[name] = mx.array(values.astype(np.float32))
    target.update(tree_unflatten(list(weights.items())))
    names = [name for name, _ in tree_flatten(draft.parameters())]
    draft.update(tree_unflatten([(name, weights[name]) for name in names]))
    mx.eval(target.parameters(), draft.parameters())
    return target, draft


def prompts(count: int) -> list[list[int]]:
    """Return random prompts."""
    random = np.random.default_rng(1)
    return [random.integers(0, _CONFIG["vocab_size"], PROMPT_TOKENS).tolist() for _ in range(count)]


def in_rows(target: Any, prompts: Sequence[list[int]], tokens: int, width: int) -> list[list[int]]:
    """Return the greedy answers to ``prompts`` of up to ``width`` at a time, as Rashomon computes them."""
    rows = make_rows(target, (), width)
    started = [TextRow(prompt, tokens, greedy_sampler, ()) for prompt in prompts]
    waiting = list(started)
    while any(row.finished is None for row in started):
        active = sum(row.finished is None for row in started) - len(waiting)
        while waiting and active < rows.width:
            rows.add(waiting.pop(0))
            active += 1
        rows.work()
    rows.close()
    return [row.tokens for row in started]


def speculated(
    target: Any, draft: Any, prompts: Sequence[list[int]], tokens: int, drafted: int
) -> tuple[list[list[int]], float]:
    """Return the greedy answers with a draft, and the share of the checked tokens of the draft that the target accepted."""
    answers, accepted, rejected = [], 0, 0
    for prompt in prompts:
        answer, since = [], 0
        for token, _, from_draft in speculative_generate_step(
            mx.array(prompt), target, draft, num_draft_tokens=drafted, max_tokens=tokens
        ):
            answer.append(int(token))
            accepted += from_draft
            rejected += not from_draft and since < drafted and len(answer) < tokens
            since = since + 1 if from_draft else 0
        answers.append(answer)
    return answers, accepted / max(1, accepted + rejected)


def seconds(work: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    """Return the result of ``work`` and its seconds of processor time."""
    began = time.process_time()
    return work(*arguments), time.process_time() - began


def main() -> None:
    """Print the ratios."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    asked = prompts(WIDTH)
    for scale in SCALES:
        target, draft = models(scale)
        in_rows(target, asked[:1], 4, 1)
        print(f"layers {DRAFT_LAYERS + 1} to {LAYERS} scaled by {scale}", flush=True)
        alone: list[float] = []
        batch: list[float] = []
        speculative: dict[int, list[float]] = {drafted: [] for drafted in DRAFTED}
        notes: dict[int, str] = {}
        for _ in range(rounds):
            reference, took = seconds(in_rows, target, asked[:2], tokens, 1)
            alone.append(took / 2)
            answers, took = seconds(in_rows, target, asked, tokens, WIDTH)
            batch.append(alone[-1] / (took / WIDTH))
            notes[0] = f"{_same(answers, reference)} of {len(reference)} answers the same"
            for drafted in DRAFTED:
                (answers, accepted), took = seconds(speculated, target, draft, asked[:2], tokens, drafted)
                speculative[drafted].append(alone[-1] / (took / 2))
                same = f"{_same(answers, reference)} of {len(reference)} answers the same"
                notes[drafted] = f"{accepted:.2f} accepted, {same}"
        print(f"    plain loop: {median(alone) / tokens * 1000:.1f} ms a token")
        print(f"    batch of {WIDTH}: {_range(batch)} times as fast, {notes[0]}")
        for drafted in DRAFTED:
            print(f"    {drafted} drafted: {_range(speculative[drafted])} times as fast, {notes[drafted]}", flush=True)


def _same(answers: Sequence[list[int]], reference: Sequence[list[int]]) -> int:
    return sum(answer == expected for answer, expected in zip(answers, reference, strict=False))


def _range(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
