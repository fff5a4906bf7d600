"""An official code of our own for tests, in the form of CLASH's: the same names, other words."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from benchmarks.clash import clash_official_code

CLONE = os.environ.get("RASHOMON_CLASH_CODE", "")
"""The folder of a clone of the real code, for the tests that need one."""

NAMES = (
    "GENERATE_CONFLICTING_CAPTION_AND_ANSWER",
    "GENERATE_MCQA_ANSWERS",
    "JUDGE_PROMPT",
    "ATTRIBUTE_CHECK",
    "OBJECT_CHECK",
    "ANSWERS_CHECK",
    "QUESTION_CHECK",
)

OURS = "".join(f'{name} = """\n{name.lower()} in our words, {{braces}} and \\u2013.\n"""\n' for name in NAMES)


def text_of(name: str) -> str:
    """Return the text of one of the ``NAMES`` in ``OURS``."""
    return f"\n{name.lower()} in our words, {{braces}} and \u2013.\n"


def own_code(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = OURS) -> Path:
    """Write ``text`` as the prompts of a clone, which counts as the code as published until the test ends."""
    file = folder / clash_official_code.FILE
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    monkeypatch.setattr(clash_official_code, "SHA256", hashlib.sha256(file.read_bytes()).hexdigest())
    return folder
