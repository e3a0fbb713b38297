"""What the broker is made of is what kbroker.proto says, and every call of it is handled."""

from __future__ import annotations

from docs import grpc_descriptors
from kbroker.grpc.messages import SERVICE, service
from kbroker.grpc.table import methods


def test_the_serialized_declarations_are_those_of_the_proto() -> None:
    """If this fails: python -m docs.grpc_descriptors"""
    made = grpc_descriptors.rendered()
    assert made == grpc_descriptors.TARGET.read_text()


def test_every_method_is_handled() -> None:
    ours = [path for path in methods() if path.startswith(f"/{SERVICE}/")]
    assert len(ours) == len(service(SERVICE).methods) > 15
