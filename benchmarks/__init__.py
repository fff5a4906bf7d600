"""The benchmarks of Rashomon: they build instances, and turn judged answers into tables."""

from benchmarks.unasked_requests import switch_off

switch_off()
