"""Version 3: administration and records, below /v3. Facts of paths, names and codes: its OpenAPI document."""
