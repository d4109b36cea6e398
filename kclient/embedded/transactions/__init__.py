"""Transactions: their states, the coordinator that keeps them, and the markers that end them."""
