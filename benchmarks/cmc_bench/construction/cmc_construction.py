"""The construction of section 3.2: its quotas of examples, by conflict type and subject.

Every choice is made by sha256(seed | purpose | id), as an order or a place to start, so that it depends on the seed and
the rows' content alone.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.cmc_constants import TYPES, ConflictType
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile
from benchmarks.cmc_bench.construction.cmc_candidates import Candidate
from benchmarks.cmc_bench.construction.constructed_examples import ConstructedExamples, ExampleList, Unpaired
from benchmarks.cmc_bench.construction.contradiction_pairing import Pairing, rank, rank_key
from benchmarks.hash_collections import HashOrder
from benchmarks.rows.record_file import RecordFile


def construct(
    candidates: Iterable[Candidate], *, seed: int, per_type: int, difficulty: Difficulty | None = None
) -> ConstructedExamples:
    """Return up to ``per_type`` examples of each conflict type; MMMU's are spread evenly over subjects.

    The user's own rows get plausible contradicting values, and so do all others with a ``difficulty``.

    A candidate that cannot be paired is left out with the reason, and another takes its place while there is one.
    ``candidates`` are copied to a temporary file unless they are in one already.
    """
    if not isinstance(candidates, CandidateFile):
        file = CandidateFile()
        for candidate in candidates:
            file.append(candidate)
        candidates = file
    pairing = Pairing(candidates, seed, difficulty)
    values, left_out = RecordFile(), Unpaired(candidates)
    examples: dict[ConflictType, ExampleList] = {}
    unused: dict[ConflictType, int] = {}
    queues_by_type = _by_subject(candidates, seed)
    for kind in TYPES:
        waiting = queues_by_type.get(kind, {})
        chosen_examples = ExampleList(candidates, values)
        while waiting and len(chosen_examples) < per_type:
            for subject in list(waiting)[: per_type - len(chosen_examples)]:
                if not _add_first(waiting[subject], pairing, chosen_examples, left_out):
                    del waiting[subject]
        examples[kind] = chosen_examples
        unused[kind] = sum(len(queue) for queue in waiting.values())
    return ConstructedExamples(examples, left_out, unused)


class _Queue:
    """Numbers of candidates, taken from the front."""

    def __init__(self) -> None:
        self._numbers = array("I")
        self._taken = 0

    def append(self, number: int) -> None:
        self._numbers.append(number)

    def popleft(self) -> int:
        self._taken += 1
        return self._numbers[self._taken - 1]

    def __len__(self) -> int:
        return len(self._numbers) - self._taken


def _by_subject(candidates: CandidateFile, seed: int) -> dict[ConflictType, dict[str, _Queue]]:
    """Return the queues of candidates by type and, in their order of turns, subject."""
    order = HashOrder()
    queues: defaultdict[ConflictType, defaultdict[str, _Queue]] = defaultdict(lambda: defaultdict(_Queue))
    all_queues: list[_Queue] = []
    places: dict[int, int] = {}
    queue_of = array("I")  # by candidate
    for number, candidate in enumerate(candidates):
        order.add(rank(seed, "choose", candidate.id), number)
        queue = queues[candidate.type][candidate.row.subject if candidate.row.family == "mmmu" else ""]
        if id(queue) not in places:
            places[id(queue)] = len(all_queues)
            all_queues.append(queue)
        queue_of.append(places[id(queue)])
    for _, number in order:
        all_queues[queue_of[number]].append(number)
    return {
        kind: {
            subject: by_subject[subject] for subject in sorted(by_subject, key=lambda s: rank_key(seed, "subject", s))
        }
        for kind, by_subject in queues.items()
    }


def _add_first(queue: _Queue, pairing: Pairing, examples: ExampleList, left_out: Unpaired) -> bool:
    """Add the example of the first candidate that can be paired; return False if there is none."""
    while queue:
        number = queue.popleft()
        pair = pairing.example(number)
        if not isinstance(pair, str):
            examples.append(number, pair)
            return True
        left_out.append(number, pair)
    return False
