"""FlashInfer-Bench datasets and SOL-ExecBench tasks, read as problems."""
