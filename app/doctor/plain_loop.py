"""The plain loop around mlx-vlm's or mlx-lm's own generation that users write instead of Rashomon, as a process of its own.

It imports nothing of Rashomon, whose patches would change the library.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any


def main(folder: str, prompts: str, library: str = "mlx-vlm") -> None:
    """Answer the prompts of a JSON file (text, paths of images, most tokens) with the model in ``folder``.

    Prints JSON: the ``tokens`` of each answer, its ``seconds`` from opening the images to its last token, and MLX's
    ``peak_memory`` in bytes. For mlx-lm, a text is the user's message; for mlx-vlm, it has passed the chat template.
    """
    answer = _text_answers(folder) if library == "mlx-lm" else _answers(folder)
    tokens, seconds = [], []
    for prompt in json.loads(Path(prompts).read_text()):
        started = perf_counter()
        tokens.append(list(answer(prompt)))
        seconds.append(perf_counter() - started)
    import mlx.core as mx

    json.dump({"tokens": tokens, "seconds": seconds, "peak_memory": int(mx.get_peak_memory())}, sys.stdout)


def _answers(folder: str) -> Any:
    from mlx_vlm import load, stream_generate
    from PIL import Image

    model, processor = load(folder, trust_remote_code=False)

    def answer(prompt: dict[str, Any]) -> Iterator[int]:
        images = [Image.open(path).convert("RGB") for path in prompt["images"]]
        stream = stream_generate(
            model, processor, prompt["text"], images or None, max_tokens=prompt["max_tokens"], temperature=0.0
        )
        # The last response repeats the last token, unless that ended the answer.
        return (int(response.token) for response in stream if response.finish_reason != "length")

    return answer


def _text_answers(folder: str) -> Any:
    from mlx_lm import load, stream_generate

    model, tokenizer = load(folder)

    def answer(prompt: dict[str, Any]) -> Iterator[int]:
        text = prompt["text"]
        if tokenizer.has_chat_template:
            messages = [{"role": "user", "content": text}]
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=False)
        return (int(response.token) for response in stream_generate(model, tokenizer, text, prompt["max_tokens"]))

    return answer


if __name__ == "__main__":
    main(*sys.argv[1:])
