"""The sources of rows, dispatched by source name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.cmc_bench.sources import chartqa, cmc_own_rows, mmmu
from benchmarks.cmc_bench.sources.cmc_source_row import Reader, SourceRow
from benchmarks.rows.files import SkippedRow

_READERS: Mapping[str, Reader] = {"chartqa": chartqa.read, "mmmu": mmmu.read}


def read_source(name: str, place: str, cluster: str = "", mapping: str = "") -> Iterator[SourceRow | SkippedRow]:
    """Return the rows of source ``name`` (not ``released``) in the folder, file or Hub data set ``place``.

    ``cluster`` is the column of the user's own rows that names their documents, if it is none of the known ones, and
    ``mapping`` the text of ``--map``. Raises SourceError if ``place`` does not exist or has an unknown layout, SpecError for
    another text.
    """
    return cmc_own_rows.read(place, cluster, mapping) if name == "rows" else _READERS[name](place)
