"""The errors of a Spark job that reads or writes Quire; the text of each says what happened, and where."""


class QuireError(Exception):
    """The text is a sentence for the person who runs the job; Spark prints it without a traceback (`one_sentence`)."""


class OptionError(QuireError):
    """An option that does not exist, does not belong here, or cannot be understood."""


class DataLossError(QuireError):
    """Records that the job should read are lost: retention removed them, or a topic was deleted or created again."""
