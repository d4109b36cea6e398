"""Everything between the flows and the wire: connections, the nodes of the cluster, its metadata, request routing."""
