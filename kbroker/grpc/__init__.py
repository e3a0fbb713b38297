"""The gRPC API (docs/grpc.md), loaded with its first connection."""
