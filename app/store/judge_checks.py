"""Results of `rashomon judges check` on this machine, in a private file of the user's, one for each judge and set of answers."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.errors import StoreError
from benchmarks.stats.intervals import wilson
from benchmarks.untrusted import private_state
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import digest
from judges.examination.examination_result import interval, percent
from judges.examination.labelled_answers import labelled_set, set_digest

JUDGE_CHECKS_FILE = "judge-checks.json"

_MAX_CHECKS = 500
_MODEL = ("engine", "model", "weights", "adapter", "quantisation", "rubric")
"""The facts of a model judge's identity on which the result depends, beside the judge's id."""

_log = logging.getLogger("rashomon.judges")


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The agreement of the judge ``judge`` (an id) with a labelled set: ``right`` of its ``labelled`` verdicts on ``answers``.

    ``models`` is the digest of the models that judge, ``labelled_set`` that of the set, ``at`` the time in seconds since 1970.
    """

    judge: str
    models: str
    labelled_set: str
    at: float
    answers: int
    labelled: int
    right: int

    def __str__(self) -> str:
        share, of = wilson(self.right, self.labelled), f"{self.answers} labelled answers"
        if not self.labelled:
            agreement = f"gives no label on {of}"
        elif self.labelled == self.answers:
            agreement = f"agrees on {percent(share)} of {of} ({interval(share)})"
        else:
            agreement = (
                f"agrees on {percent(share)} of the {self.labelled} labels that it gives on {of} ({interval(share)})"
            )
        return f"{agreement}, checked {time.strftime('%Y-%m-%d', time.localtime(self.at))}"


def models_digest(identities: Iterable[Mapping[str, Any] | None]) -> str:
    """Return the digest of the identities of judges (:meth:`judges.rubric_judge.RubricJudge.identity`); None is a rule's."""
    return digest([[identity.get(name) for name in _MODEL] if identity else None for identity in identities])


def current_checks() -> list[JudgeCheck]:
    """Return the stored results on the labelled set of this version, the newest first."""
    checks = _read()
    current = set_digest(labelled_set()) if checks else ""
    return sorted((check for check in checks if check.labelled_set == current), key=lambda check: -check.at)


def find_check(judge: str, models: str) -> JudgeCheck | None:
    """Return the result of the judge with this id and these models; None if it was not checked on this machine."""
    return next((check for check in current_checks() if (check.judge, check.models) == (judge, models)), None)


def last_check(judge: str, models: str) -> float:
    """Return the time of the judge's last check on any answers, in seconds since 1970; 0 if there was none."""
    return max((check.at for check in _read() if (check.judge, check.models) == (judge, models)), default=0.0)


def save_check(check: JudgeCheck) -> None:
    """Store a result in place of an earlier one of the same judge, models and set. Raises StoreError."""
    with private_state.lock():
        others = [other for other in _read() if _key(other) != _key(check)]
        checks = [asdict(item) for item in (check, *others)][:_MAX_CHECKS]
        private_state.write(JUDGE_CHECKS_FILE, json.dumps(checks))


def _key(check: JudgeCheck) -> tuple[str, str, str]:
    return check.judge, check.models, check.labelled_set


def _read() -> list[JudgeCheck]:
    """Return all stored results, without damaged ones."""
    try:
        content = parse_json(private_state.read(JUDGE_CHECKS_FILE) or "[]")
    except (StoreError, OutsideJSONError) as error:
        _log.warning("the results of `rashomon judges check` are ignored: %s", error)
        return []
    return [check for row in content if (check := _parse(row))] if isinstance(content, list) else []


def _parse(row: Any) -> JudgeCheck | None:
    match row:
        case {
            "judge": str(),
            "models": str(),
            "labelled_set": str(),
            "at": int() | float() as at,
            "answers": int(answers),
            "labelled": int(labelled),
            "right": int(right),
        } if len(row) == 7 and 0 <= at <= time.time() + 1 and 0 <= right <= labelled <= answers:
            return JudgeCheck(**row)
    return None
