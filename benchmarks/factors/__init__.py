"""Factors: a build's examples under several levels of legibility, provenance, order, length and distance."""
