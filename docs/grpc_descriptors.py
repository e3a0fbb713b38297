"""Make kbroker/grpc/descriptors.py, of kbroker.proto and what gRPC declares: python -m docs.grpc_descriptors

The broker needs no compiler then, and no code that fits only some versions of protobuf.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import import_module, resources
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "kbroker/grpc/descriptors.py"
_PROTO = "kbroker.proto"
_OTHERS = (
    "google.protobuf.any_pb2",
    "google.protobuf.duration_pb2",
    "google.rpc.status_pb2",
    "google.rpc.error_details_pb2",
    "grpc_health.v1.health_pb2",
    "grpc_reflection.v1alpha.reflection_pb2",
)
_HEAD = '''"""What the gRPC API is made of, serialized. Made by `python -m docs.grpc_descriptors`."""

from __future__ import annotations

FILES = (
'''


def compiled(proto: Path) -> bytes:
    """The file's descriptor, serialized."""
    well_known = resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto.parent}", f"-I{well_known}"]
        subprocess.run([*command, f"--descriptor_set_out={target}", proto.name], check=True)
        descriptors: Any = import_module("google.protobuf.descriptor_pb2")
        (file,) = descriptors.FileDescriptorSet.FromString(target.read_bytes()).file
    return bytes(file.SerializeToString(deterministic=True))


def rendered() -> str:
    others = [bytes(import_module(name).DESCRIPTOR.serialized_pb) for name in _OTHERS]
    alpha: bytes = others[-1]
    reflection: Any = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto.FromString(alpha)
    text = _with_version(reflection, "v1")
    files = [*others, text, compiled(ROOT / "kbroker/grpc" / _PROTO)]
    return _HEAD + "".join(_literal(each) for each in files) + ")\n"


def _with_version(reflection: Any, version: str) -> bytes:
    """The messages of grpc.reflection.v1 are those of v1alpha under another name."""
    old = b"v1alpha"
    reflection.name = reflection.name.replace(old.decode(), version)
    reflection.package = reflection.package.replace(old.decode(), version)
    for message in reflection.message_type:
        for field in message.field:
            if field.type_name:
                field.type_name = field.type_name.replace(old.decode(), version)
    for service in reflection.service:
        for method in service.method:
            method.input_type = method.input_type.replace(old.decode(), version)
            method.output_type = method.output_type.replace(old.decode(), version)
    reflection.ClearField("options")
    return bytes(reflection.SerializeToString(deterministic=True))


def _literal(data: bytes) -> str:
    """In lines, as bytes literals that follow each other."""
    lines = [data[at : at + 48].hex() for at in range(0, len(data), 48)]
    text = "".join(f'        "{line}"\n' for line in lines)
    return f"    bytes.fromhex(\n{text}    ),\n"


def main() -> None:
    TARGET.write_text(rendered())


if __name__ == "__main__":
    main()
