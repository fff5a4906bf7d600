"""Values: one equality for builds, checks, judges by rule and parsers."""

from benchmarks.values.comparison import compare as compare
from benchmarks.values.comparison_verdicts import Comparison as Comparison
