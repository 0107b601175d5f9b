"""References, tolerances, input sets and labels: what candidates are held to."""
