"""Parity of two runs or models, stage by stage: the first difference, its cause, and its effect on the labels."""
