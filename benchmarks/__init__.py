"""The benchmarks of Rashomon: they build instances, and turn judged answers into tables."""

from benchmarks.fetch.unasked_requests import switch_off

switch_off()
