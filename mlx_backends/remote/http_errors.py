"""HTTP errors of a provider: which are worth another try, and after how long, and which are final."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from mlx_backends.remote.finish_reasons import REFUSED
from mlx_backends.remote.remote_errors import PermanentError, TransientError
from mlx_backends.remote.server_responses_and_errors import dig, error_message, parse_error


def classify_error(status: int, headers: Mapping[str, str], text: str) -> TransientError | PermanentError:
    """Return the error that an HTTP status, its headers and its body stand for."""
    error = parse_error(text)
    codes = {code for key in ("code", "type", "status") if isinstance(code := dig(error, key), str)}
    if "content_filter" in codes or dig(error, "innererror", "code") == "ResponsibleAIPolicyViolation":
        return PermanentError(REFUSED)
    reason = f"HTTP {status}: {error_message(error) or text}"
    if 300 <= status < 400:
        elsewhere = PermanentError(f"HTTP {status}: the server redirects elsewhere; name its actual address.")
        elsewhere.misdirected = True
        return elsewhere
    transient = status in (408, 409, 425, 429) or status >= 500
    if not transient or "insufficient_quota" in codes:
        refusal = PermanentError(reason)
        refusal.refuses_key = status in (401, 403) or "API_KEY_INVALID" in _details(error, "reason")
        refusal.misdirected = refusal.refuses_key or status in (404, 405, 410)
        return refusal
    failed = TransientError(reason)
    failed.overloaded = status in (429, 503, 529)
    # Servers also answer 500 to what they cannot do, such as reading an image; gateways' 502 and 504 pass.
    failed.in_reply = status in (500, 501)
    failed.retry_after = retry_after(headers, error)
    return failed


def retry_after(headers: Mapping[str, str], error: Any = None, now: float | None = None) -> float | None:
    """Return the seconds a server asks to wait.

    They are in ``retry-after-ms``, in ``retry-after`` (seconds or a date), or in Gemini's RetryInfo.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(header or "").timestamp()
        return max(0.0, date - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError, IndexError):
        pass
    delays = _details(error, "retryDelay")
    return next((delay for text in delays if (delay := _number(text.removesuffix("s")))), None)


def _details(error: Any, key: str) -> list[str]:
    """Return the values of ``key`` in the details of Gemini's errors."""
    details = dig(error, "details")
    values = [dig(detail, key) for detail in details] if isinstance(details, list) else []
    return [value for value in values if isinstance(value, str)]


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else max(0.0, number)


def reported_failure(response: dict[str, Any]) -> TransientError | PermanentError | None:
    """Return the failure that a response of HTTP 200 reports; None where it reports none.

    Gateways such as OpenRouter send an upstream status in ``code``. A message without that will be the same for the same request.
    """
    error = dig(response, "error") or dig(response, "choices", 0, "error")
    if not error and not any(response.get(key) for key in ("choices", "content", "candidates", "promptFeedback")):
        error = {key: response[key] for key in ("message", "detail") if isinstance(response.get(key), str)}
    message = error_message(error)
    if not message:
        return None
    status = dig(error, "code")
    if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
        return classify_error(status, {}, json.dumps({"error": error}))
    return PermanentError(f"the server reports an error: {message}")
