"""Progress of a run: accuracy so far, acts under conflict, speed and remaining time."""
