"""Tables of runs, their headlines and notes, and how they are rendered."""
