"""Training data: rows for fine-tuning from builds, and the check that no test data is among them."""
