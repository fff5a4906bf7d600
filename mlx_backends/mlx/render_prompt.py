"""``python -m mlx_backends.mlx.render_prompt MODEL``: messages rendered by a model's chat template, without its weights.

Runs as a process of its own, because it imports MLX and the libraries around it. It reads lines of JSON (the messages, each
``[role, [parts]]``) and answers each with a line of JSON, ``{"text": ...}`` or ``{"error": ...}``, until the end of the
input. A first line tells that it is ready.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO

from benchmarks.errors import ModelError, RashomonError
from benchmarks.vocabulary import Message, part_from_json
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.core.prompts.chat_prompt import Prompter
from mlx_backends.core.prompts.text_prompt import TextPrompter
from mlx_backends.mlx.mlx_load import load_processor
from mlx_backends.models.model_discovery import inspect, resolve
from mlx_backends.models.tokenizer_limits import check_tokenizer


def load_prompter(path: Path) -> Prompter:
    """Return the prompter of the model in folder ``path``, with its tokenizer and processor but without its weights.

    Raises ModelError where they cannot be loaded.
    """
    if inspect(path).engine == "mlx-vlm":
        return Prompter(*load_processor(path))
    check_tokenizer(path)
    try:
        with contained():
            from mlx_lm.utils import load_tokenizer
            from transformers.utils import logging

            logging.set_verbosity_error()
            return TextPrompter(load_tokenizer(path, tokenizer_config_extra={"trust_remote_code": False}))
    except Exception as error:  # a malformed folder can make these libraries raise anything
        raise ModelError(f"its tokenizer cannot be loaded: {one_line(error)}") from error


def serve(model: str, lines: IO[str], out: IO[str]) -> None:
    """Answer ``lines`` on ``out``, in the format of the module's docstring."""
    try:
        prompter, problem = load_prompter(resolve(model)), ""
    except RashomonError as error:
        prompter, problem = None, str(error)
    print(json.dumps({"error": problem} if problem else {}), file=out, flush=True)
    for line in lines:
        try:
            messages = [Message(role, tuple(map(part_from_json, parts))) for role, parts in json.loads(line)]
            reply = {"error": problem} if prompter is None else {"text": prompter.prompt(messages).text}
        except RashomonError as error:
            reply = {"error": str(error)}
        except Exception as error:  # an unusual template or tokenizer can raise anything
            reply = {"error": one_line(error)}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    own = sys.stdout
    sys.stdout = sys.stderr  # keeps what libraries print out of the answers
    serve(sys.argv[1], sys.stdin, own)
