"""Two topic names collide if they differ only in '.' and '_', which Kafka's metrics cannot tell apart."""


def collision_key(name: str) -> str:
    return name.replace(".", "_")
