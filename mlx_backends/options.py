"""Options for loading a model, on this machine or behind an API."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Options of remote engines.

    ``replies`` is the file in which responses are cached by content; with None nothing is cached. ``scope`` limits the cached
    responses of a user's own server, such as to one run: a model's name does not identify what is behind an address; with
    ``always_scoped``, also those of a provider.
    ``max_tokens`` is the ceiling on prompt and completion tokens together, ``max_cost`` the one on money, in the currency of
    ``input_price`` and ``output_price``, which are per million tokens; ``spent_input`` and ``spent_output`` are the tokens used
    before. ``concurrency`` is the most calls at a time, ``timeout`` the seconds a call may take, ``attempts`` how often a failing
    call is made.
    """

    replies: Path | None = None
    scope: str = ""
    always_scoped: bool = False
    max_tokens: int | None = None
    max_cost: float | None = None
    input_price: float | None = None
    output_price: float | None = None
    spent_input: int = 0
    spent_output: int = 0
    concurrency: int = 8
    timeout: float = 120.0
    attempts: int = 6


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of :meth:`mlx_backends.base.Engine.load`.

    ``force`` loads a model that does not fit in memory. ``max_in_flight`` limits the requests that a model of this machine
    takes at a time; None leaves it to the engine. ``remote`` is for remote engines. ``kv_bits`` quantises the key-value cache of
    a model that MLX runs to that many bits; None leaves it in the activations' type.
    """

    force: bool = False
    max_in_flight: int | None = None
    remote: RemoteOptions = field(default_factory=RemoteOptions)
    kv_bits: int | None = None
