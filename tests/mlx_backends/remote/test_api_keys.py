"""Keys that are hidden from new processes, and still found in this one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from mlx_backends.remote.api_keys import find_key, hidden_from_processes, redact
from tests.support.remote import KEYS

NAME = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com:443"


def test_hidden_key_is_found_by_threads_and_not_by_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, KEYS[NAME])
    keys = list[str]()
    with hidden_from_processes((NAME, "NOT_SET")):
        thread = threading.Thread(target=lambda: keys.append(find_key(NAME, address=OPENAI)))
        thread.start()
        thread.join()
        child = subprocess.run(
            [sys.executable, "-S", "-c", "import os; print(sorted(os.environ))"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert KEYS[NAME] not in redact(f"the key {KEYS[NAME]}")
    assert keys == [KEYS[NAME]]
    assert NAME not in child.stdout
    assert os.environ[NAME] == KEYS[NAME]
