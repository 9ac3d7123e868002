"""The cronjob controller: jobs made from a template, on a schedule."""
