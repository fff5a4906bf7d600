"""Comparison of the models tried on a question set, and the gate for scripts."""
