"""``python -m mlx_backends.mlx.training.row_sizes``: the sizes of rows, by a model's own processor, without its weights.

Tokens of an image depend on the processor: some scale it, some cut it into tiles. It runs as a process of its own, because it
imports MLX and the libraries around it. It reads a line of JSON and writes one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.training.training_set import ChatRow
from benchmarks.vocabulary import Media, Message, Text
from mlx_backends.models.training_memory import RowTokens

_SECONDS = 600.0


def row_sizes(model: Path, rows: Sequence[ChatRow], *, max_pixels: int | None, pairs: bool) -> list[RowTokens]:
    """Return the sizes of ``rows`` for the model in a folder; with ``pairs``, with the longer one of a row's two answers.

    A row that the model cannot read has none. Raises ModelError if it can read none of them, or its processor does not load.
    """
    request = {
        "model": str(model),
        "rows": [_row_to_json(row) for row in rows],
        "max_pixels": max_pixels,
        "pairs": pairs,
    }
    reply = _answer_apart(request)
    if not reply["sizes"]:
        raise ModelError(reply["problem"])
    return [RowTokens(*size) for size in reply["sizes"]]


def _answer_apart(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`_answer` does in a process of its own. Raises ModelError if that process fails."""
    try:
        process = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )
        reply: dict[str, Any] = json.loads(process.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        name = Path(request["model"]).name
        raise ModelError(
            f"the process that reads rows with the processor of {name} did not finish; choose another model."
        ) from error
    return reply


def _row_to_json(row: ChatRow) -> dict[str, Any]:
    messages = [
        [message.role, [part.text if isinstance(part, Text) else None for part in message.parts]]
        for message in row.messages
    ]
    images = [str(image) for image in row.images]
    return {
        "where": row.where, "messages": messages, "target": row.target, "rejected": row.rejected, "images": images,
    }  # fmt: skip


def _row_from_json(values: Mapping[str, Any]) -> ChatRow:
    image = Media("0" * 64, ".png")
    messages = tuple(
        Message(role, tuple(image if part is None else Text(part) for part in parts))
        for role, parts in values["messages"]
    )
    images = tuple(map(Path, values["images"]))
    return ChatRow(values["where"], messages, values["target"], images, rejected=values["rejected"])


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    from benchmarks.media.media_decoder import start_decoder
    from mlx_backends.mlx.mlx_load import check_supported, load_processor
    from mlx_backends.mlx.training.training_inputs import TrainingInputs

    start_decoder()
    path = Path(request["model"])
    problems: list[str] = []

    def sizes() -> Iterator[tuple[int, int, int]]:
        check_supported(path)
        processor, config = load_processor(path)
        rows = list(map(_row_from_json, request["rows"]))
        inputs = TrainingInputs(rows, processor, config, max_length=sys.maxsize, max_pixels=request["max_pixels"])
        for place in range(len(rows)):
            try:
                size = inputs.measure(place, pair=request["pairs"])
                yield size.total, size.image, size.answer
            except ModelError as error:
                problems.append(str(error))

    try:
        measured = list(sizes())
    except ModelError as error:
        return {"sizes": [], "problem": str(error)}
    return {"sizes": measured, "problem": next(iter(problems), "")}


if __name__ == "__main__":
    own = sys.stdout
    sys.stdout = sys.stderr  # keeps what libraries print out of the answer
    print(json.dumps(_answer(json.load(sys.stdin))), file=own)
