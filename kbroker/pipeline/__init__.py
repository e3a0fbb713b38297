"""The data pipeline on Spark: Kafka topics into tables, declared in one YAML file.

Nothing here imports Spark at module level except the modules that only run inside a job, so that
`kbroker pipeline check` answers in a fraction of a second, with or without Java.
"""
