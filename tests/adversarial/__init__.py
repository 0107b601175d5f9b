"""Candidates that cheat and candidates that do not, with what the evaluator must say of each."""
