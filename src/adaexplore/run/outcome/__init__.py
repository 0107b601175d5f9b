"""What a run ends with: its winner, the uses of it, results, comparisons and deliveries."""
