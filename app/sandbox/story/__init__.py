"""The first story: the jobs of the demo, and what a job controller would make of them."""
