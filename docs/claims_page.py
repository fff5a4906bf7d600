"""The page "Simulated studies": rates of false claims of `rashomon compare` and `recommend`, where the truth is known.

``.venv/bin/python docs/claims_page.py [STUDIES] [COMMANDS]`` writes docs/claims.md from so many studies of each kind at the level
of tables, and so many at the level of commands.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from docs.claim_rates import ROWS, Tally
from docs.command_studies import APART, ROOT, Commands
from docs.simulated_readers import Random
from docs.study_kinds import (
    POWER_PAGES,
    Events,
    Open,
    equal_study,
    mirrored_study,
    open_tables,
    policy_study,
    power_study,
    threshold_study,
    unequal_study,
)

PAGE = ROOT / "docs" / "claims.md"
REFERENCE = "*Reference. New here? [Three paths](pages.md).*"


Kind = Callable[[Random, Open], Events]
KINDS: Mapping[str, Kind] = {
    "equal": equal_study,
    "mirrored": mirrored_study,
    "unequal": unequal_study,
    "threshold": threshold_study,
    "policy": policy_study,
}


def simulate_tables(studies: int, seed: int = 1) -> Tally:
    """Return the tally of so many studies of each kind at the level of tables."""
    tally = Tally()
    for kind, (name, run) in enumerate(KINDS.items()):
        for number in range(studies):
            tally.add(run(np.random.default_rng((seed, kind, number)), open_tables))
            _progress(name, number, studies)
    for number in range(studies):
        random = np.random.default_rng((seed, len(KINDS), number))
        tally.add(power_study(random, lambda *given: open_tables(*given, pages=POWER_PAGES)))
        _progress("power", number, studies)
    return tally


def simulate_commands(studies: int, seed: int = 2) -> Tally:
    """Return the tally of so many studies at the level of commands, of each kind in turn."""
    tally, kinds = Tally(), [name for name in KINDS if name != "mirrored"]
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"XDG_STATE_HOME": folder}):
        level = Commands(Path(folder))
        run: dict[str, Kind] = {**KINDS, "unequal": partial(unequal_study, cut_off_counts=False)}
        for number in range(studies):
            level.in_process = number % APART > 0
            tally.add(run[kinds[number % len(kinds)]](np.random.default_rng((seed, number)), level.open))
            level.clear()
            _progress("commands", number, studies)
    return tally


def _progress(name: str, number: int, of: int) -> None:
    if (number + 1) % 100 == 0:
        print(f"{name}: {number + 1} of {of}", file=sys.stderr)


REQUIREMENTS = {
    "a": "equal models are told apart",
    "b": "the sign of a difference is wrong",
    "c": "a run at the margin is put on one side of it",
    "d": "a model that is as good as a policy beats it",
    "e": "of studies with twice an oracle's half-width decide",
}
_METHOD = (
    "**How it was simulated**: `docs/claims_page.py` draws answers of known truth, and gives them to the code of the commands.\n",
    "- 20 to 60 pages with 2 to 10 questions each, under CMC-Bench's conditions; two to four models. The rates of reading the "
    "image and the text, of following each under conflict, of flagging and of inventing are random. Reading and acting have "
    "normal difficulties: .2 to .5 of their variance is the page's, in part shared by the models. Borrowed pictures are those of "
    "another page.",
    "- An answer is empty (1%), cut off (1%), undecided (.8%) or failed (.2%); each hard source adds twice as much.",
    "- The truth is the generator's population value, exact by enumeration; for `compare`, which counts what both runs have "
    "labelled, of a population of 300,000 questions in each of 40 worlds, where differences below .3 points count neither way.",
    "- The margin is 3 points. For power it is twice the half-width of an oracle's interval, and the models are equal; for "
    "`compare` they are that far apart. The oracle knows the variance over 400 other studies of 40 pages with the same models; "
    "its half-width takes in the share of answers without a known outcome, which `recommend` counts against each run.",
    "- Commands: 20 pages with 3 questions each, built from a CSV with the column `document`; answers in words, labelled by "
    "`match`, in run folders. For {apart} of the {commands} studies, `rashomon recommend --json` in a process of its own printed "
    "the same.",
)


def page(tables: Tally, commands: Tally, studies: int, number: int, minutes: float) -> str:
    """Return the page."""
    lines = [
        "# Simulated studies: how often is a claim false?",
        "",
        REFERENCE,
        "",
        f"Rates of studies with a false claim, of {studies:,} studies of each kind in memory and {number:,} in all through the "
        "commands. In brackets: the one-sided 95% limit (Clopper and Pearson 1934), upper for false claims, lower for power. "
        "**met**: the upper limit is within the requirement; **rate only**: the rate is, its limit is not.",
        "",
        *(_answer(letter, tables, commands) for letter in REQUIREMENTS),
        "",
        "| claim | required | tables | commands | met |",
        "|---|---|---|---|---|",
        *(row.line(tables, commands) for row in ROWS),
        "",
        *(line.format(apart=math.ceil(number / APART), commands=number) for line in _METHOD),
        "",
        f"`.venv/bin/python docs/claims_page.py {studies} {number}` writes this page, in {minutes:.0f} minutes.",
        "",
    ]
    return "\n".join(lines)


def _answer(letter: str, tables: Tally, commands: Tally) -> str:
    """Return the line on a requirement: whether all of its rows meet it, and the worst ones."""
    rows = [row for row in ROWS if row.claim.startswith(f"({letter})")]
    levels = [(row, tally) for row in rows for tally in (tables, commands) if tally.studies[row.key]]
    verdicts = Counter(row.verdict(tally) for row, tally in levels)
    failed = [f"{row.short}: {row.cells(tally)}" for row, tally in levels if row.verdict(tally) == "no"]
    state = "not met" if failed else "met" if verdicts["yes"] == len(levels) else "met by the rates"
    limit = f"at {'least' if letter == 'e' else 'most'} {rows[0].limit:.1%}".replace(".0%", "%")
    worst = (min if letter == "e" else max)(levels, key=lambda pair: pair[1].rate(pair[0].key))
    detail = "; ".join(failed) or f"the worst: {worst[0].cells(worst[1])}"
    return f"- ({letter}) {REQUIREMENTS[letter]}, {limit}: **{state}** ({detail})."


def main(studies: int = 2000, commands: int = 500) -> None:
    """Simulate, and write the page."""
    started = time.monotonic()
    by_commands = simulate_commands(commands)
    by_tables = simulate_tables(studies)
    minutes = (time.monotonic() - started) / 60
    PAGE.write_text(page(by_tables, by_commands, studies, commands, minutes), "utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
