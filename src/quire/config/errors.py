"""The exceptions of this package: a key, and a sentence that says what is wrong and what to do."""


class ConfigError(Exception):
    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.message = message


class ContradictionError(ConfigError):
    """Options and settings that exclude each other. The sentence names them as the user wrote them."""
