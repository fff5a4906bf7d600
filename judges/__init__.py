"""The judges of Rashomon, which label records."""
