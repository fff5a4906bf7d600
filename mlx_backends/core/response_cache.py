"""Cache of generated responses, so that nothing is paid for or computed twice."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path

from benchmarks.untrusted.safe_files import UnsafeFileError, check_database
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import Generation, digest

_log = logging.getLogger("rashomon.replies")
_SCHEMA = "CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID"


class ResponseCache:
    """Responses in an SQLite file that any number of threads and processes may share.

    ``responder`` is one string that identifies what answers (engine, model, server ...), ``digest`` a request's. An answer's
    text, finish reason and token counts are stored, an error never. A file that cannot be written or read costs no answer: one
    warning is logged, and from then on less is cached, or nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._warned = False
        self._database: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_database(path.parent, path.name, write=True)
            self._database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except (OSError, UnsafeFileError, sqlite3.Error) as error:
            self._warn(error)

    def get(self, responder: str, digest: str) -> Generation | None:
        """Return the cached response to a request, with ``calls`` 0, no tokens used and an empty ``request_id``."""
        with self._lock:
            if self._database is None:
                return None
            try:
                row = self._database.execute(
                    "SELECT body FROM reply WHERE key = ?", (_key(responder, digest),)
                ).fetchone()
            except sqlite3.Error as error:
                self._warn(error)
                return None
        return None if row is None else _generation(row[0])

    def put(self, responder: str, digest: str, generation: Generation) -> None:
        """Cache a response, unless there is one for this request already."""
        if generation.finish_reason == "error":
            return
        body = json.dumps(
            {
                "text": generation.text,
                "finish_reason": generation.finish_reason,
                "prompt_tokens": generation.prompt_tokens,
                "completion_tokens": generation.completion_tokens,
            }
        )
        with self._lock:
            if self._database is None:
                return
            try:
                self._database.execute("INSERT OR IGNORE INTO reply VALUES (?, ?)", (_key(responder, digest), body))
            except sqlite3.Error as error:
                self._warn(error)

    def close(self) -> None:
        """Close the file; later responses are not cached."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                database.close()

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "responses cannot be cached in %s (%s); the run continues without the cache.", self._path.name, error
            )


def _key(responder: str, request_digest: str) -> str:
    return digest([responder, request_digest])


def _generation(body: str) -> Generation | None:
    """Return the cached response, or None where the file holds something else."""
    try:
        response = parse_json(body)
    except OutsideJSONError:
        return None
    match response:
        case {"text": str(text), "finish_reason": "stop" | "length" as reason}:
            return Generation("", text, reason, prompt_tokens=0, completion_tokens=0, calls=0)
    return None
