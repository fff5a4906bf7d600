"""Untrusted JSON: every fault raises the same error type, and nothing else is raised."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.untrusted.safe_json import MAX_DEPTH, OutsideJSONError, parse_json, read_json_file

WRONG = {
    "empty": "",
    "word": "label",
    "open brackets": "[" * 1_500,
    "very many open brackets": "[" * 200_000,
    "deep list": "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    "deep object": '{"a":' * 500 + "1" + "}" * 500,
    "deep beside flat": "[[1], " + "[" * 150 + "]" * 150 + "]",
    "NaN": '{"score": NaN}',
    "infinity": "[-Infinity]",
    "float without bound": "[1e999]",
    "integer without bound": "[" + "9" * 5_000 + "]",
    "integer that no float holds": "[" + "9" * 400 + "]",
    "two values": "{} {}",
    "raw line break": '{"label": "a\nb"}',
    "no UTF-8": b'{"label": "\xff"}',
    "byte order mark in text": "\ufeff{}",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_every_fault_raises_one_error_type(text: str | bytes) -> None:
    with pytest.raises(OutsideJSONError):
        parse_json(text)


def test_a_text_over_the_limit_is_not_parsed() -> None:
    assert parse_json("[1]", max_size=3) == [1]
    with pytest.raises(OutsideJSONError):
        parse_json("[11]", max_size=3)


def test_strings_and_width_do_not_count_as_depth() -> None:
    wide = {"text": "[" * 5_000, "rows": [{"a": [1.5, None]} for _ in range(1_000)]}
    assert parse_json(json.dumps(wide)) == wide
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert parse_json(b'\xef\xbb\xbf{"a": "\xc3\xa9"}') == {"a": "é"}


@given(st.text(alphabet='[]{}",:0123456789.eE-\\u truefalsnN', max_size=80) | st.binary(max_size=40))
def test_no_text_raises_anything_else(text: str | bytes) -> None:
    with suppress(OutsideJSONError):
        json.dumps(parse_json(text), allow_nan=False)


def test_special_files_are_refused_immediately(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("[" + "1," * 100 + "1]")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "large"):
        with pytest.raises(OutsideJSONError):
            read_json_file(path, max_bytes=100)
    for path, error in ((tmp_path / "none", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error):
            read_json_file(path)
    assert len(read_json_file(tmp_path / "large")) == 101
