"""Default name of a person who labels, reviews or answers."""

from __future__ import annotations

import getpass
import re


def default_annotator() -> str:
    """Return an annotator name derived from the name of the system's user."""
    try:
        name = re.sub(r"[^A-Za-z0-9._-]+", "", getpass.getuser()).lstrip("._-")[:40]
    except (OSError, KeyError):
        name = ""
    return name or "me"
