"""Protocols that a user may implement, one a module."""
