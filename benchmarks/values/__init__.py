"""Values: one equality for builds, checks, judges by rule and parsers."""

from benchmarks.values.value_comparison import compare as compare
