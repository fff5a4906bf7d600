"""Patches of mlx-vlm: activations of image encoders and projectors, for which it takes another GELU than the models learnt.

MLX has the exact GELU, and two approximations: "precise" is the one by ``tanh``, "fast" the one by the sigmoid. The wrong one
moves logprobs of prompts with images, of texts by nothing.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as a patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple

from mlx_backends.mlx.patches.replace_method import replace_method


class Activation(NamedTuple):
    """An activation by its layer's module, class and attribute; mlx-vlm's approximation; and the right one, "none" if exact."""

    module: str
    layer: str
    attribute: str
    wrong: str
    right: str = "none"


PATCHES: Mapping[str, tuple[Activation, ...]] = {
    # SigLIP learnt the one by tanh; logprobs move by some 1e-2.
    "granite4_vision_gelu": (Activation("granite4_vision.vision", "MLP", "activation_fn", "fast", "precise"),),
    # The image encoder and the projector; logprobs move by some 1e-4.
    "internvl_gelu": (
        Activation("internvl_chat.vision", "MLP", "activation_fn", "precise"),
        Activation("internvl.internvl", "MultiModalProjector", "activation", "precise"),
    ),
    # The image encoder and its projector, whose ``hidden_act`` is "gelu".
    "llama4_gelu": (Activation("llama4.vision", "Llama4VisionMLP", "activation_fn", "fast"),),
    # The merger behind the image encoder, whose own activations are approximate in transformers, too.
    "minicpmv4_6_gelu": (Activation("minicpmv4_6.minicpmv4_6", "MergerBlock", "act", "precise"),),
}
"""The patches by name, which are part of an engine's identity."""


def apply_patch(name: str) -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    repaired = [_repair(activation) for activation in PATCHES[name]]
    return any(repaired)


def _repair(activation: Activation) -> bool:
    def patched(build: Any) -> Callable[..., None]:
        from mlx import nn

        @wraps(build)
        def construct(self: Any, *arguments: Any, **options: Any) -> None:
            build(self, *arguments, **options)
            setattr(self, activation.attribute, nn.GELU(approx=activation.right))

        return construct

    layer: Any = getattr(import_module(f"mlx_vlm.models.{activation.module}"), activation.layer)
    return replace_method(layer, "__init__", f'nn.GELU(approx="{activation.wrong}")', patched)
