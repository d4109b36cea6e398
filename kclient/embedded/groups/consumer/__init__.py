"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile, epoch by epoch.

validation     what a heartbeat may look like, and which member epochs are current
heartbeat      a member joins, stays, says what it owns, and learns what it may own
leave          members that go, or are sent away, for good or (static ones) for a while
group, member  the state; `journal` is the only place that changes it, and writes a record for each change
reconcile      one member's next step towards its target (pure)
assignors      who should own what (pure)
records        the journal's records, and groups read back from them
commits        which commits and offset fetches a group lets through
"""
