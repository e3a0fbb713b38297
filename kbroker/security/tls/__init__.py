"""TLS without connections: keys and certificates of files and texts, contexts, whose certificate it is."""
