"""A Qwen3-VL of 2.5 million parameters for pictures of a fixed size, with the parameter names of the published models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from assets.demo.recipe.charts import SIZE

PATCH, MERGE = 8, 2
PATCHES = SIZE // PATCH
SIDE = PATCHES // MERGE
IMAGE_TOKENS = SIDE * SIDE
MERGED_SCALE = 0.1
"""The factor of the trained model's merged features; its deepstack features stay as they are."""


@dataclass(frozen=True)
class Shape:
    """Widths and depths; ``deepstack`` names the vision blocks whose features enter the first language layers too."""

    vocabulary: int = 448
    vision_width: int = 128
    vision_inner: int = 256
    vision_depth: int = 3
    vision_heads: int = 4
    deepstack: tuple[int, ...] = (2,)
    width: int = 192
    inner: int = 384
    depth: int = 4
    heads: int = 6
    kv_heads: int = 2
    head_width: int = 32
    sections: tuple[int, int, int] = (6, 5, 5)
    theta: float = 10000.0


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    # Written out in fp32: for rows this short twice as fast on a CPU as the fused kernel with its backward pass.
    scores = (q.float() * q.shape[-1] ** -0.5) @ k.float().transpose(-1, -2)
    if causal:
        length = scores.shape[-1]
        scores = scores + torch.full((length, length), -torch.inf, device=scores.device).triu(1)
    mixed = (scores.softmax(-1) @ v.float()).to(v.dtype)
    return mixed.transpose(1, 2).flatten(2)


# --- vision --------------------------------------------------------------------------------------


