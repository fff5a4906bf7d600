"""The sources of retrieval logs, dispatched by source name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.retrieval.retrieval_log_row import LogRow, Reader
from benchmarks.retrieval.sources import misleading_chartqa, retrieval_log_file
from benchmarks.rows.files import SkippedRow

_READERS: Mapping[str, Reader] = {"log": retrieval_log_file.read, "misleading-chartqa": misleading_chartqa.read}

NAMES = tuple(_READERS)


def read_source(name: str, place: str, cluster: str = "", mapping: str = "") -> Iterator[LogRow | SkippedRow]:
    """Return the rows of source ``name`` in a file or folder.

    ``cluster`` is the key of a log that names its documents, ``mapping`` the text of ``--map``. Raises SourceError and
    SpecError.
    """
    return retrieval_log_file.read(place, cluster, mapping) if name == "log" else _READERS[name](place)
