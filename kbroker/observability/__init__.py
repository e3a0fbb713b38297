"""See inside: what the other rooms count is read here, and shown to those who ask.

The rooms below count in plain attributes of their own, and know nothing of who reads them.
"""
