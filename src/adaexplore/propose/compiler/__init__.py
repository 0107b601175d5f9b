"""Candidates from TorchInductor: traced, lowered under chosen options, and made standalone."""
