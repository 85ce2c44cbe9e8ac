"""What goes wrong before an answer is whole."""


class NoAnswerError(Exception):
    """There is no answer, or not all of it; the text says why."""


class StaleConnectionError(NoAnswerError):
    """A connection that had served before was closed before anything of an answer came.

    The server may have closed it while it was idle, or have died of the request.
    """


class NotSentError(NoAnswerError):
    """It was too late to send the request (`send_by`): the server never saw it."""
