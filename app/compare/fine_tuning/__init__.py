"""Comparison of a model before and after fine-tuning."""
