"""The plain loop around mlx-vlm's generation that users write instead of Rashomon. Started by ``whole_process.py``."""

import json
import sys
from pathlib import Path

from mlx_vlm import load, stream_generate
from PIL import Image


def main(folder: str, prompts: str) -> None:
    """Answer the prompts of a JSON file (text, paths of images, most tokens) and print the tokens of the answers as JSON."""
    model, processor = load(folder)
    answers = []
    for prompt in json.loads(Path(prompts).read_text()):
        images = [Image.open(path).convert("RGB") for path in prompt["images"]]
        stream = stream_generate(
            model, processor, prompt["text"], images or None, max_tokens=prompt["max_tokens"], temperature=0.0
        )
        answers.append([int(response.token) for response in stream if response.finish_reason is None])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
