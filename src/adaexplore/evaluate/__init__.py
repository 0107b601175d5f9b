"""Candidate -> Evaluation: compile, verify against float64, measure against the baselines."""
