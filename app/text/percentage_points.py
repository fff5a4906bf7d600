"""Percentage points, as they are printed."""

from __future__ import annotations


def format_points(share: float, *, sign: bool = False) -> str:
    """Return a share, or a difference of shares, in percentage points: ``3``, ``-1.25``, with ``sign`` also ``+3``."""
    text = f"{100 * share:+.1f}" if sign else f"{100 * share:.1f}"
    return text.removesuffix(".0") if text not in ("-0.0", "+0.0") else "0"
