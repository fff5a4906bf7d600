"""ReplyCache: answers kept by what was asked of whom, so that nothing is paid for or computed twice."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path

from benchmarks.base import Generation, digest
from benchmarks.untrusted.safe_files import UnsafeFileError, check_database
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

_log = logging.getLogger("rashomon.replies")
_SCHEMA = "CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID"


class ResponseCache:
    """Replies in an SQLite file; any number of threads and processes may share it.

    ``who`` is one string for all that answers (engine, model, server ...), ``digest`` a request's. Of an answer its text,
    finish reason and token counts are kept, never an error. A file that cannot be written or read costs no answer: it
    is said once, and from then on less is kept, or nothing.
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

    def get(self, who: str, digest: str) -> Generation | None:
        """The reply kept for a request, with ``calls`` 0 and no tokens used; its ``request_id`` is empty."""
        with self._lock:
            if self._database is None:
                return None
            try:
                row = self._database.execute("SELECT body FROM reply WHERE key = ?", (_key(who, digest),)).fetchone()
            except sqlite3.Error as error:
                self._warn(error)
                return None
        return None if row is None else _generation(row[0])

    def put(self, who: str, digest: str, generation: Generation) -> None:
        """Keep a reply; the first one that was kept for a request stays."""
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
                self._database.execute("INSERT OR IGNORE INTO reply VALUES (?, ?)", (_key(who, digest), body))
            except sqlite3.Error as error:
                self._warn(error)

    def close(self) -> None:
        """Let go of the file; what is put afterwards is not kept."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                database.close()

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("replies cannot be kept in %s (%s); the run goes on without.", self._path.name, error)


def _key(who: str, asked: str) -> str:
    return digest([who, asked])


def _generation(body: str) -> Generation | None:
    """What was kept, or None where the file holds something else."""
    try:
        kept = parse_json(body)
    except OutsideJSONError:
        return None
    match kept:
        case {"text": str(text), "finish_reason": "stop" | "length" as reason}:
            return Generation("", text, reason, prompt_tokens=0, completion_tokens=0, calls=0)
    return None
