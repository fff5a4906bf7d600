"""Licence of a model, as far as it is stored on this machine: the one that its card states."""

from __future__ import annotations

import re
from contextlib import suppress

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_files import UnsafeFileError, open_regular
from mlx_backends.models.discovery import resolve

CARD = "README.md"
_LARGEST_HEAD = 64 << 10
_HEAD = re.compile(r"---\s*\n(.*?)\n---", re.DOTALL)
_LICENCE = re.compile(r"^license(?:_name)?:[ \t]*[\"']?([A-Za-z0-9][\w .+-]{0,60}?)[\"']?[ \t]*$", re.MULTILINE)
_UNSPECIFIC = "other"


def stored_licence(model: str) -> str | None:
    """Return the licence on a local model's card, such as "apache-2.0"; None if no card is stored, or it states none."""
    with suppress(ModelError, OSError, UnsafeFileError):
        with open_regular(resolve(model) / CARD) as stream:
            text = stream.read(_LARGEST_HEAD).decode("utf-8", "replace")
        if (head := _HEAD.match(text.lstrip("\ufeff"))) is not None:
            names = _LICENCE.findall(head[1])
            return next((name for name in names if name != _UNSPECIFIC), names[0] if names else None)
    return None
