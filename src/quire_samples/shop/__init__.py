"""A shop whose visitors are made up: `events` generates what they do, `send` writes it to topics at a given rate."""
