"""Differences between two runs, by metric, by label and by answer."""
