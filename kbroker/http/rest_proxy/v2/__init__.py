"""Version 2 of the API: topics, partitions, brokers, records with embedded data, consumer instances."""
