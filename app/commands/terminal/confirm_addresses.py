"""Confirmation of the addresses to which a command would send questions, images and API keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from app.text.text_escaping import clean
from mlx_backends.remote import allowed_addresses as addresses
from mlx_backends.remote import is_remote

_WARNING = (
    "has not been used on this machine. It would receive the questions and images, and your API key if one is set "
    "(RASHOMON_ENDPOINT_KEY, or the vendor's key if the vendor's base URL is this address). Allow only servers you trust: a "
    "spec or run from somebody else can name any address."
)
_PROXY_WARNING = " A proxy can read all of it, unless the address begins with https."


def address_warning(routes: Sequence[str]) -> str:
    """Return what it means to allow new addresses, with the proxies that lead to them."""
    text = ", ".join(map(addresses.route_text, routes))
    return f"{text} {_WARNING}{'' if text == ', '.join(routes) else _PROXY_WARNING}"


def confirm_addresses(models: Iterable[str], allowed: Sequence[str]) -> None:
    """Remember the addresses in ``allowed``, and ask on a terminal about other new addresses of ``models``.

    An address that is not confirmed is refused when it would be used. Raises SpecError for text that is no address.
    """
    models = [model for model in models if is_remote(model)]
    if not models and not allowed:
        return
    addresses.allow([addresses.parse_address(text) for text in allowed])
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    import click

    for route in addresses.new_addresses(models):
        print(clean(address_warning([route])), file=sys.stderr)
        if click.confirm(f"Allow {clean(addresses.route_text(route))}?", default=False, err=True):
            addresses.allow([route])
