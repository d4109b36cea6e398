"""Membership in a group, consumer protocol (KIP-848): one request, ConsumerGroupHeartbeat, says and brings everything.

states       the states of a member, which may follow which, and when heartbeats are sent in each
standing     where this member stands: state, epoch, and why the membership before ended
assignment   what the coordinator wants this member to own, and what it owns, by topic id
request      the next heartbeat: only what has changed since the last one
answers      what the coordinator's answer means, code by code
heartbeat    sending heartbeats, when they are due
flow         join, reconcile, acknowledge, and give up what is lost
membership   what the consumer tells it, and what it tells the consumer
"""
