"""The queue controller: states of queues, their parents, and commands to open and close them."""
