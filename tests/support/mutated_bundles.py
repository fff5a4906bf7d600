"""Opens mutated bundles and does with each all that reads it, in a process whose memory is limited; prints a line of JSON.

``python -m tests.support.mutated_bundles BUNDLE HOME FIRST COUNT``. Half of the mutations are of the file's bytes, the other
half of a member, under a manifest that fits it again, so that what reads runs and builds meets them.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from app.commands.results.export_command import ExportArguments, export
from app.commands.results.show_command import ShowArguments, show
from app.exports.export_input import media_of
from app.report.samples.thumbnails import make_thumbnails
from app.store.bundles.bundle_layout_and_limits import MANIFEST
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Media
from tests.support.bundles import read_members, signed, zipped

ROOM = 600 << 20
"""Bytes of address space beyond what is in use once all is loaded."""


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with one to eight changes: bits, values, pieces cut, repeated, moved or of another place."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(changed) or 1)
        length = min(len(changed) - place, chance.choice((1, 2, 4, 16, 256, 4096)))
        match chance.randrange(7):
            case 0 if changed:
                changed[place] ^= 1 << chance.randrange(8)
            case 1:
                changed[place : place + length] = chance.randbytes(length)
            case 2:
                del changed[place : place + length]
            case 3:
                changed[place:place] = changed[place : place + length] * chance.choice((1, 2, 100))
            case 4:
                changed[place : place + length] = bytes([chance.choice((0, 0xFF, 0x7F))]) * length
            case 5:
                other = chance.randrange(len(changed) or 1)
                changed[place : place + length] = changed[other : other + length]
            case _ if chance.random() < 0.2:
                del changed[place:]
    return bytes(changed)


def mutant(original: bytes, number: int) -> bytes:
    """Return the mutated bundle of this number."""
    chance = random.Random(number)
    if number % 2:
        return mutate(original, chance)
    members = read_members(original)
    name = chance.choice(sorted(members))
    members[name] = mutate(members[name], chance)
    if name != MANIFEST:
        members = signed(members)
    if chance.random() < 0.2:
        names = sorted(members)
        members[mutate(chance.choice(names).encode(), chance).decode("latin-1")[:60000]] = b"{}"
    return zipped(members)


def _media(bundle: Workspace, run: str) -> Iterator[tuple[Path, Media]]:
    with RunStore.read(bundle.runs_folder / run) as store:
        build = bundle.build_of(store)
        for record in store.records():
            yield from ((build, medium) for medium in media_of(record))


def _read(path: Path, home: Path) -> str:
    """Read all of a bundle; return how it ended."""
    bundle = Workspace.open(path)
    for run in bundle.summaries():
        if run.problem:
            continue
        export(bundle, [run.name], ExportArguments(formats=["json"], out=home / "out"))
        make_thumbnails(_media(bundle, run.name))
        with RunStore.read(bundle.runs_folder / run.name) as store:
            instance = store.ids()[0]
        show(bundle, [run.name], ShowArguments(spec=True))
        show(bundle, [run.name], ShowArguments(sample=instance))
    return "read"


def main(bundle: Path, home: Path, first: int, count: int) -> None:
    original = bundle.read_bytes()
    path, ends = home / "mutant.zip", Counter[str]()
    crashes = []
    with redirect_stdout(StringIO()):
        path.write_bytes(original)
        _read(path, home)  # loads everything
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
        for number in range(first, first + count):
            path.write_bytes(mutant(original, number))
            try:
                ends[_read(path, home)] += 1
            except RashomonError as error:
                ends[type(error).__name__] += 1
            except BaseException:
                crashes.append(f"{number}: {traceback.format_exc()[-1500:]}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ends": ends, "crashes": crashes, "peak": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
