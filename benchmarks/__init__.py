"""The benchmarks of Rashomon: they build instances, and turn judged answers into tables."""
