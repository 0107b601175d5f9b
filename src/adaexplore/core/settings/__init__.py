"""The settings of a run: fields, presets, policies and limits, and the texts that name them."""
