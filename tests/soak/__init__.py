"""Soak test: plays users on one workspace, and checks invariants after every action."""
