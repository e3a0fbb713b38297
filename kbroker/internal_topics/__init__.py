"""`__consumer_offsets` and `__transaction_state` to be read: made from what coordinators know (adr/0044)."""
