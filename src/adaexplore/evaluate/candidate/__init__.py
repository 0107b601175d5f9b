"""The candidate's process: it loads the candidate, runs it when told, and decides nothing."""
