"""What answering together, with common beginnings read once, gains over the loop that a user of mlx-vlm would write.

Run it by hand: ``python -m tests.performance.batching [EXAMPLES] [WIDTH]``. It builds a random Qwen3-VL of some seven million
parameters, which keeps a CPU busy computing, and asks it the first EXAMPLES of CMC-Bench and of CLASH, four ways, with 300
tokens an image and 32 tokens an answer. It prints ratios of times measured in the same run, and beside them what perfect sharing
would give: the images, the distinct tokens and the decoding steps there are, at what one of each was measured to cost. It asserts
nothing, and the ratios are this machine's: a CPU gains little by computing rows together, Metal more.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from app.engine.order import adjacent
from app.store.rows import Pending
from benchmarks.base import Decoding, Instance, Media, Request
from mlx_backends import tiny
from mlx_backends.inputs import distinct
from mlx_backends.registry import load_backend
from mlx_backends.vlm import AHEAD, VLM
from tests.mlx_backends.architectures import TEXTS
from tests.mlx_backends.benchmark_requests import Asked, answers

IMAGE_PIXELS = 640 * 480
ANSWER = Decoding(max_tokens=32)

T = TypeVar("T")


def build(folder: Path) -> Path:
    """A random Qwen3-VL: 256 wide, six layers, no token that ends an answer."""
    tiny.build_tiny_vlm(folder, TEXTS, quantise=False)
    config = json.loads((folder / "config.json").read_text())
    config["eos_token_id"] = [10**6]
    config["text_config"] |= {
        "num_hidden_layers": 6,
        "hidden_size": 256,
        "intermediate_size": 896,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "rope_scaling": {"rope_type": "default", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
        "dtype": "float32",
    }
    config["vision_config"] |= {"out_hidden_size": 256, "hidden_size": 192, "intermediate_size": 384, "depth": 3}
    tiny._json(folder / "config.json", config)
    tiny._weights(folder, config, seed=0)
    path = folder / "preprocessor_config.json"
    tiny._json(
        path,
        {**json.loads(path.read_text()), "size": {"shortest_edge": IMAGE_PIXELS, "longest_edge": 2 * IMAGE_PIXELS}},
    )
    return folder


@dataclass(frozen=True)
class Costs:
    """Seconds: of an image in the tower, of a prompt's token, of a decoding step of all rows together."""

    image: float
    token: float
    step: float


def costs(backend: VLM, request: Request, width: int) -> Costs:
    """Measured on one request, each the best of some."""
    import mlx.core as mx
    from mlx_vlm.models.cache import make_prompt_cache

    model, tensors = backend._model, backend._preparer.inputs(request).tensors
    ids, pixels, grid = tensors["input_ids"], tensors["pixel_values"], tensors["image_grid_thw"]
    image = _best(lambda: mx.eval(model.vision_tower(pixels, grid)), 3)
    found = model.get_input_embeddings(ids, pixels, image_grid_thw=grid, mask=tensors["attention_mask"]).to_dict()
    given = {name: value for name, value in found.items() if value is not None}

    def read() -> list[Any]:
        cache: list[Any] = make_prompt_cache(model.language_model)
        model.language_model(ids, cache=cache, **given)
        mx.eval([entry.state for entry in cache])
        return cache

    token = _best(read, 3) / ids.shape[1]
    rows = [type(layer[0]).merge(list(layer)) for layer in zip(*(read() for _ in range(width)), strict=True)]
    deltas, tokens = mx.concatenate([given["rope_deltas"]] * width), mx.zeros((width, 1), dtype=mx.int32)
    step = _best(
        lambda: mx.eval(model.language_model(tokens, cache=rows, rope_deltas=deltas).logits[:, -1].argmax(-1)), 8
    )
    return Costs(image, token, step)


def plain(backend: VLM, requests: Sequence[Request], media: Callable[[Media], Path]) -> float:
    """Seconds of ``mlx_vlm.generate`` on one request after the other."""
    from mlx_vlm import generate
    from PIL import Image

    def loop() -> None:
        for request in requests:
            one(request)

    def one(request: Request) -> None:
        prompt = backend._preparer._prompter.prompt(request.messages)
        images = [Image.open(media(image)).convert("RGB") for image in prompt.images]
        shown = images or None
        said: Any = generate(backend._model, backend._processor, prompt.text, shown, max_tokens=32, temperature=0.0)
        assert said.generation_tokens == ANSWER.max_tokens

    return _timed(loop)[1]


def compare(name: str, backend: VLM, asked: Sequence[Request], media: Callable[[Media], Path], width: int) -> None:
    """Print the ratios for ``asked``."""
    pending = [(Pending(n, Instance(one.id, "", "", "", ()), ()), one) for n, one in enumerate(asked)]
    requests = [replace(one, decoding=ANSWER) for _, one in adjacent(pending)]
    inputs = [backend._preparer.inputs(request) for request in requests]
    with_image = next(one.request for one in inputs if len(one.images) == 1)
    backend.exact()
    answers(backend, requests[:2])
    before = plain(backend, requests, media)
    cost = costs(backend, with_image, width)
    (proof, canary), (found, took) = (
        _timed(lambda: backend.prove(requests[:32])),
        _timed(lambda: answers(backend, requests)),
    )
    assert proof is not None
    assert all(len(one.tokens) == ANSWER.max_tokens for one in found.values())
    images = len({image for one in inputs for image in one.images})
    tokens = distinct([one.content for one in inputs])
    steps = -(-len(requests) // width) * ANSWER.max_tokens
    bound = images * cost.image + tokens * cost.token + steps * cost.step
    read = sum(len(one.content) for one in inputs)
    print(f"{name}: {len(requests)} answers, {images} images, {read} prompt tokens, {tokens} of them distinct")
    print(
        f"    answered {proof.way}, up to {width} at once; {backend.prefilled / tokens:.3f} of the distinct tokens read"
    )
    milliseconds = f"{cost.image * 1000:.1f}, {cost.token * 1000:.3f} and {cost.step * 1000:.1f} ms"
    print(f"    an image, a prompt's token, and a step of {width} rows take {milliseconds}")
    print(f"    {before / took:.2f} times as fast as the plain loop")
    print(f"    perfect sharing would be {before / bound:.2f} times as fast; reached is {bound / took:.0%} of that")
    print(
        f"    the canary, once a run, takes as long as {canary / before * len(requests):.1f} answers of the plain loop"
    )


def main() -> None:
    """Print the ratios."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    import mlx.core as mx

    with tempfile.TemporaryDirectory() as scratch:
        asked = Asked(Path(scratch))
        sets = {"CMC-Bench": asked.cmc_bench(examples), "CLASH four ways": asked.clash(examples)}
        backend = load_backend(str(build(Path(scratch) / "model")), asked.path, under_way=AHEAD * width)
        assert isinstance(backend, VLM)
        backend._model.set_dtype(mx.float32)  # a CPU computes bf16 many times as slowly
        ends = backend._tokenizer.stopping_criteria.eos_token_ids
        backend._model.language_model.lm_head.weight[[end for end in ends if end < 10**6]] = 0  # never the highest
        for name, requests in sets.items():
            compare(name, backend, requests, asked.path, width)
        backend.close()


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """What ``work`` returns, and its seconds: of the processor's time, since other work here must not count."""
    began = time.process_time()
    return work(), time.process_time() - began


def _best(work: Callable[[], Any], times: int) -> float:
    return min(_timed(work)[1] for _ in range(times))


if __name__ == "__main__":
    main()
