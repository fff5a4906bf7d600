"""The clauses of an answer and what they state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from judges.cmc_rules.answer_clauses import Clause
from judges.cmc_rules.clause_statements import Place, Statement, conflicts, read_clause, refuses, revises
from judges.cmc_rules.reference_values import References
from judges.cmc_rules.value_mentions import Mention, find_mentions

BOTH_SOURCES = frozenset({"image", "text"})
_OPEN_END = re.compile(r"\b(?:is|the|of|an?|at|was|and|are|to|in|that|by|for|with|from)$")


@dataclass(frozen=True)
class Account:
    """The clauses of an answer and what they state."""

    references: References
    clauses: Sequence[Clause]
    mentions: Sequence[Sequence[Mention]]
    cut_off: bool
    revisions: Sequence[int]
    """The clauses that take something back."""
    refusals: Sequence[int]
    """The clauses that say that the question cannot be answered."""
    conflicts: Sequence[int]
    """The clauses that say that the sources conflict."""
    statements: Sequence[Statement]

    @property
    def commits(self) -> list[Statement]:
        """The statements that the answer itself makes."""
        return [s for s in self.statements if s.commits]

    @property
    def standing(self) -> list[Statement]:
        """The statements that are neither set aside nor made of a case that may not be so."""
        return [s for s in self.statements if s.standing and s.speaker != "if"]

    @property
    def reports(self) -> list[Statement]:
        """The statements that it says are a source's."""
        return [s for s in self.statements if s.speaker in BOTH_SOURCES]

    def holds(self, table: re.Pattern[str]) -> bool:
        """Return whether an entry of a table of cues occurs in a clause."""
        return any(c.holds(table) for c in self.clauses)


def read_account(clauses: Sequence[Clause], references: References, *, cut_off: bool) -> Account:
    """Return what the clauses of an answer state."""
    mentions = [find_mentions(c.text, references) for c in clauses]
    pairs = list(enumerate(zip(clauses, mentions, strict=True)))
    statements = [s for i, m in enumerate(mentions) for s in read_clause(Place(i, clauses, m, references))]
    return Account(
        references,
        clauses,
        mentions,
        cut_off or _OPEN_END.search(clauses[-1].folded) is not None,
        [i for i, c in enumerate(clauses) if revises(c, i, references)],
        [i for i, (c, m) in pairs if refuses(c, references, m, hedging=bool(statements))],
        [i for i, (c, m) in pairs if conflicts(c, m)],
        statements,
    )
