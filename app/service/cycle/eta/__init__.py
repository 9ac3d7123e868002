"""When gangs start: what is known of run times, forecasts, and how good these were."""
