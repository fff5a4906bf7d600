"""``python -m mlx_backends.core.render_prompt MODEL``: how a model's chat template puts messages, without its weights.

For a process of its own, as it imports MLX and the libraries around it: a line of JSON in (the messages, each
``[role, [parts]]``), a line of JSON out, ``{"text": ...}`` or ``{"error": ...}``, until the end of the input. The first line
out comes when it is ready.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from benchmarks.base import Message, part_from_json
from benchmarks.errors import ModelError, RashomonError
from mlx_backends.core.chat_prompt import Prompter
from mlx_backends.mlx.load import contained, one_line
from mlx_backends.models.discovery import inspect, read_config, resolve
from mlx_backends.models.tokenizer_limits import check_tokenizer


def prompter(path: Path) -> Prompter:
    """What makes the prompts of the model in folder ``path``: its tokenizer and processor are loaded, its weights are not.

    Raises ModelError where they cannot be loaded.
    """
    sees = inspect(path).engine == "mlx-vlm"
    check_tokenizer(path)
    try:
        with contained():
            from transformers.utils import logging

            logging.set_verbosity_error()
            trust = {"trust_remote_code": False}
            if not sees:
                from mlx_lm.utils import load_tokenizer

                from mlx_backends.mlx.lm import TextPrompter

                return TextPrompter(load_tokenizer(path, tokenizer_config_extra=trust))
            from mlx_vlm.utils import get_model_and_args, load_image_processor, load_processor

            config = read_config(path)
            get_model_and_args(config)  # brings the model's own processors along
            processor = load_processor(path, False, **trust)
            if (images := load_image_processor(path, **trust)) is not None:
                processor.image_processor = images
            return Prompter(processor, SimpleNamespace(**config))
    except RashomonError:
        raise
    except Exception as error:  # whatever a folder's content makes a dozen libraries raise
        raise ModelError(f"its tokenizer cannot be loaded: {one_line(error)}") from error


def serve(model: str, lines: IO[str], out: IO[str]) -> None:
    """Answer ``lines`` on ``out``, as said above."""
    try:
        making, trouble = prompter(resolve(model)), ""
    except RashomonError as error:
        making, trouble = None, str(error)
    print(json.dumps({"error": trouble} if trouble else {}), file=out, flush=True)
    for line in lines:
        try:
            messages = [Message(role, tuple(map(part_from_json, parts))) for role, parts in json.loads(line)]
            told = {"error": trouble} if making is None else {"text": making.prompt(messages).text}
        except RashomonError as error:
            told = {"error": str(error)}
        except Exception as error:  # of a template or tokenizer unlike any other
            told = {"error": one_line(error)}
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    own = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer
    serve(sys.argv[1], sys.stdin, own)
