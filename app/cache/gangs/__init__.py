"""Groups and their members, counted as they change, and the planner's views of them."""
