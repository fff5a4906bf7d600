"""Ids of COCO's images, and of VQAv2's questions about them, as data sets write them."""

from __future__ import annotations

DIGITS = 12
"""The digits of an image's id in the name of its file."""


def whole_id(value: object) -> str | None:
    """Return the digits of an id: a text of digits, or a whole number, also as pandas writes it (``77003005.0``); else None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    digits = value.strip().removesuffix(".0")
    return digits if digits.isascii() and digits.isdigit() else None
