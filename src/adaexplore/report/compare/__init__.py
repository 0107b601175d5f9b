"""The comparison of searches: runs as traces, arms, intervals, and the renderers."""
