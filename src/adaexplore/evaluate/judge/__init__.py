"""The judge: one evaluation from loading to the verdict."""
