"""A conversation as the model reads it: the chat template, and a row of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.vocabulary import Media, Part, Text

IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}
{%- else %}
{%- for item in message.content %}
{%- if item.type == 'image' %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif 'text' in item %}{{- item.text }}
{%- endif %}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
PICTURE = Media("0" * 64, ".png")
"""A placeholder for a picture whose contents do not matter."""


@dataclass(frozen=True, slots=True)
class Row:
    """A training or test row: its kind, the prompt after the chat template, and the answer."""

    kind: str
    prompt: str
    answer: str


def chat(parts: Sequence[Part]) -> str:
    """Return the prompt that the chat template makes of one user turn of ``parts``."""
    content = "".join(part.text if isinstance(part, Text) else IMAGE for part in parts)
    return f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n"
