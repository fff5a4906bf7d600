"""Synonyms of WordNet, through nltk, where the library and its data are on this machine. Nothing is downloaded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from benchmarks.extras import has_extra

Synonyms = Callable[[str], frozenset[str]]
"""A function that returns the words that share a meaning with a word."""

PLACES = ("corpora/wordnet", "corpora/wordnet.zip/wordnet/")
"""The places of the data below nltk's data folders, unpacked or as ``nltk.downloader`` leaves them."""


@cache
def wordnet_synonyms() -> Synonyms | None:
    """Return the synonyms of WordNet; None without nltk or its data, or where the data cannot be read."""
    if not has_extra("wordnet"):
        return None
    try:
        import nltk.data
        from nltk.corpus.reader.wordnet import WordNetCorpusReader

        with warnings.catch_warnings():  # about languages other than English
            warnings.simplefilter("ignore")
            reader = WordNetCorpusReader(_root(nltk.data.find), None)
    except Exception:  # data that are missing, incomplete or damaged make the library raise anything
        return None

    @lru_cache(maxsize=65_536)
    def synonyms(word: str) -> frozenset[str]:
        # As nltk's METEOR: the lemmas of every meaning, without those of several words.
        try:
            names = {str(lemma.name()) for meaning in reader.synsets(word) for lemma in meaning.lemmas()}
        except Exception:  # a damaged line of the data
            return frozenset()
        return frozenset(name.lower() for name in names if "_" not in name)

    return synonyms


def _root(find: Callable[[str], Any]) -> Any:
    for place in PLACES[:-1]:
        try:
            return find(place)
        except LookupError:
            continue
    return find(PLACES[-1])
