"""Transactions for those who do not speak Kafka's protocol: HTTP, gRPC, code in the process.

`TransactionalProducer` (producer.py) writes in one, `OpenTransaction` (open_transaction.py) is one that
somebody works on over several calls, `OpenTransactions` (registry.py) begins and finds them. `describing.py`
tells of all there are, also those of Kafka's clients.
"""
