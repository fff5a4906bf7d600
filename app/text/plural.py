"""Counts with their nouns."""


def count_of(number: int, noun: str) -> str:
    """Return a number with a noun whose plural ends in "s", such as "1 row" and "2 rows"."""
    return f"{number:,} {noun}{'s'[: number != 1]}"
