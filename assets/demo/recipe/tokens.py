"""A byte-level tokenizer for the rows: a fixed sentence, a name and a digit are one token each."""

from __future__ import annotations

import re
from typing import Any

from assets.demo.recipe import chart_rows, logo_rows, scene_rows
from assets.demo.recipe.charts import NAMES
from assets.demo.recipe.chat import SPECIAL


def phrases() -> list[str]:
    """Return the phrases that are one token everywhere, the longest first."""
    sentences = chart_rows.phrases() | scene_rows.phrases() | logo_rows.phrases()
    return sorted(sentences, key=lambda phrase: (-len(phrase), phrase))


def tokenizer() -> Any:
    """Return a byte-level tokenizer: a fixed sentence, a name and a digit are one token each, whatever else is spelt in bytes.

    A model this small would spend most of its computation on sentences that never change. The number of tokens is a
    multiple of 64, and every id has a token, because one without could not be decoded.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words = [*phrases(), *(form.format(name) for name in NAMES for form in (" {}", "{}:")), " is", " and", "user"]
    words += [*(f" {digit}" for digit in range(10)), *scene_rows.words(), *logo_rows.words()]
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens += [token for token in (byte_level.pre_tokenize_str(word)[0][0] for word in words) if token not in tokens]
    # ignore_merges: a piece of text that is in the vocabulary is that token; the others fall apart into bytes.
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    byte_tokenizer = Tokenizer(models.BPE(vocabulary, [], ignore_merges=True))
    pieces = "|".join(re.escape(phrase) for phrase in phrases())
    byte_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(rf"{pieces}|\([A-D]\)| ?[0-9]| ?[A-Za-z]+:?| ?[^\sA-Za-z0-9]|\s"), "isolated"),
            byte_level,
        ]
    )
    byte_tokenizer.decoder = decoders.ByteLevel()
    byte_tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    spare = range(-byte_tokenizer.get_vocab_size() % 64)
    byte_tokenizer.add_tokens([AddedToken(f"<extra_{number}>", normalized=False) for number in spare])
    return byte_tokenizer
