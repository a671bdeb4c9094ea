"""Tokens: who may do what, and until when."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from entrywise.study import tokens
from entrywise.web.api.bodies import NewToken
from entrywise.web.api.common import Owner, background, said

router = APIRouter()


@router.get("/tokens")
def list_tokens(request: Request, person: Owner) -> Response:
    """List tokens: what they allow and until when; never the tokens themselves."""
    return said([vars(t) for t in tokens.listed(background(request).store)])


@router.post("/tokens", status_code=201)
def create_token(request: Request, body: NewToken, person: Owner) -> Response:
    """Make a token; this answer is the only place where it is shown."""
    store = background(request).store
    secret, made = tokens.create(
        store, body.role, study=body.study, days=body.days, title=body.title
    )
    return said(vars(made) | {"token": secret}, 201)


@router.delete("/tokens/{id}")
def revoke_token(
    request: Request, id: Annotated[int, Path(ge=1, lt=2**31)], person: Owner
) -> Response:
    """Make a token useless at once."""
    tokens.revoke(background(request).store, id)
    return said({"revoked": id})
