"""Protocols: the model calls that an instance takes, and the conditions that leave out its sources."""
