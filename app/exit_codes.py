"""Exit codes of a command that ends in a verdict on a model; the others are those of the errors, and 130 for an interruption."""

BETTER, WORSE, NOT_SHOWN = 0, 5, 6
VERDICTS = (BETTER, WORSE, NOT_SHOWN)
