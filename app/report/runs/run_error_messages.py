"""Messages of a run's errors: what a server or an engine says most often."""

from __future__ import annotations

from app.store.run_store import RunStore

_MOST = 3
_CHARACTERS = 200


def error_lines(store: RunStore) -> list[str]:
    """Return a line for each of the most frequent messages of a run's errors; their text is the server's own, so untrusted."""
    return [
        f"{count} {'error' if count == 1 else 'errors'}: {_bounded(message)}"
        for message, count in store.frequent_errors(_MOST)
    ]


def _bounded(message: str) -> str:
    return message if len(message) <= _CHARACTERS else f"{message[: _CHARACTERS - 1]}…"
