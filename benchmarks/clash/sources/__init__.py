"""The sources of samples that are read from files, dispatched by source name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.clash.sources import clash_own_rows, clash_released, sugar_crepe
from benchmarks.clash.sources.clash_source_row import ClashSourceRow, Reader
from benchmarks.rows.files import SkippedRow

_READERS: Mapping[str, Reader] = {
    "published": clash_released.read,
    "sugar-crepe": sugar_crepe.read,
    "rows": clash_own_rows.read,
}


def read_source(name: str, place: str, seed: int) -> Iterator[ClashSourceRow | SkippedRow]:
    """Return the samples of source ``name``, which is not one of ``CONSTRUCTED``, in folder or file ``place``.

    ``seed`` settles the random choices of a source. Raises SourceError if ``place`` does not exist or has an unknown
    layout.
    """
    return _READERS[name](place, seed)
