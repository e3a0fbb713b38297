"""ListTransactions 0–2: the transactional ids there are (KIP-664).

Filters by state and producer id; 1 adds how long ago the transaction began (KIP-994), 2 a pattern that the
whole transactional id must match (KIP-1152). States that do not exist are given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.topic_regex import matching_topics
from kbroker.coordinators.transactions.transaction import TransactionState as State
from kbroker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_STATES = frozenset(map(str, State))


def handle(
    broker: Broker, request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    found = broker.resources(context).list_transactions(
        request.state_filters, request.producer_id_filters, request.duration_filter, context.now_ms
    )
    if request.transactional_id_pattern:
        matching = matching_topics(
            request.transactional_id_pattern, [transaction.transactional_id for transaction in found]
        )
        found = [transaction for transaction in found if transaction.transactional_id in matching]
    return ListTransactionsResponse(
        unknown_state_filters=[state for state in request.state_filters if state not in _STATES],
        transaction_states=[
            TransactionState(transaction.transactional_id, transaction.producer_id, transaction.state)
            for transaction in found
        ],
    )
