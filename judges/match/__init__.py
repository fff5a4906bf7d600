"""`match`: an offline approximation of CMC-Bench's five-label judge, by rules that a reader can follow."""

from judges.match.judge import Match

__all__ = ["Match"]
