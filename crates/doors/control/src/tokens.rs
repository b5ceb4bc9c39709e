//! Methods about access tokens.

use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_host::keys;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::{bad_params, denied, refused};
use super::from_wire::token_role;
use super::table::Call;
use super::{VIA, to_wire};

pub(super) async fn create(
    call: Call<'_>,
    given: wire::TokenCreateParams,
) -> Result<wire::TokenCreateResult, ErrorObject> {
    let secret = keys::new_token();
    let verb = CreateToken {
        hash: keys::hash(&secret).to_vec(),
        role: token_role(given.role),
        name: given.name,
        door: None,
        observe: given.observe,
        expires_at: given.expires_at,
    };
    let token = call.engine.submit(&call.identity.caller(VIA), verb).await.map_err(refused)?;
    Ok(wire::TokenCreateResult { entry: to_wire::token(&token), token: secret })
}

pub(super) async fn list(call: Call<'_>, _: wire::NoParams) -> Result<wire::TokenListResult, ErrorObject> {
    let caller = call.identity.caller(VIA);
    let tokens = call.engine.read(move |view| view.tokens(&caller)).await.map_err(refused)?;
    Ok(wire::TokenListResult { tokens: tokens.iter().map(to_wire::token).collect() })
}

pub(super) async fn revoke(
    call: Call<'_>,
    given: wire::TokenRevokeParams,
) -> Result<wire::Token, ErrorObject> {
    let id = match (given.id, given.token) {
        (Some(id), None) => id,
        (None, Some(token)) => {
            let hash = keys::hash(&token);
            let known = call.engine.read(move |view| view.token_by_hash(&hash)).await.map_err(refused)?;
            known.map(|token| token.id).ok_or_else(|| denied("there is no such token"))?
        }
        _ => return Err(bad_params("give either the id or the token")),
    };
    let verb = RevokeToken { id };
    let token = call.engine.submit(&call.identity.caller(VIA), verb).await.map_err(refused)?;
    Ok(to_wire::token(&token))
}
