"""Whole models: ranked, searched as one campaign, and given back with faster modules."""
