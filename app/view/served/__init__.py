"""Server of the page, for one browser on this machine."""
