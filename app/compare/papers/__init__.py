"""Comparison of runs with the published results of papers and of other labs."""
