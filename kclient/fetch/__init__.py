"""From the brokers to the poll: Fetch requests, one bounded buffer, and records handed out at the position."""
