"""The podgroup controllers."""
