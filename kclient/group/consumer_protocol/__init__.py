"""Membership in a group with the consumer protocol (KIP-848): ConsumerGroupHeartbeat carries everything.

state        member states, legal transitions, and when each state sends heartbeats
assignment   target assignment of the coordinator and current assignment of the member, by topic id
heartbeat    building heartbeats (only changed fields), sending them, and applying the responses
member       reconciliation loop, leaving, and the interface to the consumer
"""
