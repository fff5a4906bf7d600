"""Budget: the ceiling on tokens and money, and estimates of what a request will use of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.errors import BudgetError, SpecError
from benchmarks.vocabulary import JSONObject, Media, Request, Text
from mlx_backends.base import MediaPath, no_media
from mlx_backends.options import RemoteOptions
from mlx_backends.remote.endpoint_examination import examination_calls, has_pictures
from mlx_backends.remote.remote_media import EncodedMedia

_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 8
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """Estimated usage of requests. ``cost`` is in the currency of the prices, None without both of them."""

    calls: int
    input_tokens: int
    output_tokens_at_most: int
    media: int
    cost: float | None
    only_images: bool = True
    examination: int = 0
    """The calls among these that examine the server."""

    def __str__(self) -> str:
        media = f" ({self.media:,} {'images' if self.only_images else 'media'})" if self.media else ""
        usage = f"{self.calls:,} calls of about {self.input_tokens:,} prompt tokens{media}"
        usage += f" and at most {self.output_tokens_at_most:,} completion tokens"
        usage += f", {self.examination} calls of these to examine the server" if self.examination else ""
        return usage if self.cost is None else f"{usage}, which cost at most about {self.cost:.2f}"


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Tokens that one call may use: those of the prompt, and the most of the completion."""

    prompt: int
    completion: int


NO_TOKENS = RequestSize(0, 0)
_PROBE = RequestSize(170, 128)
"""About the size of a request to read a number in a picture."""


def request_size(request: Request, media: EncodedMedia) -> RequestSize:
    """Return what a request may use: 3 bytes of text a token, its media, and 8 tokens for each message's frame."""
    prompt = _TOKENS_A_MESSAGE * len(request.messages)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                prompt += -(-len(part.text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)
            else:
                prompt += media.tokens(part, request.decoding.max_pixels)
    if isinstance(request.form, JSONObject):
        prompt += -(-len(json.dumps(request.form.schema())) // _BYTES_A_TOKEN)
    return RequestSize(prompt, request.decoding.max_tokens)


def estimate_usage(
    requests: Iterable[tuple[Request, int]],
    options: RemoteOptions,
    media: MediaPath | None = None,
    *,
    examined: bool = False,
) -> UsageEstimate:
    """Return what ``requests`` will use in all if each is called once; of media only headers and sizes are read.

    With each request comes the number of tokens that its prompt will have besides. ``media`` may be left out where the requests
    show none. With ``examined``, the examination of the server and its spot checks are added. Raises SpecError for
    options that do not fit together.
    """
    budget, encoded = Budget(options), EncodedMedia(media or no_media)
    calls = prompt = completion = media_shown = 0
    only_images, pictured = True, 0
    for request, more in requests:
        needed = request_size(request, encoded)
        calls, prompt, completion = calls + 1, prompt + needed.prompt + more, completion + needed.completion
        shown = [part for message in request.messages for part in message.parts if isinstance(part, Media)]
        media_shown += len(shown)
        pictured += has_pictures(request)
        only_images &= all(part.modality == "image" for part in shown)
    examination = examination_calls(pictured) if examined and pictured else 0
    calls += examination
    prompt += examination * _PROBE.prompt
    completion += examination * _PROBE.completion
    cost = budget.cost(prompt, completion)
    return UsageEstimate(calls, prompt, completion, media_shown, cost, only_images, examination)


class Budget:
    """Usage so far, and the usage reserved for calls in progress, kept below the options' ceilings. Not thread-safe.

    Where prompts turn out longer than estimated, later estimates grow in proportion. What a server does not report is
    counted as estimated; a call that fails in transit counts nothing. Raises SpecError for a ceiling on money
    without both prices.
    """

    def __init__(self, options: RemoteOptions) -> None:
        prices = (options.input_price, options.output_price)
        if options.max_cost is not None and None in prices:
            raise SpecError(
                "a ceiling on cost needs the input price and the output price; give both, for a million tokens."
            )
        if any(
            price is not None and not (math.isfinite(price) and price >= 0) for price in (*prices, options.max_cost)
        ):
            raise SpecError("a price or ceiling on cost must be a number that is not negative.")
        self._options = options
        self._used = RequestSize(options.spent_input, options.spent_output)
        self._reserved = NO_TOKENS
        self._ratio = 1.0

    def cost(self, prompt: int, completion: int) -> float | None:
        """Return the cost of tokens; None without prices."""
        options = self._options
        if options.input_price is None or options.output_price is None:
            return None
        return (prompt * options.input_price + completion * options.output_price) / _MILLION

    def allows(self, needed: RequestSize) -> bool:
        """Return whether a call that may use ``needed`` can start now."""
        prompt = self._used.prompt + self._reserved.prompt + math.ceil(needed.prompt * self._ratio)
        completion = self._used.completion + self._reserved.completion + needed.completion
        options = self._options
        if options.max_tokens is not None and prompt + completion > options.max_tokens:
            return False
        cost = self.cost(prompt, completion)
        return options.max_cost is None or cost is None or cost <= options.max_cost

    def reserve(self, needed: RequestSize) -> RequestSize | None:
        """Reserve the usage of a call, to be settled when it ends; return None where it would exceed a ceiling."""
        if not self.allows(needed):
            return None
        reserved = RequestSize(math.ceil(needed.prompt * self._ratio), needed.completion)
        self._reserved = RequestSize(
            self._reserved.prompt + reserved.prompt, self._reserved.completion + reserved.completion
        )
        return reserved

    def settle(self, needed: RequestSize, reserved: RequestSize, prompt: int, completion: int) -> None:
        """Replace a call's reservation by its actual usage."""
        self._reserved = RequestSize(
            self._reserved.prompt - reserved.prompt, self._reserved.completion - reserved.completion
        )
        self._used = RequestSize(self._used.prompt + prompt, self._used.completion + completion)
        self._ratio = max(self._ratio, prompt / max(1, needed.prompt))

    def exceeded(self, needed: RequestSize) -> BudgetError:
        """Return the error that names the ceiling which keeps a call that may use ``needed`` from starting."""
        used_tokens, options = self._used, self._options
        cost = self.cost(used_tokens.prompt, used_tokens.completion)
        spent_note = f"{used_tokens.prompt:,} prompt and {used_tokens.completion:,} completion tokens are used"
        spent_note += "" if cost is None else f", at a cost of {cost:.4f}"
        total = used_tokens.prompt + used_tokens.completion + math.ceil(needed.prompt * self._ratio) + needed.completion
        tokens = options.max_tokens is not None and total > options.max_tokens
        ceiling = f"{options.max_tokens:,} tokens" if tokens else f"a cost of {options.max_cost}"
        return BudgetError(
            f"{spent_note}, and the next call could exceed the ceiling of {ceiling}; all answers are kept, "
            "and the same command with a higher ceiling resumes."
        )
