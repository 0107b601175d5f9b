"""Verdicts from elsewhere: an earlier evaluation, a shared cache, the published judge."""
