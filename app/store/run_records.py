"""Records of a run: its instances with their answers and verdicts, read page by page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.store.answer_sums import AnswerSums
from app.store.integrity import stored_meta
from app.store.integrity.row_digests import EMPTY
from app.store.verified_rows import Values
from benchmarks.vocabulary import Generation, Instance, Record

_READ_PAGE = 1024
"""The number of instances in memory at a time when all are read."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of consecutive instances, with the rows of their answers and of the verdicts on these by ordinal.

    ``bases`` are the answers of the siblings that the instances are judged by, by the siblings' ordinals.
    """

    instances: Sequence[Values]
    generations: Mapping[int, Sequence[Values]]
    verdicts: Mapping[int, Sequence[Values]]
    bases: Mapping[int | None, Generation]


class RunRecords(AnswerSums):
    """The part of a run's store that reads its instances and records."""

    def ids(self) -> list[str]:
        """Return the ids of all instances, in order."""
        return [str(name) for (name,) in self._rows("SELECT id FROM instance ORDER BY ordinal", ())]

    def instances_digest(self) -> str:
        """Return the sha256 over all instances, in order."""
        contents, last = hashlib.sha256(), -1
        query = f"SELECT ordinal, body FROM instance WHERE ordinal > ? ORDER BY ordinal LIMIT {_READ_PAGE}"
        while rows := self._rows(query, (last,)):
            for _, body in rows:
                contents.update(f"{len(body)} {body}".encode("utf-8", "surrogatepass"))
            last = rows[-1][0]
        return contents.hexdigest()

    def records(self, *, only: str | None = None, at: Sequence[int] | None = None) -> Iterator[Record]:
        """Yield every instance with its accepted answers and their verdicts, in order.

        ``only`` restricts them to the instance with this id, ``at`` to these ordinals. Raises DamagedError for a row that is not
        as it was written and, after the last record, if any row is missing.
        """
        for page in self.pages(only, at):
            for row in page.instances:
                yield self.record(page, row, self.instance(row))

    def record(self, page: Page, row: Values, instance: Instance) -> Record:
        """Return the record of a row of ``page.instances``, whose instance was parsed."""
        answers = tuple(self._parse_generations(instance.id, page.generations.get(row[0], ())))
        return Record(instance, answers, self.parse_verdicts(page.verdicts.get(row[0], ())), page.bases.get(row[5]))

    def pages(self, only: str | None = None, at: Sequence[int] | None = None) -> Iterator[Page]:
        """Yield the rows of :meth:`records`, with their digests verified, a page at a time."""
        where, values = "1", list[Any]()
        if only is not None:
            where, values = "r.id = ?", [only]
        elif at is not None:
            where, values = "r.ordinal IN (SELECT value FROM json_each(?))", [json.dumps(list(at))]
        last, before = -1, self._tallies()
        seen = {"instance": EMPTY, "generation": EMPTY, "verdict": EMPTY}
        while True:
            with self._snapshot():
                rest = f"WHERE {where} AND r.ordinal > ? ORDER BY r.ordinal LIMIT {_READ_PAGE}"
                rows = self._values("instance", rest, (*values, last), tally=seen)
                ids: dict[int, int] = {}
                generations = self._generation_rows({row[0]: row[1] for row in rows}, ids=ids, tally=seen)
                verdicts = self._verdict_rows(ids, tally=seen)
                bases = self._answers([row[5] for row in rows if row[5] is not None])
            if not rows:
                break
            last = self._last(rows, last)
            for row in rows:
                if row[4] and row[0] not in generations:
                    raise self.damaged("instance", row, "its answer is missing")
            yield Page(rows, generations, verdicts, bases)
        if only is None and at is None and before == self._tallies():  # otherwise another process wrote meanwhile
            self._compare(seen, before)

    def verify(self) -> None:
        """Read all instances, answers and verdicts. Raises DamagedError for a row that was altered or is missing."""
        for _ in self.pages():
            pass

    def engines(self) -> list[dict[str, Any]]:
        """Return every engine that answered in this run. Raises DamagedError."""
        rows = sorted(self._whole("engine"), key=lambda row: row["id"])
        return [self._parsed("engine", row, lambda row: stored_meta.engine_info(row["info"])) for row in rows]
