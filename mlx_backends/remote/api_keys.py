"""Keys of remote engines: from the environment, else from the system's keychain; never in anything that is written.

A key belongs to an address (``scheme://host:port``). A variable holds a key, or one for each of several addresses
(``https://host:443=KEY``, separated by spaces); an entry of the keychain is for the provider's own address, unless it is named
``VARIABLE@https://host:443``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import chain
from urllib.parse import quote, quote_plus

from benchmarks.errors import KeyMissingError
from benchmarks.fetch.proxies import proxy_secrets
from benchmarks.untrusted.system_tools import tool_outputs
from mlx_backends.remote.remote_names_and_media import address_of

VARIABLES = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "RASHOMON_ENDPOINT_KEY",
)
SERVICE = "rashomon"
"""Service name of the keychain's entries; the user name of an entry is the variable's name, with its address."""

_ADDRESSED = ("AZURE_OPENAI_API_KEY", "RASHOMON_ENDPOINT_KEY")
_BOUND = re.compile(r"(https?://[^\s=]+)=(\S+)")

_PIECE = 8
_SECRET = 16
_handed_out: set[str] = set()
_hidden: dict[str, str] = {}


@contextmanager
def hidden_from_processes(names: Iterable[str]) -> Iterator[None]:
    """Hide the variables ``names`` from processes that start within the block; keys among them are still found here."""
    hidden = {name: os.environ[name] for name in names if name in os.environ}
    _hidden.update(hidden)
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
        _hidden.clear()


def find_key(*names: str, address: str, own: bool = True) -> str:
    """Return the key for ``address``: the first of ``names`` in the environment, else the first in the keychain.

    ``own`` tells that the address is the provider's own. Raises KeyMissingError where neither has any, and for one that no HTTP
    header could carry.
    """
    entries = {name: name if own else f"{name}@{address}" for name in names}
    candidates = chain(
        ((name, _environment(name, address)) for name in names),
        ((name, _keychain(entry)) for name, entry in entries.items()),
    )
    for name, value in candidates:
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise KeyMissingError(f"{name} holds an invalid key (a space or odd character); set it again.")
        _handed_out.add(value)
        return value
    raise KeyMissingError(
        f"there is no key {' or '.join(names)} for {address}; set it in the environment, or run "
        f'`keyring set {SERVICE} {entries[names[0]]}` (pip install "rashomon[keychain]").'
    )


def key_addresses(*names: str) -> list[str]:
    """Return the addresses that the variables ``names`` give with their keys."""
    return [address for name in names for address in _bound(_value(name))]


def key_source(name: str, *, keychain: bool = True) -> str | None:
    """Return where the key ``name`` would come from, "environment" or "keychain"; None where it is in neither.

    Without ``keychain`` that one is not read, as on some systems it prompts the user; nor for a key without an address of the
    provider's own, whose entries are named with an address.
    """
    if _value(name):
        return "environment"
    return "keychain" if keychain and name not in _ADDRESSED and _keychain(name) is not None else None


def keychain_entries() -> list[str]:
    """Return the names in ``VARIABLES`` that have an entry in the keychain, for the provider's own address.

    On macOS the entries are looked up by ``security`` without their values, which raises no dialog.
    """
    if find_spec("keyring") is None:  # without it no key can be read from the keychain
        return []
    names = [name for name in VARIABLES if name not in _ADDRESSED]
    if sys.platform == "darwin":
        commands = (("/usr/bin/security", "find-generic-password", "-s", SERVICE, "-a", name) for name in names)
        return [name for name, entry in zip(names, tool_outputs(commands), strict=True) if entry]
    return [name for name in names if _keychain(name) is not None]


def redact(text: str) -> str:
    """Return ``text`` with ``***`` for known keys, their URL-encoded and escaped forms, and pieces of 8 or more characters.

    For errors and logs: the message of a server, library or proxy may quote a key, or a proxy's credentials, in whole or in part.
    """
    hidden_mask = bytearray(len(text))
    for form in _forms(_known()):
        piece = min(_PIECE, len(form))
        pieces = {form[i : i + piece] for i in range(len(form) - piece + 1)}
        for i in range(len(text) - piece + 1):
            if text[i : i + piece] in pieces:
                hidden_mask[i : i + piece] = b"\1" * piece
    return _starred(text, hidden_mask)


def mask_keys(text: str) -> str:
    """Return a model's answer with ``***`` for every known key that it contains whole.

    Keys shorter than 16 characters are left: they are words like "ollama" that local servers ask for, and answers too.
    """
    for form in _forms({value for value in _known() if len(value) >= _SECRET}):
        text = text.replace(form, "***")
    return text


def _known() -> set[str]:
    values = {value for name in VARIABLES if (value := _value(name))}
    return (
        _handed_out
        | proxy_secrets()
        | {
            secret
            for value in values
            for secret in (_BOUND.sub(r"\2", value).split() if _BOUND.match(value) else [value])
        }
    )


def _value(name: str) -> str:
    """Return the value of an environment variable, also while it is hidden from new processes."""
    # Another thread may hide it, or end that, between two of these.
    return (os.environ.get(name) or _hidden.get(name) or os.environ.get(name) or "").strip()


def _environment(name: str, address: str) -> str | None:
    """Return the key that a variable holds for an address; one without an address is for any allowed address."""
    value = _value(name)
    return _bound(value).get(address) if value.startswith(("http://", "https://")) else value or None


def _bound(value: str) -> dict[str, str]:
    """Return the keys of a variable's value by their addresses."""
    keys = {}
    for url, secret in _BOUND.findall(value):
        with suppress(ValueError):  # no valid address, so the key is sent nowhere
            keys[address_of(url)] = secret
    return keys


def _keychain(entry: str) -> str | None:
    try:
        import keyring

        password: str | None = keyring.get_password(SERVICE, entry)
    except Exception:  # not installed, no keychain on this machine, or the user refused
        return None
    return (password or "").strip() or None


def _forms(values: set[str]) -> list[str]:
    """Return every spelling of the keys, the longest first so that none is cut by another."""
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
    characters: list[str] = []
    for character, hide in zip(text, hidden, strict=True):
        if not hide:
            characters.append(character)
        elif not characters or characters[-1] != "***":
            characters.append("***")
    return "".join(characters)
