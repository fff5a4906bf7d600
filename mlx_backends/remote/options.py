"""Terms: on what terms a remote engine may be used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """How remote engines are used.

    ``replies`` is the file in which replies are kept by content, None keeps none. ``scope`` is what the replies of a server
    of one's own are kept for, such as a run: a model's name says nothing about what is behind an address. ``max_tokens`` is
    the ceiling on prompt and completion tokens together, ``max_cost`` the one on money, in the currency of ``input_price``
    and ``output_price``, which are for a million tokens; ``spent_input`` and ``spent_output`` are the tokens used before.
    ``concurrency`` is the most calls under way, ``timeout`` the seconds a call may take, ``attempts`` how often a call that
    fails is made.
    """

    replies: Path | None = None
    scope: str = ""
    max_tokens: int | None = None
    max_cost: float | None = None
    input_price: float | None = None
    output_price: float | None = None
    spent_input: int = 0
    spent_output: int = 0
    concurrency: int = 8
    timeout: float = 120.0
    attempts: int = 6
