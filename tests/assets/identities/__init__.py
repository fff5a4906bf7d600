"""What the papers' results say about each other: sums, means, counts, and what the text says of its tables.

One module a paper; ``python -m tests.assets.identities`` writes what docs/published.md has of them.
"""
