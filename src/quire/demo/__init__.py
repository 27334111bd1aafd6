"""What the demonstrations send: makers of events that depend on dice and a time alone, without a cluster or a clock."""
