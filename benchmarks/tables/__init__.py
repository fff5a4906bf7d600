"""Tables that several benchmarks share, and how tables are declared."""
