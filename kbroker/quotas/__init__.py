"""How much clients may use: quotas as they are stored, looked up and enforced. No I/O; time is passed in."""
