"""Views of results: a line of text, a table for notebooks, a figure. One class for each kind of result."""
