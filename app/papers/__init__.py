"""Published results and setups of the papers, as they are shipped."""
