"""CLASH's string matching, strict and relaxed, as in its paper and its published code."""

from judges.string_match.judge import STRING_MATCHING, Relaxed, Strict

__all__ = ["STRING_MATCHING", "Relaxed", "Strict"]
