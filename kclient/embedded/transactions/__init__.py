"""Transactions: the coordinator, the states of a transactional id, its records and markers, verification."""
