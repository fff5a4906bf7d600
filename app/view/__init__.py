"""The page on which answers are looked at: its contents, how they are served, how they are drawn, and how they are saved.

- ``contents`` reads runs and returns what is on the page, as the data types of ``contents/page_types.py``.
- ``served`` sends these as JSON, a page of rows at a time, to a browser on this machine, and takes labels.
- ``drawn`` is the page itself: HTML, a style sheet and ES modules without a build step. ``drawn/source.js`` is its only way to
  the contents, from the server or from the file that it was saved in.
- ``saved`` writes the same page and contents into one file.
"""
