"""Consistency checks between the papers' results: sums, means, counts, and claims of the text about its tables.

One module a paper; ``python -m tests.assets.identities`` writes what docs/published.md has of them.
"""
