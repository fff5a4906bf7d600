"""Benchmarks, judges and engines of other packages, loaded so that none hinders the rest."""
