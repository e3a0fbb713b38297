"""What went wrong, in one line that says what to do next."""

from __future__ import annotations

import argparse
from typing import Any

from kbroker.exit_codes import UNREACHABLE, CommandFailed


def unreachable(address: str, reason: object) -> CommandFailed:
    return CommandFailed(
        f"cannot reach {address}: {reason}. Start a broker with 'kbroker serve', or name another address "
        "with -b HOST:PORT or KBROKER_BOOTSTRAP",
        UNREACHABLE,
    )


def refused(what: str, code: int, message: str | None = None) -> CommandFailed:
    """What a broker's error code means for the user."""
    from kbroker.protocol.errors import ErrorCode

    error = next((each for each in ErrorCode if each == code), None)
    if error is None:
        return CommandFailed(f"{what}: error {code} {message or ''}".rstrip())
    said = (message or error.message).rstrip(". ")
    following = _NEXT.get(error.name)
    return CommandFailed(f"{what}: {said} ({error.name}){f'. {following}' if following else ''}")


# What to do about the errors that users meet most.
_NEXT = {
    "UNKNOWN_TOPIC_OR_PARTITION": "See 'kbroker topic list', or make it with 'kbroker topic create'",
    "TOPIC_ALREADY_EXISTS": "Use --if-not-exists to accept that, or 'kbroker topic alter' to change it",
    "INVALID_REPLICATION_FACTOR": "Leave out --replicas, or ask for no more than there are brokers",
    "NON_EMPTY_GROUP": "Stop the group's consumers first: 'kbroker group describe' shows them",
    "UNKNOWN_MEMBER_ID": "Stop the group's consumers first: 'kbroker group describe' shows them",
    "GROUP_ID_NOT_FOUND": "See 'kbroker group list'",
    "INVALID_PARTITIONS": "The number of partitions can only grow",
    "OFFSET_OUT_OF_RANGE": "'kbroker topic describe' shows the offsets that there are",
    "MESSAGE_TOO_LARGE": "Raise it with 'kbroker topic alter -c max.message.bytes=…'",
    "INVALID_CONFIG": "'kbroker config get --all' lists the configs",
    "SASL_AUTHENTICATION_FAILED": "Check -X sasl.username=… and -X sasl.password=…",
    "UNSUPPORTED_SASL_MECHANISM": "Name one that the broker has with -X sasl.mechanism=…",
}


def explain(error: BaseException, arguments: argparse.Namespace) -> CommandFailed | None:
    """The line for an error; None: it is a bug, and its traceback is what helps."""
    if isinstance(error, CommandFailed):
        return error
    if type(error).__module__.startswith("kafka."):
        return _explain_kafka(error, arguments)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return CommandFailed(f"{where}{error.strerror or error}")
    return None


def _explain_kafka(error: BaseException, arguments: argparse.Namespace) -> CommandFailed:
    from kafka import errors

    said = " ".join(str(each) for each in error.args if each)
    code = getattr(type(error), "errno", None)
    if code is not None and getattr(type(error), "message", None):
        if isinstance(error, errors.UnsupportedVersionError) and (found := _diagnosis(arguments)):
            return found
        topic = getattr(arguments, "topic", None)
        return refused(topic if isinstance(topic, str) else "the broker refused", int(code), said or None)
    if isinstance(error, errors.UnknownBrokerIdError):
        return CommandFailed(f"there is no broker {said}: 'kbroker cluster info' shows them")
    if isinstance(error, (*_no_way(errors), errors.RetriableError)):
        address = getattr(arguments, "bootstrap", "the broker")
        return _diagnosis(arguments) or unreachable(address, f"no answer in time ({error})")
    return CommandFailed(f"{said or 'it failed'} ({type(error).__name__}). 'kbroker doctor' checks the setup")


def _no_way(errors: Any) -> tuple[type[Exception], ...]:
    """Errors of kafka-python's own that mean that a broker cannot be talked to."""
    return errors.InvalidReceiveError, errors.UnrecognizedBrokerVersion


def _diagnosis(arguments: argparse.Namespace) -> CommandFailed | None:
    if not hasattr(arguments, "bootstrap"):
        return None
    from kbroker.cli.advertised import diagnosis

    return diagnosis(arguments)
