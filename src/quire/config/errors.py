"""The one exception of configuration: which key, and a sentence that says what is wrong and what to do."""


class ConfigError(Exception):
    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.message = message
