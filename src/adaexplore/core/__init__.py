"""Nouns of the project and the Protocols that a user may implement."""
