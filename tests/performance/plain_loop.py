"""What a user of mlx-vlm writes instead: a loop around ``generate``. ``python -m tests.performance.plain_loop MODEL PROMPTS``."""

import json
import sys
from pathlib import Path

from mlx_vlm import generate, load
from PIL import Image


def main(folder: str, prompts: str) -> None:
    """Answer the prompts of a JSON file (text, paths of images, most tokens) and print the answers as JSON."""
    model, processor = load(folder)
    answers = []
    for prompt in json.loads(Path(prompts).read_text()):
        images = [Image.open(path).convert("RGB") for path in prompt["images"]]
        result = generate(
            model, processor, prompt["text"], images or None, max_tokens=prompt["max_tokens"], temperature=0.0
        )
        answers.append(result.text)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
