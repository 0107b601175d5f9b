"""Where untrusted code runs: forked workers with limits, a channel to them, and shared tensors."""