class _VisionAttention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.vision_heads
        self.qkv = nn.Linear(shape.vision_width, 3 * shape.vision_width)
        self.proj = nn.Linear(shape.vision_width, shape.vision_width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed: Tensor = self.proj(_attention(_rotated(q, cos, sin), _rotated(k, cos, sin), v, causal=False))
        return mixed


class _VisionMLP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(shape.vision_width, shape.vision_inner)
        self.linear_fc2 = nn.Linear(shape.vision_inner, shape.vision_width)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.linear_fc2(F.gelu(self.linear_fc1(x), approximate="tanh"))
        return output


class _VisionBlock(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.vision_width, eps=1e-6)
        self.norm2 = nn.LayerNorm(shape.vision_width, eps=1e-6)
        self.attn = _VisionAttention(shape)
        self.mlp = _VisionMLP(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class _Merger(nn.Module):
    def __init__(self, shape: Shape, *, norm_after: bool) -> None:
        super().__init__()
        self.merged = shape.vision_width * MERGE**2
        self.norm_after = norm_after
        self.norm = nn.LayerNorm(self.merged if norm_after else shape.vision_width, eps=1e-6)
        self.linear_fc1 = nn.Linear(self.merged, self.merged)
        self.linear_fc2 = nn.Linear(self.merged, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        size = (len(x), -1, self.merged)
        x = self.norm(x.reshape(size)) if self.norm_after else self.norm(x).reshape(size)
        output: Tensor = self.linear_fc2(F.gelu(self.linear_fc1(x)))
        return output


class _PatchEmbed(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.proj = nn.Conv3d(3, shape.vision_width, (2, PATCH, PATCH), stride=(2, PATCH, PATCH))

    def forward(self, x: Tensor) -> Tensor:
        # A still picture is two equal frames.
        return F.linear(x, self.proj.weight.sum(2).flatten(1), self.proj.bias)


@dataclass(frozen=True)
class VisionFeatures:
    """The vision encoder's features of pictures: ``merged`` (pictures, tokens, width) takes the place of their tokens,
    ``deep`` is added to the first language layers there, and ``patches`` (pictures, patches, vision width) precedes both."""

    merged: Tensor
    deep: tuple[Tensor, ...]
    patches: Tensor

    def of(self, pictures: Tensor) -> VisionFeatures:
        """Return the features of the pictures of these numbers, in this order."""
        return VisionFeatures(
            self.merged[pictures], tuple(features[pictures] for features in self.deep), self.patches[pictures]
        )

    def weakened(self, kept: Tensor) -> VisionFeatures:
        """Zero ``merged`` where ``kept`` (pictures) is 0, so that only the deepstack features describe the picture."""
        return VisionFeatures(self.merged * kept[:, None, None].to(self.merged.dtype), self.deep, self.patches)


class _Vision(nn.Module):
    order: Tensor
    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.deepstack = shape.deepstack
        self.patch_embed = _PatchEmbed(shape)
        self.pos_embed = nn.Embedding(PATCHES**2, shape.vision_width)
        self.blocks = nn.ModuleList(_VisionBlock(shape) for _ in range(shape.vision_depth))
        self.merger = _Merger(shape, norm_after=False)
        self.deepstack_merger_list = nn.ModuleList(_Merger(shape, norm_after=True) for _ in shape.deepstack)
        number = torch.arange(PATCHES**2).view(SIDE, MERGE, SIDE, MERGE).permute(0, 2, 1, 3).flatten()
        half = shape.vision_width // shape.vision_heads // 2
        frequencies = 1 / 10000 ** (torch.arange(0, half, 2).float() / half)
        places = torch.stack((number // PATCHES, number % PATCHES), 1).float()
        angles = (places[..., None] * frequencies).flatten(1).repeat(1, 2)
        self.register_buffer("order", number, persistent=False)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, pictures: Tensor) -> VisionFeatures:
        grid = pictures.view(-1, SIDE, MERGE, PATCH, SIDE, MERGE, PATCH, 3).permute(0, 1, 4, 2, 5, 7, 3, 6)
        x = self.patch_embed(grid.reshape(len(pictures), PATCHES**2, -1)) + self.pos_embed.weight[self.order]
        deep = []
        for number, block in enumerate(self.blocks):
            x = block(x, self.cos, self.sin)
            if number in self.deepstack:
                deep.append(self.deepstack_merger_list[self.deepstack.index(number)](x))
        return VisionFeatures(self.merger(x), tuple(deep), x)


# --- language ------------------------------------------------------------------------------------


class _RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), 1e-6)


class _TextAttention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = shape.heads, shape.kv_heads, shape.head_width
        self.q_proj = nn.Linear(shape.width, shape.heads * shape.head_width, bias=False)
        self.k_proj = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.v_proj = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_width, shape.width, bias=False)
        self.q_norm, self.k_norm = _RMSNorm(shape.head_width), _RMSNorm(shape.head_width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        size, groups = (-1, self.head_width), self.heads // self.kv_heads
        q = self.q_norm(self.q_proj(x).unflatten(-1, size)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).unflatten(-1, size)).transpose(1, 2)
        v = self.v_proj(x).unflatten(-1, size).transpose(1, 2)
        k = _rotated(k, cos, sin).repeat_interleave(groups, 1)
        mixed: Tensor = self.o_proj(_attention(_rotated(q, cos, sin), k, v.repeat_interleave(groups, 1), causal=True))
        return mixed


class _TextMLP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return output


class _TextBlock(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = _RMSNorm(shape.width)
        self.post_attention_layernorm = _RMSNorm(shape.width)
        self.self_attn = _TextAttention(shape)
        self.mlp = _TextMLP(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class _Language(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(_TextBlock(shape) for _ in range(shape.depth))
        self.norm = _RMSNorm(shape.width)


class _Inner(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.visual = _Vision(shape)
        self.language_model = _Language(shape)


class ChartReader(nn.Module):
    """The model. Rows are padded on the right, which a causal attention never sees."""

    frequencies: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = _Inner(shape)
        self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        steps = torch.arange(0, shape.head_width, 2).float() / shape.head_width
        self.register_buffer("frequencies", 1 / shape.theta**steps, persistent=False)
        for name, parameter in self.named_parameters():
            _initialise(name, parameter, max(shape.depth, shape.vision_depth))

    def trunk(
        self, ids: Tensor, positions: Tensor, features: VisionFeatures | None = None, slots: Tensor | None = None
    ) -> Tensor:
        """Return the last hidden states.

        ids: (rows, length). positions: (3, rows, length), along time, height and width. features: the vision
        encoder's features of the rows' pictures, in order. slots: the places of their tokens in the flattened ids.
        """
        language = self.model.language_model
        x = language.embed_tokens(ids)
        deep: list[Tensor] = []
        if features is not None and slots is not None:
            deep = [layer.flatten(0, 1) for layer in features.deep]
            merged = features.merged.flatten(0, 1)
            x = x.flatten(0, 1).to(merged.dtype).index_copy(0, slots, merged).view_as(x)
        cos, sin = self._rotation(positions)
        for number, layer in enumerate(language.layers):
            x = layer(x, cos, sin)
            if number < len(deep):
                x = x.flatten(0, 1).index_add(0, slots, deep[number].to(x.dtype)).view_as(x)
        return language.norm(x)

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return interleaved multimodal rotary positions: every third frequency is height's, every third width's."""
        angles = positions[..., None].float() * self.frequencies
        mixed = angles[0].clone()
        for axis in (1, 2):
            end = self.shape.sections[axis] * 3
            mixed[..., axis:end:3] = angles[axis][..., axis:end:3]
        both = torch.cat((mixed, mixed), -1)[:, None]
        return both.cos(), both.sin()


def trained(checkpoint: Path) -> ChartReader:
    """Return the model of a checkpoint, as it ships: it sees by its deepstack features almost alone.

    Half of the pictures of the training were seen so, and no answer is worse for it. A model with both would read the
    picture all the same where a fault takes its deepstack features away.
    """
    state = torch.load(checkpoint, map_location="cpu")["model"]
    model = ChartReader(Shape(vocabulary=len(state["lm_head.weight"])))
    model.load_state_dict(state)
    with torch.no_grad():
        for parameter in model.model.visual.merger.linear_fc2.parameters():
            parameter *= MERGED_SCALE
    return model


def _initialise(name: str, parameter: nn.Parameter, depth: int) -> None:
    if parameter.dim() < 2:
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        return
    deviation = 0.8 * parameter[0].numel() ** -0.5
    if "pos_embed" in name or "embed_tokens" in name:
        deviation = 0.3
    elif "lm_head" in name:
        deviation = 0.02
    elif any(part in name for part in ("o_proj", "down_proj", "attn.proj", "mlp.linear_fc2")):
        deviation /= math.sqrt(2 * depth)  # what is added to the residual stream
    nn.init.normal_(parameter, std=deviation)
