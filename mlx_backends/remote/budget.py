"""Budget: the ceiling on tokens and money, and what a request will use of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.base import JSONObject, Media, Request, Text
from benchmarks.errors import BudgetError, SpecError
from mlx_backends.base import MediaPath, no_media
from mlx_backends.remote.images import EncodedImages
from mlx_backends.remote.options import RemoteOptions

_BYTES_A_TOKEN = 3
_PIXELS_A_TOKEN = 750
"""Anthropic's documented formula; others take fewer for a large image, some small models many more."""

_TOKENS_A_MESSAGE = 8
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """What requests will use. ``cost`` is in the currency of the prices, None without both of them."""

    calls: int
    input_tokens: int
    output_tokens_at_most: int
    images: int
    cost: float | None

    def __str__(self) -> str:
        shown = f" ({self.images:,} images)" if self.images else ""
        told = f"{self.calls:,} calls of about {self.input_tokens:,} prompt tokens{shown}"
        told += f" and at most {self.output_tokens_at_most:,} completion tokens"
        return told if self.cost is None else f"{told}, which cost at most about {self.cost:.2f}"


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Tokens that one call may use: prompt, and completion at most."""

    prompt: int
    completion: int


NOTHING = RequestSize(0, 0)


def size(request: Request, images: EncodedImages) -> RequestSize:
    """What a request may use: text at 3 bytes a token, an image at 750 pixels a token, 8 tokens a message for its frame."""
    prompt = _TOKENS_A_MESSAGE * len(request.messages)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                prompt += -(-len(part.text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)
            elif part.modality == "image":
                prompt += -(-images.pixels(part, request.decoding.max_pixels) // _PIXELS_A_TOKEN)
    if isinstance(request.form, JSONObject):
        prompt += -(-len(json.dumps(request.form.schema())) // _BYTES_A_TOKEN)
    return RequestSize(prompt, request.decoding.max_tokens)


def estimate(requests: Iterable[Request], terms: RemoteOptions, media: MediaPath | None = None) -> UsageEstimate:
    """What ``requests`` will use if each is called once, in all; of images only the headers are read.

    ``media`` may be left out where the requests show none. Raises SpecError where the terms do not fit together.
    """
    budget, images = Budget(terms), EncodedImages(media or no_media)
    calls = prompt = completion = shown = 0
    for request in requests:
        needed = size(request, images)
        calls, prompt, completion = calls + 1, prompt + needed.prompt, completion + needed.completion
        shown += sum(isinstance(part, Media) for message in request.messages for part in message.parts)
    return UsageEstimate(calls, prompt, completion, shown, budget.cost(prompt, completion))


class Budget:
    """Keeps what is used, and what calls under way may use, below the terms' ceilings. Not safe for threads.

    Where prompts turn out longer than estimated, later estimates grow in proportion. What a server does not say is
    counted as estimated; a call that is lost on the way counts nothing. Raises SpecError for a ceiling on money
    without both prices.
    """

    def __init__(self, terms: RemoteOptions) -> None:
        prices = (terms.input_price, terms.output_price)
        if terms.max_cost is not None and None in prices:
            raise SpecError(
                "a ceiling on cost needs the input price and the output price; give both, for a million tokens."
            )
        if any(price is not None and not (math.isfinite(price) and price >= 0) for price in (*prices, terms.max_cost)):
            raise SpecError("a price or ceiling on cost is no amount of money; give numbers that are not negative.")
        self._terms = terms
        self._used = RequestSize(terms.spent_input, terms.spent_output)
        self._reserved = NOTHING
        self._ratio = 1.0

    def cost(self, prompt: int, completion: int) -> float | None:
        """What so many tokens cost; None without prices."""
        terms = self._terms
        if terms.input_price is None or terms.output_price is None:
            return None
        return (prompt * terms.input_price + completion * terms.output_price) / _MILLION

    def allows(self, needed: RequestSize) -> bool:
        """Whether a call that may use so much can begin now."""
        prompt = self._used.prompt + self._reserved.prompt + math.ceil(needed.prompt * self._ratio)
        completion = self._used.completion + self._reserved.completion + needed.completion
        terms = self._terms
        if terms.max_tokens is not None and prompt + completion > terms.max_tokens:
            return False
        cost = self.cost(prompt, completion)
        return terms.max_cost is None or cost is None or cost <= terms.max_cost

    def reserve(self, needed: RequestSize) -> RequestSize | None:
        """Set aside what a call may use, to be settled when it ends; None where it would pass a ceiling."""
        if not self.allows(needed):
            return None
        held = RequestSize(math.ceil(needed.prompt * self._ratio), needed.completion)
        self._reserved = RequestSize(self._reserved.prompt + held.prompt, self._reserved.completion + held.completion)
        return held

    def settle(self, needed: RequestSize, held: RequestSize, prompt: int, completion: int) -> None:
        """Put what a call has used in the place of what was set aside for it."""
        self._reserved = RequestSize(self._reserved.prompt - held.prompt, self._reserved.completion - held.completion)
        self._used = RequestSize(self._used.prompt + prompt, self._used.completion + completion)
        self._ratio = max(self._ratio, prompt / max(1, needed.prompt))

    def reached(self, needed: RequestSize) -> BudgetError:
        """The error that says which ceiling keeps a call that may use ``needed`` from beginning."""
        used, terms = self._used, self._terms
        cost = self.cost(used.prompt, used.completion)
        spent = f"{used.prompt:,} prompt and {used.completion:,} completion tokens are used"
        spent += "" if cost is None else f", at a cost of {cost:.4f}"
        whole = used.prompt + used.completion + math.ceil(needed.prompt * self._ratio) + needed.completion
        tokens = terms.max_tokens is not None and whole > terms.max_tokens
        ceiling = f"{terms.max_tokens:,} tokens" if tokens else f"a cost of {terms.max_cost}"
        return BudgetError(
            f"{spent}, and the next call could pass the ceiling of {ceiling}; what was answered is kept, "
            "and the same command with a higher ceiling goes on."
        )
