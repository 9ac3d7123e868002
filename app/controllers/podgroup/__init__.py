"""The podgroup controller: PodGroups for pods that were created without one."""
