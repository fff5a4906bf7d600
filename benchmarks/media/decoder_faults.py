"""Programming errors in decoders, such as a library's changed function: never a property of the medium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from benchmarks.errors import MediaError

_WRONG_CALL = re.compile(r"(unexpected|invalid|multiple values for|missing .*|positional|keyword|required) .*argument")


def is_decoder_fault(error: Exception) -> bool:
    """Return whether ``error`` comes from the decoder's code rather than from the bytes that it reads.

    Those are missing modules, names and functions, and calls with arguments that a function does not take. Hostile bytes make
    parsers raise any other exception, and skip the statements that set a variable.
    """
    if isinstance(error, AttributeError):
        return isinstance(error.obj, ModuleType | type)
    if isinstance(error, TypeError):
        return _WRONG_CALL.search(str(error)) is not None
    return isinstance(error, NameError | ImportError) and not isinstance(error, UnboundLocalError)


@contextmanager
def refusing_bytes(name: str, reason: str) -> Iterator[None]:
    """Raise MediaError for whatever a decoder raises for hostile bytes of the medium ``name``, but not for its own faults."""
    try:
        yield
    except (MediaError, MemoryError):
        raise
    except Exception as error:
        if is_decoder_fault(error):
            raise
        raise MediaError(name, reason) from error
