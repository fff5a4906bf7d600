"""What ships of the papers: their published results, and their setups."""
