"""CLASH's string matching, strict and relaxed, as its paper and its published code have it."""

from judges.string_match.judge import Relaxed, Strict

__all__ = ["Relaxed", "Strict"]
