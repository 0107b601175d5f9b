"""Language models: one client, whatever provider is behind it."""
