"""Diagnosing correct candidates: what a reader should know about their results."""
