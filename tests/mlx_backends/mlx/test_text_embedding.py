"""Texts as vectors, by a tiny embedding model in the real layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import ModelError
from mlx_backends.mlx.text_embedding import load_embedder
from tests.support.tiny_qwen3 import build_tiny_lm


def test_embedding_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    build_tiny_lm(tmp_path / "tiny", ["a dog barks in the rain", "a red car on a road"], quantise=False)
    embedder = load_embedder(str(tmp_path / "tiny"))
    assert embedder.name == "tiny"
    texts = ["a dog barks", "a red car on the road and more words than the others", "a dog barks", *map(str, range(40))]
    vectors = embedder.embed(texts)
    assert vectors.shape[0] == len(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors[0], vectors[2], atol=1e-4)
    assert np.allclose(embedder.embed(["a dog barks"])[0], vectors[0], atol=1e-4), "padding says nothing"
    assert vectors[0] @ vectors[1] < 0.999
    assert embedder.embed([]).shape == (0, 0)


def test_invalid_embedding_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        load_embedder(str(tmp_path / "nowhere"))
    build_tiny_lm(tmp_path / "tiny", ["a dog"], quantise=False)
    (tmp_path / "tiny" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tiny cannot embed texts: .*; name an embedding model"):
        load_embedder(str(tmp_path / "tiny"))
