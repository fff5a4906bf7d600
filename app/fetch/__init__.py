"""Fetching of data and models: planned before it starts, resumable, and complete or not in place."""
