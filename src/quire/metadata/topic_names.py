"""When two topic names collide: they differ only in '.' and '_', which metrics once took for the same."""


def collision_key(name: str) -> str:
    return name.replace(".", "_")
