"""Corpus of 300 malformed inputs: run specs, sheets, question sets and requests to the page, made from one seed."""
