"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile, epoch by epoch.

heartbeat        a member joins or stays, sends its changes and owned partitions, gets its assignment
leave            members leave for good, or (static ones) temporarily
validation       the required form of a heartbeat, and whether its member epoch is current
metadata, member the state; only `journal` changes it, and writes a record for each change
assignment       group epochs, target assignments, one member's next step towards its target
assignors        target assignments (pure)
regex            regular expressions in subscriptions
records          the journal's records, and groups read back from them
classic_members  members of the classic protocol in a consumer group
migration        a group without members of this protocol becomes a classic group again
upgrade          the group that a member joins: found, made, or a classic group that is upgraded
group            `ConsumerGroup`, with the interface of all groups
"""
