"""Comparisons of runs: differences, their confidence intervals, costs, and the recommended run."""
