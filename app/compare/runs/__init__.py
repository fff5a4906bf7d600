"""Runs as a comparison reads them: answers, pairs, costs and differing specs."""
