"""The tests of a shipped package, which run there and not here."""
