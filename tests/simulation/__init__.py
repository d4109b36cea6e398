"""Groups of consumers under `kclient.simulation`: scenarios and faults from a seed, the promises, planted bugs."""
