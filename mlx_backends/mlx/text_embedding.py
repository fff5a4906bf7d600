"""Text embeddings by a model that mlx-vlm loads (BERT, XLM-RoBERTa, Qwen3 embedding and others)."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import ModelError
from benchmarks.text_model import Embedder
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery
from mlx_backends.mlx.mlx_load import library_folder
from mlx_backends.models.memory_and_cache_sizes import device_info, memory_fit
from mlx_backends.models.model_discovery import ModelInfo, inspect, resolve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH = 32
_MAX_TOKENS = 512
"""Most tokens of a text that are read; fewer where the model takes fewer."""


class Encoder(Embedder):
    """A loaded embedding model and its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        self._recovery = FaultRecovery(model)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        rows: list[NDArray[np.float32] | None] = [None] * len(texts)
        by_length = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))  # little padding
        limit = min(_MAX_TOKENS, int(getattr(self._model.config, "max_position_embeddings", _MAX_TOKENS)))
        for start in range(0, len(texts), _BATCH):
            indices = by_length[start : start + _BATCH]
            tokens = self._tokenizer(
                [texts[i] for i in indices], padding=True, truncation=True, max_length=limit, return_tensors="np"
            )
            vectors = self._recovery.repeat(partial(self._vectors, tokens["input_ids"], tokens["attention_mask"]))
            for i, vector in zip(indices, vectors, strict=True):
                rows[i] = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return np.array(rows, dtype=np.float32).reshape(len(texts), -1)

    def _vectors(self, ids: Any, mask: Any) -> NDArray[np.float32]:
        import mlx.core as mx
        import numpy as np

        output = self._model(mx.array(ids), attention_mask=mx.array(mask))
        return np.array(output.text_embeds.astype(mx.float32))

    def close(self) -> None:
        """Free the model; it embeds nothing afterwards."""
        self._model = None
        del self._recovery
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()


def load_embedder(name: str, *, force: bool = False) -> Encoder:
    """Return the embedding model called ``name``, a local folder or a Hub id in the cache, loaded; no code in its folder is run.

    Raises ModelError where it is not there, does not fit in memory (unless ``force``), or is no embedding model.
    """
    model_info = inspect(resolve(name))
    fit = memory_fit(model_info.weights_bytes, device_info())
    if not fit.ok and not force:
        raise ModelError(f"{model_info.name} was not loaded: {fit.sentence}; choose a smaller one, or add --force.")
    with library_folder(model_info.path) as (folder, _):
        return FaultRecovery().repeat(lambda: _load(model_info, folder))


def _load(model_info: ModelInfo, folder: Path) -> Encoder:
    try:
        with contained():
            from mlx_vlm.embedding_loader import load_embedding_model
            from transformers import AutoTokenizer

            model = load_embedding_model(folder)
            tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        encoder = Encoder(model_info.name, model, tokenizer)
        encoder.embed(["a text"])
    except Exception as error:  # a malformed folder can make these libraries raise anything
        raise ModelError(
            f"{model_info.name} cannot embed texts: {one_line(error)}; name an embedding model."
        ) from error
    return encoder
