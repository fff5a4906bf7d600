"""The report of runs: a paper-style document with a first page for readers who know nothing of the project."""
