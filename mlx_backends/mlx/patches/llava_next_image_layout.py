"""Patch of mlx-vlm: LLaVA-NeXT's images, of which it shows the first one only, in a layout that the model never learnt.

Its processor writes a token for every feature of an image: those of the whole image, then those of its tiles, row by row with
a newline after each, without what pads the image. mlx-vlm encodes the tiles of the first image, appends as many blocks of
newlines, puts a whole tile in the place of each of the first tokens, and drops the other tokens of the images with the text
between them. The patch lays out the features of all images by mlx-vlm's code for LLaVA-OneVision, which here does not make them
fewer.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from math import inf
from typing import Any

_FAULT = "pixel_values[0].transpose(0, 2, 3, 1)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.llava_next.llava_next").Model
    config: Any = import_module("mlx_vlm.models.llava_next.config").ModelConfig
    embed = inspect.unwrap(model.get_input_embeddings)
    if _FAULT not in inspect.getsource(embed):
        return False
    if model.get_input_embeddings is embed:
        model.get_input_embeddings = _embedding(embed)
        config.from_dict = classmethod(_with_resolutions(config.from_dict.__func__))
    return True


def _with_resolutions(read: Any) -> Any:
    @wraps(read)
    def from_dict(cls: Any, params: Any) -> Any:
        config = read(cls, params)
        config.image_grid_pinpoints = params["image_grid_pinpoints"]  # which mlx-vlm leaves out
        return config

    return from_dict


def _embedding(embed: Any) -> Any:
    onevision: Any = import_module("mlx_vlm.models.llava_onevision.llava_onevision").Model

    @wraps(embed)
    def get_input_embeddings(self: Any, input_ids: Any = None, pixel_values: Any = None, **options: Any) -> Any:
        if pixel_values is None:
            return embed(self, input_ids, **options)
        features = options.get("cached_image_features")
        if features is None:
            features = onevision.get_image_features(_OneVision(self), pixel_values, options["image_sizes"])
        output = embed(self, input_ids)
        output.inputs_embeds = onevision._scatter_features(
            self, output.inputs_embeds, input_ids, features, self.config.image_token_index, "Image"
        )
        return output

    return get_input_embeddings


class _OneVision:
    """A LLaVA-NeXT model as LLaVA-OneVision's code reads it; ``max_num_patches`` would have tiles made smaller."""

    max_num_patches = inf

    def __init__(self, model: Any) -> None:
        vision = model.config.vision_config
        self._model = model
        self.patches_per_side = vision.image_size // vision.patch_size

    def _select_features(self, hidden_states: Any) -> Any:
        features = hidden_states[self._model.vision_feature_layer]
        return features[:, 1:] if self._model.vision_feature_select_strategy == "default" else features

    def pack_image_features(self, features: Any, sizes: Any) -> Any:
        onevision: Any = import_module("mlx_vlm.models.llava_onevision.llava_onevision").Model
        return onevision.pack_image_features(self, features, sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
