"""Passages as cells and keys hold them: a text, a list of texts or of objects, or a list that is written as text."""

from __future__ import annotations

from benchmarks.rows.placeholder_texts import is_placeholder
from benchmarks.rows.reader_types import RowProblem, parse_literal

NOT_A_LIST = "passages and images are lists of texts"

_LONGEST_LIST = 1 << 20
_TEXT_KEYS = ("text", "passage", "content", "page_content")


def passage_texts(value: object) -> tuple[str, ...]:
    """Return the passages of a cell or key, without blanks and placeholders. Raises RowProblem for values that are no texts."""
    texts = []
    for item in _flat(value):
        text = next((item[key] for key in _TEXT_KEYS if key in item), None) if isinstance(item, dict) else item
        if not isinstance(text, str):
            raise RowProblem(NOT_A_LIST)
        if text.strip() and not is_placeholder(text):
            texts.append(text)
    return tuple(texts)


def _flat(value: object) -> list[object]:
    """Return the items of a list, and of a list that is written as the text of one of them."""
    if isinstance(value, str):
        value = _list(value)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            value = _list(value[0])
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _list(text: str) -> object:
    """Return the list of texts that ``text`` writes as JSON or Python does; the text itself if it is none."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")) or len(stripped) > _LONGEST_LIST:
        return text
    value = parse_literal(stripped)
    return value if isinstance(value, list) and all(isinstance(item, str | dict) for item in value) else text
