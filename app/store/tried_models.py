"""Models tried on a question set: its incumbent and its rule, and every model tried, in order.

They are in ``tried.json`` in the set's folder. Claims about one model are corrected for all that were tried, so a model counts
even after its runs were deleted; the order is that of the list, since a clock may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from app.store.file_locks import FileLock
from benchmarks.errors import BusyError, NoAccessError, StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import canonical_json

_FILE = "tried.json"
_LARGEST = 16 << 20
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class TriedModels:
    """The memory of a set.

    Attributes:
        incumbent: The model that others are compared with, as in its spec; "" for the best so far.
        trust: The rule on what should win, a key of ``RULES``; "" if none was chosen.
        subjects: The keys of all models tried, with their prompts and settings, in the order of their first answers.
        decisions: The pairs of keys, candidate and incumbent, for which the held-out rows were opened.
    """

    incumbent: str = ""
    trust: str = ""
    subjects: tuple[str, ...] = ()
    decisions: tuple[tuple[str, str], ...] = ()


def read_tried(folder: Path) -> TriedModels:
    """Return what the set in ``folder`` remembers. Raises StoreError if it is damaged."""
    try:
        stored = parse_json(read_bytes(folder, _FILE, limit=_LARGEST), _LARGEST)
        decisions = tuple((str(candidate), str(incumbent)) for candidate, incumbent in stored["decisions"])
        subjects = tuple(dict.fromkeys(str(key) for key in stored["subjects"]))
        return TriedModels(str(stored["incumbent"]), str(stored["trust"]), subjects, decisions)
    except FileNotFoundError:
        return TriedModels()
    except (OSError, UnsafeFileError, OutsideJSONError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{folder / _FILE} is damaged, so it is not known how many models were tried; remove it to start over."
        ) from error


def update_tried(folder: Path, change: Callable[[TriedModels], TriedModels]) -> TriedModels:
    """Replace what a set remembers by what ``change`` makes of it, and return that. Raises StoreError."""
    with _locked(folder):
        before = read_tried(folder)
        after = change(before)
        if after != before:
            try:
                replace_file(folder, _FILE, canonical_json(asdict(after)).encode("utf-8", "backslashreplace"))
            except OSError as error:
                raise NoAccessError(
                    f"cannot write {folder / _FILE}: {error.strerror}; make room or permit it."
                ) from error
        return after


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with FileLock(folder / "tried.lock") as lock:
        if not lock.acquire("rashomon try", patience=_PATIENCE):
            raise BusyError(f"another process holds {lock.path}; try again when it has ended.")
        yield
