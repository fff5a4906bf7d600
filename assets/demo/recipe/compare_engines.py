"""Comparison of PyTorch's and MLX's tokens: greedy, fp32, on instances of all held-out sets.

``mlx`` answers with the exported fp32 folder through mlx-vlm and writes prompts, pictures and tokens; ``torch`` answers the
same with the training's own model and compares. They need not run in one environment.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

LONGEST = 16


def with_mlx(folder: Path, count: int, work: Path) -> list[dict[str, Any]]:
    """Return ``count`` instances with MLX's answer tokens, the end included; their pictures are in ``work``."""
    from assets.demo.recipe.chat import chat
    from assets.demo.recipe.evaluate_demo_model import BENCHMARKS, answer, build
    from benchmarks.registry import get_benchmark
    from benchmarks.vocabulary import Media
    from mlx_backends.engine_registry import load_backend

    answers = []
    for number, name in enumerate(BENCHMARKS):
        built = build(name, work / name)
        backend = load_backend(str(folder), built.media_path)
        share = count // len(BENCHMARKS) + (number < count % len(BENCHMARKS))
        instances = list(get_benchmark(name).instances(built, BENCHMARKS[name]))
        for position in range(share):
            instance = instances[position * len(instances) // share]
            pictures = [str(built.media_path(part)) for part in instance.parts if isinstance(part, Media)]
            tokens = list(answer(backend, instance).tokens)
            answers.append({"prompt": chat(instance.parts), "pictures": pictures, "tokens": tokens})
        backend.close()
    return answers


def with_torch(checkpoint: Path, cases: list[dict[str, Any]]) -> list[list[int]]:
    """Return PyTorch's tokens of each answer, the end included."""
    import numpy as np
    import torch
    from PIL import Image

    from assets.demo.recipe.demo_model import trained
    from assets.demo.recipe.demo_training_data import Encoder, pictures

    class Opened:
        def __init__(self, path: str) -> None:
            self.image = Image.open(path)

    torch.set_num_threads(1)  # one short row at a time is no work for two
    encoder = Encoder()
    model = trained(checkpoint)
    answers = []
    for case in cases:
        ids = encoder.spread(encoder.tokenizer.encode(case["prompt"]).ids, len(case["pictures"]))
        start = len(ids)
        with torch.no_grad():
            drawn = pictures([Opened(path) for path in case["pictures"]]) if case["pictures"] else None
            features = None if drawn is None else model.model.visual(drawn)
            while len(ids) < start + LONGEST and encoder.end not in ids[start:]:
                tokens = torch.tensor([ids])
                positions = torch.from_numpy(encoder.positions(ids)[:, None].astype(np.int64))
                slots = (tokens[0] == encoder.image).nonzero()[:, 0]
                hidden = model.trunk(tokens, positions, features, slots)
                ids.append(int(model.lm_head(hidden[0, -1]).argmax()))
        answers.append(ids[start:])
    return answers


def main() -> None:
    """Answer with MLX into a file, or with PyTorch and compare with that file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("library", choices=("mlx", "torch"))
    parser.add_argument("model", type=Path, help="the float32 folder, or the checkpoint")
    parser.add_argument("folder", type=Path, help="the folder that mlx writes and torch reads")
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    file: Path = arguments.folder / "answers.json"
    if arguments.library == "mlx":
        file.write_text(json.dumps(with_mlx(arguments.model, arguments.count, arguments.folder)), "utf-8")
        return
    mlx_answers = json.loads(file.read_text("utf-8"))
    torch_answers = with_torch(arguments.model, mlx_answers)
    matches = sum(a == b["tokens"] for a, b in zip(torch_answers, mlx_answers, strict=True))
    print(f"{matches} of {len(mlx_answers)} answers are the same tokens")


if __name__ == "__main__":
    main()
