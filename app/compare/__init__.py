"""Runs beside each other: what differs, how sure that is, what it costs, and which one to take."""
