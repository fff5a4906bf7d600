"""YAML in front of Markdown, as the Hub's own library reads it."""

from __future__ import annotations

from typing import Any

from huggingface_hub import DatasetCard


def front_matter(card: str) -> dict[str, Any]:
    """Return the values in the front matter of a card."""
    values: dict[str, Any] = DatasetCard(card).data.to_dict()  # type: ignore[no-untyped-call]
    return values
