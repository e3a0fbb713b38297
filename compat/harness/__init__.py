"""What the compat suites stand on: pinned jars, a Java runtime, a real Apache Kafka, a kbroker process."""
