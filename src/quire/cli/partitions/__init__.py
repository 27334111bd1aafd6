"""`quire partitions`: where partitions are and who leads them; elections, and moving replicas to other brokers."""
