"""Seconds of one core for the audit of 10,000 closed questions: ``python -m tests.performance.audit [QUESTIONS]``."""

from __future__ import annotations

import random
import resource
import sys
import time
from dataclasses import replace

from benchmarks.audit import audit
from tests.support.blind_questions import clean_question, media_size


def main() -> None:
    """Print the seconds and the peak memory, for one task and for fifteen."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    draw = random.Random(0)
    questions = [clean_question(number, draw) for number in range(count)]
    for tasks in (1, 15):
        divided = [replace(question, task=str(place % tasks)) for place, question in enumerate(questions)]
        start = time.process_time()
        audit(divided, media=media_size)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{count:,} questions in {tasks} tasks: {seconds:.1f} s, peak memory so far {peak:,} MiB")


if __name__ == "__main__":
    main()
