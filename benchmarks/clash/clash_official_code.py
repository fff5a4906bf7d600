"""Prompts of CLASH's official code, read from the user's clone, since its repository has no licence and nothing of it is here.

The file is never imported or run: once its digest is the known one, the texts are its literals.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.untrusted.safe_files import read_regular

REPOSITORY = "tpopordanoska/clash"
COMMIT = "d9609c3178be1ab87151ce3668703f0eb2e7d6a6"
FILE = "src/models/prompts.py"
SHA256 = "f3d581c7c62b81acef10d4d12b73d2e8bb03886b32212772a688ea45095c4a15"

_LARGEST = 1 << 20


def read_prompts(clone: Path) -> Mapping[str, str]:
    """Return the prompts of the official code by their names in it. Raises SourceError if the clone has not that file."""
    try:
        data = read_regular(clone / FILE, limit=_LARGEST)
    except OSError as error:
        raise SourceError(f"{clone / FILE} cannot be read ({error.strerror}); {_ADVICE}") from error
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise SourceError(f"{clone / FILE} is another version than the one that Rashomon knows; {_ADVICE}")
    return {
        target.id: statement.value.value
        for statement in ast.parse(data).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


_ADVICE = f"clone {REPOSITORY} from GitHub, check out commit {COMMIT}, and name that folder with --official-code."
