"""Keys of remote engines: from the environment, else from the system's keychain; never in anything that is written."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from urllib.parse import quote, quote_plus

from benchmarks.errors import KeyMissingError

VARIABLES = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "RASHOMON_ENDPOINT_KEY",
)
SERVICE = "rashomon"
"""What the keychain's entries are kept under; the user name of an entry is the variable's name."""

_PIECE = 8
_SECRET = 16
_handed_out: set[str] = set()


def key(*names: str) -> str:
    """The first of the keys ``names`` that the environment has, else the first that the keychain has.

    Raises KeyMissingError where neither has any, and for one that no HTTP header could carry.
    """
    for name, value in ((name, find(name)) for find in (_environment, _keychain) for name in names):
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise KeyMissingError(f"{name} holds something that is no key (a space or odd character); set it again.")
        _handed_out.add(value)
        return value
    raise KeyMissingError(
        f"there is no key {' or '.join(names)}; set it in the environment, or run `keyring set {SERVICE} {names[0]}` "
        '(pip install "rashomon[keychain]").'
    )


def place(name: str, *, keychain: bool = True) -> str | None:
    """Where the key ``name`` would come from, "environment" or "keychain"; None where it is in neither.

    Without ``keychain`` that one is not asked, which on some systems asks the user.
    """
    if _environment(name) is not None:
        return "environment"
    return "keychain" if keychain and _keychain(name) is not None else None


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
    return _handed_out | {value for name in VARIABLES if (value := _environment(name))}


def _environment(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _keychain(name: str) -> str | None:
    try:
        import keyring

        found: str | None = keyring.get_password(SERVICE, name)
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
