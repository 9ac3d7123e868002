"""What the webhooks need around their rules: facts, registration, certificate."""
