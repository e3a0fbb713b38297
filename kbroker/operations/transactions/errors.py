"""What is refused to those who work on transactions, each with the code that Kafka has for the like."""

from __future__ import annotations

from kbroker.protocol.errors import ApiError, ErrorCode


class NoSuchTransaction(ApiError):
    """There is none of this id, or none of this user's."""

    def __init__(self, id_: str) -> None:
        super().__init__(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"There is no transaction {id_} of yours. What was begun long ago is forgotten: begin a new one.",
        )


class TransactionOver(ApiError):
    """It was ended, and not as is asked now."""

    def __init__(self, why: str, code: ErrorCode = ErrorCode.INVALID_TXN_STATE) -> None:
        super().__init__(code, why)


class OnlyAbort(ApiError):
    """It is open, but nothing more can be done in it."""

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.TRANSACTION_ABORTABLE, f"{why} Abort it, and begin a new one.")


class TooManyTransactions(ApiError):
    def __init__(self, most: int) -> None:
        super().__init__(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            f"The broker has {most} transactions open already (kbroker.http.max.transactions): end some, or "
            "wait until they time out.",
        )
