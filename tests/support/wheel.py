"""Contents and size of a wheel: ``python -m tests.support.wheel FILE`` prints them, and fails if it is too large.

It needs the standard library alone, so that the workflows run it before anything is installed.
"""

from __future__ import annotations

import sys
import zipfile
from collections import Counter
from pathlib import Path

MAX_BYTES = 60 * 10**6
FOLDERS = {"app", "assets", "benchmarks", "judges", "mlx_backends", "rashomon"}


def sizes(wheel: Path) -> Counter[str]:
    """Return the compressed bytes of each folder at a wheel's top; of ``assets``, those of each folder in it."""
    counts: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for file in archive.infolist():
            parts = file.filename.split("/")
            depth = 2 if parts[0] == "assets" and len(parts) > 2 else 1
            counts["/".join(parts[:depth])] += file.compress_size
    return counts


def main() -> None:
    wheel = Path(sys.argv[1])
    for folder, count in sizes(wheel).most_common():
        print(f"{count / 1e6:8.2f} MB  {folder}")
    size = wheel.stat().st_size
    print(f"{size / 1e6:8.2f} MB  {wheel.name}; the limit is {MAX_BYTES / 1e6:.0f} MB")
    sys.exit(size >= MAX_BYTES)


if __name__ == "__main__":
    main()
