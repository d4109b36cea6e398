"""Membership in a group, classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
