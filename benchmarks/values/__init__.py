"""Values: one equality for builds, checks, judges by rule and parsers."""

from benchmarks.values.comparison import Comparison as Comparison
from benchmarks.values.comparison import compare as compare
