"""``match``: an offline approximation of CMC-Bench's five-label judge, by rules that a reader can follow."""

from judges.cmc_rules.judge import Match

__all__ = ["Match"]
