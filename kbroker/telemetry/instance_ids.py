"""Client instance ids as Kafka prints them."""

from __future__ import annotations

import base64


def instance_id_text(client_instance_id: bytes) -> str:
    return base64.urlsafe_b64encode(client_instance_id).decode().rstrip("=")
