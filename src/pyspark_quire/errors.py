"""What goes wrong for a Spark job that reads or writes Quire, each as one sentence that says what happened where."""


class QuireError(Exception):
    """The text is a sentence for the person who runs the job; Spark prints it last, below the Python traceback."""


class OptionError(QuireError):
    """An option that does not exist, does not belong here, or cannot be understood."""


class DataLossError(QuireError):
    """Records the job should read are gone: retention overtook it, or a topic was deleted or made anew."""
