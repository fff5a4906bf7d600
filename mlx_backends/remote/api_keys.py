"""Keys of remote engines: from the environment, else from the system's keychain; never in anything that is written.

A key belongs to an address (``scheme://host:port``). A variable holds a key, or one for each of several addresses
(``https://host:443=KEY``, with spaces between); an entry of the keychain is one of a vendor's own address, unless it is named
``VARIABLE@https://host:443``.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from contextlib import suppress
from itertools import chain
from urllib.parse import quote, quote_plus

from benchmarks.errors import KeyMissingError
from mlx_backends.remote.model_names import address_of

VARIABLES = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "RASHOMON_ENDPOINT_KEY",
)
SERVICE = "rashomon"
"""What the keychain's entries are kept under; the user name of an entry is the variable's name, with its address."""

_ADDRESSED = ("AZURE_OPENAI_API_KEY", "RASHOMON_ENDPOINT_KEY")
_BOUND = re.compile(r"(https?://[^\s=]+)=(\S+)")

_PIECE = 8
_SECRET = 16
_handed_out: set[str] = set()


def key(*names: str, address: str, own: bool = True) -> str:
    """Return the key for ``address``: the first of ``names`` that the environment has, else the first of the keychain.

    ``own`` says that the address is the vendor's own. Raises KeyMissingError where neither has any, and for one that no HTTP
    header could carry.
    """
    entries = {name: name if own else f"{name}@{address}" for name in names}
    found = chain(
        ((name, _environment(name, address)) for name in names),
        ((name, _keychain(entry)) for name, entry in entries.items()),
    )
    for name, value in found:
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise KeyMissingError(f"{name} holds something that is no key (a space or odd character); set it again.")
        _handed_out.add(value)
        return value
    raise KeyMissingError(
        f"there is no key {' or '.join(names)} for {address}; set it in the environment, or run "
        f'`keyring set {SERVICE} {entries[names[0]]}` (pip install "rashomon[keychain]").'
    )


def key_addresses(*names: str) -> list[str]:
    """Return the addresses that the variables ``names`` name beside their keys."""
    return [address for name in names for address in _bound(os.environ.get(name, ""))]


def place(name: str, *, keychain: bool = True) -> str | None:
    """Where the key ``name`` would come from, "environment" or "keychain"; None where it is in neither.

    Without ``keychain`` that one is not asked, which on some systems asks the user; nor for a key that has no address of the
    vendor's own, whose entries are named with one.
    """
    if os.environ.get(name, "").strip():
        return "environment"
    return "keychain" if keychain and name not in _ADDRESSED and _keychain(name) is not None else None


def redact(text: str) -> str:
    """``text`` with ``***`` for every known key, URL-encoded and escaped forms of it, and pieces of 8 characters or more.

    For errors and logs: what a server or library says may quote a key in whole or in part.
    """
    hidden = bytearray(len(text))
    for form in _forms(_known()):
        piece = min(_PIECE, len(form))
        pieces = {form[i : i + piece] for i in range(len(form) - piece + 1)}
        for i in range(len(text) - piece + 1):
            if text[i : i + piece] in pieces:
                hidden[i : i + piece] = b"\1" * piece
    return _starred(text, hidden)


def without_keys(text: str) -> str:
    """A model's answer with ``***`` for every known key that stands in it whole.

    Keys shorter than 16 characters are left: they are words like "ollama" that local servers ask for, and answers too.
    """
    for form in _forms({value for value in _known() if len(value) >= _SECRET}):
        text = text.replace(form, "***")
    return text


def _known() -> set[str]:
    values = {value for name in VARIABLES if (value := os.environ.get(name, "").strip())}
    return _handed_out | {
        secret for value in values for secret in (_BOUND.sub(r"\2", value).split() if _BOUND.match(value) else [value])
    }


def _environment(name: str, address: str) -> str | None:
    """Return the key that a variable holds for an address; one without an address is for any that is agreed to."""
    value = os.environ.get(name, "").strip()
    return _bound(value).get(address) if value.startswith(("http://", "https://")) else value or None


def _bound(value: str) -> dict[str, str]:
    """Return the keys of a variable's value by their addresses."""
    keys = {}
    for url, secret in _BOUND.findall(value):
        with suppress(ValueError):  # no address; whatever is meant for it goes nowhere
            keys[address_of(url)] = secret
    return keys


def _keychain(entry: str) -> str | None:
    try:
        import keyring

        found: str | None = keyring.get_password(SERVICE, entry)
    except Exception:  # not installed, no keychain on this machine, or the user refused: then it has no key
        return None
    return (found or "").strip() or None


def _forms(values: set[str]) -> list[str]:
    """Every spelling of the keys, the longest first so that none is cut by another."""
    spelt = {
        form
        for value in values
        for form in (
            value,
            quote(value, safe=""),
            quote_plus(value),
            json.dumps(value)[1:-1],
            repr(value)[1:-1],
            b64encode(value.encode()).decode().rstrip("="),
        )
    }
    return sorted(spelt, key=len, reverse=True)


def _starred(text: str, hidden: bytearray) -> str:
    shown: list[str] = []
    for character, hide in zip(text, hidden, strict=True):
        if not hide:
            shown.append(character)
        elif not shown or shown[-1] != "***":
            shown.append("***")
    return "".join(shown)
