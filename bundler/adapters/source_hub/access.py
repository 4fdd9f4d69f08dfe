"""Which Hub its client library would ask, and whether it has a token; the token itself stays there."""

from __future__ import annotations

from huggingface_hub import constants, get_token


def hub_access() -> tuple[str, bool]:
    """The address (HF_ENDPOINT), and whether a token is there (HF_TOKEN or a login)."""
    return constants.ENDPOINT.rstrip("/"), bool(get_token())
