"""Evaluators behind the Protocol: one judge, several as one, and recorded verdicts."""
