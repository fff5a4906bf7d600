"""`python -m tests.soak HOURS`: play users on a workspace, and check invariants after every action.

Stops at the first violation, with the line that replays it; exit code 1. Every step is a line of JSON in FOLDER/log.jsonl.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.soak.actions import ACTIONS, draw
from tests.soak.commands import slowness
from tests.soak.ledger import Step
from tests.soak.load import loaded
from tests.soak.player import Player, prepare


def main() -> int:
    """Run the soak; return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__)
    parser.add_argument("hours", type=float, nargs="?", default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10**9, help="end after this many steps")
    parser.add_argument("--folder", type=Path, help="where homes and logs are; default: a new temporary folder")
    parser.add_argument("--only", default="", help="actions, separated by commas: " + ", ".join(ACTIONS))
    parser.add_argument("--go-on", action="store_true", help="count violations instead of stopping")
    parser.add_argument("--replay", type=Path, help="perform the steps of this log instead of drawn ones")
    parser.add_argument("--load", type=int, default=0, help="busy processes for some minutes of every ten")
    parser.add_argument("--fault", default="", help="plant a bug of tests/soak/planted_faults.py")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # under nohup, which its commands must not inherit
        signal.signal(signal.SIGHUP, lambda *_: None)
    with ExitStack() as stack:
        player = prepare(folder, options.seed, options.fault, stack)
        stack.enter_context(loaded(options.load))
        return _play(player, folder / "log.jsonl", options)


def _play(player: Player, log: Path, options: argparse.Namespace) -> int:
    end, counts, kinds = time.monotonic() + options.hours * 3600, Counter[str](), Counter[str]()
    only = tuple(filter(None, options.only.split(",")))
    steps = [*map(Step.parse, options.replay.read_text("utf-8").splitlines())] if options.replay else None
    number = failures = 0
    while time.monotonic() < end and number < (len(steps) if steps else options.steps):
        number += 1
        player.ledger.number = number
        step = steps[number - 1] if steps else draw(Random(f"{options.seed}/{number}"), player.ledger, only)
        begin = time.monotonic()
        results, violations = player.play(step)
        counts[step.action] += 1
        kinds.update(violation.partition(":")[0] for violation in violations)
        ends = [(result.code, result.seconds, result.megabytes, result.signalled) for result in results]
        line = step.line(
            step=number,
            seconds=round(time.monotonic() - begin, 1),
            load=round(slowness(), 1),
            ends=ends,
            violations=violations,
        )
        with log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        if violations:
            failures += 1
            _report(options, log, number, step, violations, [result.err[-1500:] for result in results])
            if not options.go_on:
                break
    summary = {
        "steps": number,
        "actions": dict(counts),
        "violations": dict(kinds),
        "steps with violations": failures,
    }
    (log.parent / "summary.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary))
    return 1 if failures else 0


def _report(
    options: argparse.Namespace, log: Path, number: int, step: Step, violations: list[str], errors: list[str]
) -> None:
    print(f"step {number} ({step.action}), seed {options.seed}:")
    for violation in violations:
        print(f"  {violation}")
    for error in filter(None, errors):
        print("  standard error: " + error.replace("\n", "\n    "))
    print(f"  again: head -n {number} {log} > steps.jsonl && python -m tests.soak --replay steps.jsonl", flush=True)


if __name__ == "__main__":
    sys.exit(main())
