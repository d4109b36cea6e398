"""The group coordinator of a broker: groups of both protocols, their commits, and what is written of them."""
