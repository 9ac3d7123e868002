"""The controllers: what makes jobs, queues and groups do what their specs say, through ports."""
