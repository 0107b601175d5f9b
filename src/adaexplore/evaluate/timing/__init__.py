"""Clocks, baselines and measurements that a candidate cannot forge."""
