"""Tasks to learn on: grown from a grammar or written by a model, validated, and no benchmark's."""
