"""Agreeing to the addresses that a command would send questions, pictures and keys to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from app.text.escape import clean
from mlx_backends.remote import is_remote

FACTS = (
    "is new on this machine. Questions and pictures would be sent to it, and the key in RASHOMON_ENDPOINT_KEY, or that of the "
    "vendor whose base URL names it, if there is one. A spec or run that you received names whatever its author liked."
)


def agree(models: Iterable[str], allowed: Sequence[str]) -> None:
    """Remember the addresses in ``allowed``, and on a terminal ask for any other new one of ``models``.

    What is not agreed to is refused where it would be used. Raises SpecError for what is no address.
    """
    models = [model for model in models if is_remote(model)]
    if not models and not allowed:
        return
    from mlx_backends.remote import addresses

    addresses.agree([addresses.typed_address(text) for text in allowed])
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    import click

    for address in addresses.new_addresses(models):
        print(clean(f"{address} {FACTS}"), file=sys.stderr)
        if click.confirm(f"Agree to {clean(address)}?", default=False, err=True):
            addresses.agree([address])
