"""Metrics that a decision between runs rests on, their tests, and their limits."""
