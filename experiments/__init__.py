"""Claims of the literature, measured on public corpora: `python -m experiments`. README.md has the results."""
