"""Whether PyTorch and MLX give the same tokens: greedy, fp32, on instances of all held-out sets.

``mlx`` answers with the exported fp32 folder through mlx-vlm and writes prompts, pictures and tokens; ``torch`` answers the
same with the training's own model and compares. They need not run in one environment.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

LONGEST = 16


def with_mlx(folder: Path, count: int, kept: Path) -> list[dict[str, Any]]:
    """``count`` instances with their answers' tokens by MLX, the end included; their pictures lie in ``kept``."""
    from assets.demo.recipe.chat import chat
    from assets.demo.recipe.evaluate import BENCHMARKS, answer, build
    from benchmarks.registry import get_benchmark
    from benchmarks.vocabulary import Media
    from mlx_backends.registry import load_backend

    found = []
    for number, name in enumerate(BENCHMARKS):
        built = build(name, kept / name)
        backend = load_backend(str(folder), built.media_path)
        share = count // len(BENCHMARKS) + (number < count % len(BENCHMARKS))
        instances = list(get_benchmark(name).instances(built, BENCHMARKS[name]))
        for each in range(share):
            instance = instances[each * len(instances) // share]
            pictures = [str(built.media_path(part)) for part in instance.parts if isinstance(part, Media)]
            said = list(answer(backend, instance).tokens)
            found.append({"prompt": chat(instance.parts), "pictures": pictures, "tokens": said})
        backend.close()
    return found


def with_torch(checkpoint: Path, asked: list[dict[str, Any]]) -> list[list[int]]:
    """The tokens of each answer by PyTorch, the end included."""
    import numpy as np
    import torch
    from PIL import Image

    from assets.demo.recipe.data import Encoder, pictures
    from assets.demo.recipe.model import trained

    class Opened:
        def __init__(self, path: str) -> None:
            self.image = Image.open(path)

    torch.set_num_threads(1)  # one short row at a time is no work for two
    encoder = Encoder()
    model = trained(checkpoint)
    found = []
    for each in asked:
        ids = encoder.spread(encoder.tokenizer.encode(each["prompt"]).ids, len(each["pictures"]))
        start = len(ids)
        with torch.no_grad():
            shown = pictures([Opened(path) for path in each["pictures"]]) if each["pictures"] else None
            seen = None if shown is None else model.model.visual(shown)
            while len(ids) < start + LONGEST and encoder.end not in ids[start:]:
                whole = torch.tensor([ids])
                positions = torch.from_numpy(encoder.positions(ids)[:, None].astype(np.int64))
                slots = (whole[0] == encoder.image).nonzero()[:, 0]
                hidden = model.trunk(whole, positions, seen, slots)
                ids.append(int(model.lm_head(hidden[0, -1]).argmax()))
        found.append(ids[start:])
    return found


def main() -> None:
    """Answer with MLX into a file, or with PyTorch and compare with that file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("library", choices=("mlx", "torch"))
    parser.add_argument("model", type=Path, help="the float32 folder, or the checkpoint")
    parser.add_argument("folder", type=Path, help="the folder that mlx writes and torch reads")
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    file: Path = given.folder / "said.json"
    if given.library == "mlx":
        file.write_text(json.dumps(with_mlx(given.model, given.count, given.folder)), "utf-8")
        return
    theirs = json.loads(file.read_text("utf-8"))
    ours = with_torch(given.model, theirs)
    same = sum(a == b["tokens"] for a, b in zip(ours, theirs, strict=True))
    print(f"{same} of {len(theirs)} answers are the same tokens")


if __name__ == "__main__":
    main()
