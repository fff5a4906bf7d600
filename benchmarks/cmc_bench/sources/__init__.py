"""The sources of rows, dispatched by source name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.cmc_bench.sources import chartqa, mmmu, own_rows
from benchmarks.cmc_bench.sources.base import Reader, SourceRow
from benchmarks.rows.files import SkippedRow

_READERS: Mapping[str, Reader] = {"chartqa": chartqa.read, "mmmu": mmmu.read, "rows": own_rows.read}


def read_source(name: str, place: str) -> Iterator[SourceRow | SkippedRow]:
    """Return the rows of source ``name`` (not ``released``) in the folder, file or Hub data set ``place``.

    Raises SourceError if ``place`` does not exist or has an unknown layout.
    """
    return _READERS[name](place)
