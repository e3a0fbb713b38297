"""What the two requests that alter configs share: each resource is altered, and answered, for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from kbroker.errors import describe
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode


class NamedResource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=NamedResource)
T = TypeVar("T")


def alter_each(
    resources: Sequence[R],
    alter: Callable[[R], Pending[None] | None],
    answer: Callable[[R, ErrorCode, str | None], T],
) -> Generator[None, None, list[T | Pending[T]]]:
    """The answers, some of them later. A resource that appears twice is refused wherever it appears."""
    occurrences = Counter((each.resource_type, each.resource_name) for each in resources)
    answers: list[T | Pending[T]] = []
    for resource in resources:
        try:
            if occurrences[resource.resource_type, resource.resource_name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "The resource is named twice.")
            altering = alter(resource)
        except Exception as error:
            answers.append(answer(resource, *describe(error)))
        else:
            if altering is None:
                answers.append(answer(resource, ErrorCode.NONE, None))
            else:
                answers.append(_later(resource, altering, answer))
        yield
    return answers


def _later(
    resource: R, altering: Pending[None], answer: Callable[[R, ErrorCode, str | None], T]
) -> Pending[T]:
    result: Pending[T] = Pending()

    def altered(_: Pending[None]) -> None:
        try:
            altering.result()
        except Exception as error:
            result.resolve(answer(resource, *describe(error)))
        else:
            result.resolve(answer(resource, ErrorCode.NONE, None))

    altering.then(altered)
    return result
