"""One file for each claim, with a `CLAIM`: its grid and its rule, written before the test set is looked at."""
