"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

metadata   the members, the generation, and the states of the group (tables)
join       JoinGroup
rebalance  the join phase: members rejoin, the rest is removed, the next generation begins
sync       SyncGroup: the leader sends the assignments, every member gets its own
group      `ClassicGroup`, with the interface of all groups; Heartbeat, LeaveGroup
records    the record of the group
"""
