"""Commands about what is on this machine: data, models, benchmarks and judges."""
