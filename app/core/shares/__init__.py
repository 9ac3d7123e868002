"""What queues may hold: limits, shares, entitlements, trees of queues, borrowing."""
