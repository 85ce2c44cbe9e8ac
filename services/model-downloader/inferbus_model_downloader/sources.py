"""Which adapter reads which kind of source: the one place that knows them all."""

from inferbus_contracts.artifacts import ModelUri, Scheme
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_model_downloader.policy_options import HubOptions
from inferbus_model_downloader.ports import Source

SUPPORTED = (Scheme.HF, Scheme.HOST, Scheme.PVC)


def open_source(
    uri: ModelUri, options: HubOptions, connections: int, stall_seconds: float
) -> Source:
    """The source that `uri` names, inside a running event loop; to be closed by the caller.

    Raises `ProblemsError` (UNSUPPORTED) for a scheme that nothing here reads.
    """
    if uri.scheme is Scheme.HF:
        # The hub's client takes half a second to import, which only its users should pay.
        from inferbus_model_downloader.adapters_hub import HubSource

        return HubSource(uri.address, options, connections, stall_seconds)
    raise ProblemsError(
        Problem(
            code=ErrorCode.UNSUPPORTED,
            message=f"sources of the scheme {uri.scheme.value} cannot be fetched",
            value=str(uri),
            remedy=f"use one of {', '.join(scheme.value for scheme in SUPPORTED)}",
        )
    )
