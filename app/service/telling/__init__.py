"""Why a pod, a gang or a job waits, as values that every output renders."""
