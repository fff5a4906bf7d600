"""CLASH's string matching, strict and relaxed, as in its paper and its published code."""

from judges.string_match.judge import Relaxed, Strict

__all__ = ["Relaxed", "Strict"]
