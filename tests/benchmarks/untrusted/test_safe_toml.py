"""Untrusted TOML: every fault is one type of error, and a small file takes little time and memory."""

from __future__ import annotations

import time
from contextlib import suppress
from time import process_time

import pytest

from benchmarks.untrusted.safe_toml import OutsideTOMLError, parse_toml

LONG_KEYS = (
    "a" + ".a" * 50_000 + " = 1",
    "[" + "a . " * 50_000 + "a]",
    'x = { "b c"' + ".'d.e'" * 50_000 + " = 1 }",
    "'a'" + '."\\"b"' * 50_000 + " = 1",
)


@pytest.mark.parametrize("text", LONG_KEYS, ids=("bare", "table", "inline", "quoted"))
def test_a_key_of_many_parts_is_refused_at_once(text: str) -> None:
    start = time.thread_time()
    with pytest.raises(OutsideTOMLError):
        parse_toml(text.encode())
    assert time.thread_time() - start < 1


@pytest.mark.parametrize(
    "data", [b"a = [" * 5_000, b"a = {b = " * 5_000, b"\xff", b"a = 1\na = 2", b"= 1", b"a = " + b"9" * 5_000]
)
def test_every_fault_is_one_type_of_error(data: bytes) -> None:
    with pytest.raises(OutsideTOMLError):
        parse_toml(data)


def test_specs_and_prompts_are_read_as_they_are() -> None:
    text = 'model = ["a.b/c.d"]\n[decoding]\n"top_p" = 0.5\nx.y."z.w" = "..... 1.2.3 www.a.b.c.d.e.f"\n'
    assert parse_toml(text.encode()) == {
        "model": ["a.b/c.d"],
        "decoding": {"top_p": 0.5, "x": {"y": {"z.w": "..... 1.2.3 www.a.b.c.d.e.f"}}},
    }


@pytest.mark.parametrize("text", ['name = "{}"', "{}", '"\\"' + "{}"])
@pytest.mark.parametrize("piece", ["n", '\\"', "a.", "' ", "- "])
def test_long_texts_are_searched_in_linear_time(text: str, piece: str) -> None:
    data = text.replace("{}", piece * 60_000).encode()
    start = process_time()
    with suppress(OutsideTOMLError):
        parse_toml(data)
    assert process_time() - start < 3
