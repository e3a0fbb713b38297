"""Changes by administrators who do not send Kafka's requests, told to the audit log, where there is one.

What Kafka's requests change is told by `requests/admin_changes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources

T = TypeVar("T")


@overload
def audited(
    resources: Resources,
    resource_type: str,
    resource: str,
    change: Callable[[], Pending[T]],
    details: Mapping[str, Any] | None = None,
) -> Pending[T]: ...
@overload
def audited(
    resources: Resources,
    resource_type: str,
    resource: str,
    change: Callable[[], T | Pending[T]],
    details: Mapping[str, Any] | None = None,
) -> T | Pending[T]: ...
def audited(
    resources: Resources,
    resource_type: str,
    resource: str,
    change: Callable[[], Any],
    details: Mapping[str, Any] | None = None,
) -> Any:
    """What the change comes to. It is told when that is known, also if it fails."""
    if resources.broker.audit is None:
        return change()

    def tell(error: BaseException | None) -> None:
        resources.tell_change(resource_type, resource, error, details)

    try:
        result = change()
    except Exception as error:
        tell(error)
        raise
    if not isinstance(result, Pending):
        tell(None)
        return result
    return _told_later(result, tell, lambda: resources.tell_abandoned(resource_type, resource, details))


def _told_later(
    result: Pending[T], tell: Callable[[BaseException | None], None], tell_abandoned: Callable[[], None]
) -> Pending[T]:
    def abandoned() -> None:
        result.abandon()
        tell_abandoned()

    later: Pending[T] = Pending(abandoned)

    def arrived(settled: Pending[T]) -> None:
        try:
            settled.result()
        except Exception as error:
            tell(error)
        else:
            tell(None)
        later.follow(settled)

    result.then(arrived)
    return later
