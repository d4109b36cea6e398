"""The group: finding its coordinator, being a member of it, sharing out partitions, storing offsets."""
