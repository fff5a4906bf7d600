"""Commands that pass runs on: bundle, open, cite and push."""
