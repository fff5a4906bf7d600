"""Ranges of the numbers that users set, each declared once for the command line, specs, the Python API and forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from benchmarks.errors import SpecError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationInfo
    from pydantic_core import CoreSchema

STORED = "stored"
"""The context in which a spec is validated that an earlier release has stored."""

TYPED = "typed"
"""The context in which values are validated that are typed into a form: text."""

ANY = (-math.inf, math.inf)


@dataclass(frozen=True)
class NumberRange:
    """Range of a number from ``low`` to ``high``; as a pydantic annotation it validates that number.

    Attributes:
        whole: True for whole numbers.
        above: True if ``low`` itself is too small.
        below: True if ``high`` itself is too large.
        among: The only numbers that are allowed; empty for all of the range.
        stored: The range in specs that earlier releases have stored; None for the same one.
    """

    low: float
    high: float
    whole: bool = False
    above: bool = False
    below: bool = False
    among: tuple[int, ...] = ()
    stored: tuple[float, float] | None = None

    def __str__(self) -> str:
        if self.among:
            return " or ".join((", ".join(map(str, self.among[:-1])), str(self.among[-1])))
        start = f"above {_shown(self.low)}" if self.above else f"from {_shown(self.low)}"
        end = f"below {_shown(self.high)}" if self.below else f"to {_shown(self.high)}"
        joint = " and " if self.above and self.below else " "
        return f"a {'whole ' * self.whole}number {start}{joint}{end}"

    def holds(self, value: Any, *, stored: bool = False) -> bool:
        """Return whether a value is a number of this range; ``stored`` is whether an earlier release has stored it."""
        if isinstance(value, bool) or not issubclass(type(value), Integral if self.whole else Real):
            return False
        if stored and self.stored is not None:
            return bool(self.stored[0] <= value <= self.stored[1])
        if self.among:
            return value in self.among
        return bool(
            (self.low < value if self.above else self.low <= value)
            and (value < self.high if self.below else value <= self.high)
        )

    def parse(self, text: str) -> float | None:
        """Return the number that ``text`` writes; None if it writes none of the kind."""
        try:
            return int(text) if self.whole else float(text)
        except ValueError:
            return None

    def check(self, key: str, value: float | None) -> None:
        """Raise SpecError if ``value``, which is called ``key``, is neither a number of this range nor None."""
        if value is not None and not self.holds(value):
            raise SpecError(f"{key} = {shortened(value)}: give {self}.")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema

        def validated(value: Any, info: ValidationInfo) -> Any:
            if info.context == TYPED and isinstance(value, str):
                value = self.parse(value)
            if not self.holds(value, stored=info.context == STORED):
                raise PydanticCustomError("number_range", "{advice}", {"advice": f"give {self}"})
            return value

        return core_schema.with_info_before_validator_function(validated, handler(source))


def shortened(value: object, limit: int = 200) -> str:
    """Return a value as a message shows it."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[:limit]}…"


def _shown(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _whole(low: int, high: int, stored: tuple[float, float] | None = None) -> NumberRange:
    return NumberRange(low, high, whole=True, stored=stored)


_PART = NumberRange(0, 1, above=True, below=True)

# The choice of examples
LIMIT = _whole(1, 1_000_000_000, ANY)
SEED = _whole(0, 2**32 - 1, ANY)

# Decoding
MAX_TOKENS = _whole(1, 1_000_000, (1, math.inf))
TEMPERATURE = NumberRange(0, 10)
TOP_P = NumberRange(0, 1, above=True)
MAX_PIXELS = _whole(1024, 1_000_000_000, (1024, math.inf))
SAMPLES = _whole(2, 100)
REPEATS = _whole(1, 100)
KV_BITS = NumberRange(4, 8, whole=True, among=(8, 4))

# Execution
RESTARTS = _whole(0, 100, ANY)
KEEP = _whole(0, 1_000_000)
UNTIL_WIDTH = _PART

# Remote engines
TOKEN_CEILING = _whole(1, 10**15, (1, math.inf))
COST_CEILING = NumberRange(0, 1_000_000_000, above=True, stored=(0, math.inf))
PRICE = NumberRange(0, 1_000_000_000, stored=(0, math.inf))
CONCURRENCY = _whole(1, 256)
TIMEOUT = NumberRange(0, 3600, above=True)
ATTEMPTS = _whole(1, 100)

# Training
RANK = _whole(1, 4096)
ALPHA = NumberRange(0, 1_000_000, above=True, stored=(0, math.inf))
DROPOUT = NumberRange(0, 1, below=True)
BATCH_SIZE = _whole(1, 4096)
BETA = NumberRange(0, 1_000_000, above=True, stored=(0, math.inf))
LEARNING_RATE = NumberRange(0, 1000, above=True, stored=(0, math.inf))
WARMUP = NumberRange(0, 10_000_000, stored=(0, math.inf))
EPOCHS = NumberRange(0, 10_000, above=True)
STEPS = _whole(1, 10_000_000)
MAX_LENGTH = _whole(16, 10_000_000, (16, math.inf))
VALIDATION_SHARE = NumberRange(0, 1, below=True)
ROWS = _whole(1, 1_000_000_000, (1, math.inf))
INTERVAL = _whole(1, 10_000_000, (1, math.inf))
"""The number of updates between two validations or checkpoints."""
PATIENCE = _whole(1, 1_000_000)
"""The number of validations without a lower loss after which a training ends."""

# Builds
PER_STRATUM = _whole(1, 1_000_000_000)
CELLS = _whole(1, 4096)
REVIEW_SHARE = NumberRange(0, 1, above=True)
REVIEWERS = _whole(1, 1000)
WEIGHT_BITS = NumberRange(2, 8, whole=True, among=(2, 3, 4, 6, 8))

# Comparisons
MARGIN = _PART
ERRORS = _whole(0, 1_000_000_000)
"""The number of errors among the answers that a gate accepts."""
WIDTH = _PART
CONFLICT_SHARE = NumberRange(0, 1)
MISTAKE = NumberRange(0, 1_000_000_000)
"""The cost of a mistake."""
COST = NumberRange(0, 1_000_000_000, above=True)
"""The most memory, seconds or disk space of a recommended run."""
PROBES = _whole(0, 100_000)

WAIT = NumberRange(0, 1_000_000_000)
"""The longest wait for the device, in seconds."""

PORT = _whole(1, 65535)
