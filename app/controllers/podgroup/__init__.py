"""The podgroup controller: PodGroups for pods that nobody made one for."""
