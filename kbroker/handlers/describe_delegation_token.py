"""DescribeDelegationToken 0–3: the caller's tokens, and those that the caller may see (KIP-48, KIP-373)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.principal import Principal

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.security.delegation_tokens import DelegationToken


def handle(
    broker: Broker, request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    resources = broker.resources(context)
    tokens = resources.own_tokens(context.peer)
    visible = resources.visible_tokens(context.peer)
    if request.owners is not None:
        asked = {Principal(owner.principal_type, owner.principal_name) for owner in request.owners}
        visible = [token for token in visible if not asked.isdisjoint((token.owner, *token.renewers))]
    told = context.api_version >= 3

    def described(token: DelegationToken) -> DescribedDelegationToken:
        return DescribedDelegationToken(
            principal_type=token.owner.kind,
            principal_name=token.owner.name,
            token_requester_principal_type=token.requester.kind if told else "",
            token_requester_principal_name=token.requester.name if told else "",
            issue_timestamp=token.issued_ms,
            expiry_timestamp=token.expires_ms,
            max_timestamp=token.max_ms,
            token_id=token.token_id,
            hmac=tokens.hmac_of(token),
            renewers=[DescribedDelegationTokenRenewer(each.kind, each.name) for each in token.renewers],
        )

    return DescribeDelegationTokenResponse(tokens=lazily(visible, described))
