"""Campaigns: many problems, one budget, steps where they pay."""
