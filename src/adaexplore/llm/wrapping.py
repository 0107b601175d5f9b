"""Clients around other clients."""

from __future__ import annotations

from adaexplore.core.protocols.client import ModelClient


class WrappingClient:
    """Client around another, with its model, closed with it."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def model(self) -> str:
        """Model of the client."""
        return self._client.model

    def close(self) -> None:
        """Close the client."""
        self._client.close()
