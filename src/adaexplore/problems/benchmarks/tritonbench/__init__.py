"""TritonBench: its two channels as tasks, and the answers to them in files of JSON lines."""
