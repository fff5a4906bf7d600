"""The engines of Rashomon, which answer requests."""
