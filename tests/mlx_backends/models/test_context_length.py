"""The context length of a model, as its configuration states it."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_backends.models.context_length import ContextLength, context_length

TEXT = {"num_hidden_layers": 2, "max_position_embeddings": 4096}
MROPE = {"rope_type": "default", "mrope_section": [16, 24, 24]}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"text_config": TEXT, "vision_config": {"max_position_embeddings": 64}}, ContextLength(4096)),
        ({"model_type": "llama", **TEXT}, ContextLength(4096)),
        ({"text_config": {"num_hidden_layers": 2}, "max_position_embeddings": 8192}, ContextLength(8192)),
        ({"text_config": {**TEXT, "rope_scaling": MROPE}}, ContextLength(4096, counts_media=False)),
        ({"text_config": {**TEXT, "rope_parameters": MROPE}}, ContextLength(4096, counts_media=False)),
        ({**TEXT, "rope_scaling": {"type": "mrope"}}, ContextLength(4096, counts_media=False)),
        ({**TEXT, "rope_scaling": {"type": "linear", "factor": 8}}, ContextLength(32768)),
        ({**TEXT, "max_position_embeddings": 131072, "rope_scaling": YARN}, ContextLength(131072)),
        ({**TEXT, "max_position_embeddings": 32768, "rope_scaling": YARN}, ContextLength(131072)),
        ({**TEXT, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, ContextLength(4096)),
        ({**TEXT, "rope_scaling": "long"}, ContextLength(4096)),
        ({**TEXT, "rope_scaling": {"type": "linear", "factor": 1e300}}, ContextLength(4096)),
        ({**TEXT, "rope_scaling": {"type": ["linear"], "factor": True}}, ContextLength(4096)),
        ({**TEXT, "max_position_embeddings": -1}, None),
        ({**TEXT, "max_position_embeddings": "4096"}, None),
        ({"text_config": {"num_hidden_layers": 2}}, None),
        ({}, None),
    ],
)
def test_the_configuration_states_the_length(config: dict[str, Any], expected: ContextLength | None) -> None:
    assert context_length(config) == expected
