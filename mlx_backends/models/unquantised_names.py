"""Names of models: what is left of them without their quantisation."""

from __future__ import annotations

import re

_QUANTISATION = re.compile(
    r"(?i)[-_. ]+(?:(?:mx|nv)?fp\d+|bf16|f\d\d|float\d\d|int\d|q\d\w*|\d+[-_ ]?bits?|dwq)(?=$|[-_. ])"
)


def unquantised_name(name: str) -> str:
    """Return a model's name without its quantisation: the same for "X-4bit" and "X-bf16"."""
    return _QUANTISATION.sub("", name).strip("-_. ") or name
