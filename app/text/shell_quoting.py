"""Words quoted for a shell."""

from __future__ import annotations

import os
import shlex

from app.text.text_escaping import clean


def shell_quote(word: str) -> str:
    """Return ``word`` quoted for bash or zsh, unquoted where possible; as ``$'...'`` if it holds control characters."""
    if clean(word) == word:
        return shlex.quote(word)
    raw = os.fsencode(word)
    plain = (chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in "'\\" else f"\\{byte:03o}" for byte in raw)
    return f"$'{''.join(plain)}'"
