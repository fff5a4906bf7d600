"""Trainings: their specs, folders, logs and worker processes."""
