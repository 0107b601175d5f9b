"""Trials of the uses of a correct candidate outside the judge."""
