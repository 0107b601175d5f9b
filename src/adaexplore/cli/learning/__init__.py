"""The commands that learn, check and keep rules: adapt and memory."""
