"""Fetching data and models: what is needed and no more, said before it begins, resumable, whole or not there."""
