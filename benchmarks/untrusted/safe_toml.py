"""Parser of untrusted TOML (specs, prompt sets, settings) with bounded work and a single error type."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_PARTS = 20
"""The maximum number of parts of a dotted key. tomllib's time and memory grow with its square: 60 kB could take 14 GB."""

_LONG_KEY = re.compile(
    rb"""(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+|(?:"(?:[^"\\\n]|\\.){0,300}+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}"""
    % MAX_PARTS
)
"""A key that is too long. A word is matched from its beginning only, and a few letters of a quoted part, so that the search is
linear; a file of a megabyte holds few parts that are longer."""


class OutsideTOMLError(ValueError):
    """TOML that cannot be used; the message is the reason."""


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the values of a TOML file. Raises OutsideTOMLError for every fault."""
    if _LONG_KEY.search(data):
        raise OutsideTOMLError(f"a key has more than {MAX_PARTS} parts")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))  # Windows begins files with a byte order mark
    except UnicodeDecodeError as error:
        raise OutsideTOMLError("it is not text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise OutsideTOMLError(str(error)) from error
    except ValueError as error:  # Python reads no integer of more than 4,300 digits
        raise OutsideTOMLError("a number has thousands of digits") from error
    except RecursionError as error:
        raise OutsideTOMLError("it is nested too deeply") from error
