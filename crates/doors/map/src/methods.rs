//! Calls: finds the row of a method in the table, checks what the session may do, and runs its handler.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use posthaste_wire::map::{Switch, codes};
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome, Reply};
use super::errors::DoorError;
use super::method_table::METHODS;
use super::session::Session;
use super::{connect, federation, send, structure, turns};

/// One method of the protocol.
pub(super) struct Method {
    /// All its names, in both vocabularies.
    names: &'static [&'static str],
    /// The capabilities that a session needs to call it, in the order in which they are checked.
    needs: &'static [Switch],
    /// What acp-compat mode refuses about it.
    compat: Compat,
    handler: Handler,
}

/// What sessions of acp-compat mode may not do.
#[derive(Clone, Copy)]
enum Compat {
    Allowed,
    /// They, and calls of ACP's extension methods, only list scopes.
    NoScopeChanges,
    /// They see agents as a flat list.
    NoHierarchy,
    NoFederation,
    /// They have the one agent that they began with.
    NoAgents,
}

/// A call on its way to its handler.
pub(super) struct Call<'a> {
    pub(super) at: &'a mut Connection,
    pub(super) session: &'a Arc<Session>,
    pub(super) params: Option<&'a RawValue>,
    /// Whether it came as one of ACP's extension methods, `_map/…`.
    pub(super) by_extension: bool,
}

impl Call<'_> {
    /// Whether messages are delivered with best effort only.
    pub(super) fn best_effort(&self) -> bool {
        self.by_extension || self.session.is_compat()
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Connecting = for<'a> fn(&'a mut Connection, Option<&'a RawValue>) -> Boxed<'a, Outcome>;
type Ready = for<'a> fn(Call<'a>) -> Boxed<'a, Outcome>;
type Pipelined = for<'a> fn(Call<'a>) -> Boxed<'a, Result<Reply, DoorError>>;

/// What answers a call, and when.
enum Handler {
    /// Called without a session, and perhaps without authentication.
    Connecting(Connecting),
    /// Answered before the next call is read, after what the peer wrote before is in the database.
    Ready(Ready),
    /// The same for methods that read nothing that was written: flow control of subscriptions.
    FlowControl(Ready),
    /// Decides itself whether the next call is read before it is answered.
    Pipelined(Pipelined),
    /// Pipelined, and called so often that its future is not boxed again.
    Send,
    /// Pipelined, and called so often that its future is not boxed again.
    Turn,
}

impl Method {
    const fn new(names: &'static [&'static str], handler: Handler) -> Self {
        Self { names, needs: &[], compat: Compat::Allowed, handler }
    }

    pub(super) const fn connecting(names: &'static [&'static str], handler: Connecting) -> Self {
        Self::new(names, Handler::Connecting(handler))
    }

    pub(super) const fn ready(names: &'static [&'static str], handler: Ready) -> Self {
        Self::new(names, Handler::Ready(handler))
    }

    pub(super) const fn flow_control(names: &'static [&'static str], handler: Ready) -> Self {
        Self::new(names, Handler::FlowControl(handler))
    }

    pub(super) const fn pipelined(names: &'static [&'static str], handler: Pipelined) -> Self {
        Self::new(names, Handler::Pipelined(handler))
    }

    pub(super) const fn send(names: &'static [&'static str]) -> Self {
        Self::new(names, Handler::Send)
    }

    pub(super) const fn turn(names: &'static [&'static str]) -> Self {
        Self::new(names, Handler::Turn)
    }

    pub(super) const fn needs(self, needs: &'static [Switch]) -> Self {
        Self { needs, ..self }
    }

    pub(super) const fn changes_scopes(self) -> Self {
        Self { compat: Compat::NoScopeChanges, ..self }
    }

    pub(super) const fn shows_hierarchy(self) -> Self {
        Self { compat: Compat::NoHierarchy, ..self }
    }

    pub(super) const fn federates(self) -> Self {
        Self { compat: Compat::NoFederation, ..self }
    }

    pub(super) const fn adds_agents(self) -> Self {
        Self { compat: Compat::NoAgents, ..self }
    }

    /// Refuses what the session may not do: by its capabilities, or because its mode has no room for it.
    fn check(&self, session: &Session, by_extension: bool) -> Result<(), DoorError> {
        if let Some(lacking) = self.needs.iter().find(|switch| !session.may(**switch)) {
            return Err(DoorError::not_allowed(*lacking));
        }
        match self.compat {
            Compat::NoScopeChanges if by_extension || session.is_compat() => {
                Err(DoorError::denied("scopes can only be listed in acp-compat mode"))
            }
            Compat::NoHierarchy if session.is_compat() => Err(structure::flat_only()),
            Compat::NoFederation if session.is_compat() => Err(federation::not_in_compat()),
            Compat::NoAgents if session.is_compat() => {
                Err(DoorError::denied("a session of acp-compat mode has one agent"))
            }
            _ => Ok(()),
        }
    }
}

/// The names of all methods, in both vocabularies.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().flat_map(|method| method.names).copied()
}

fn find(name: &str) -> Option<&'static Method> {
    static BY_NAME: LazyLock<HashMap<&str, &Method>> = LazyLock::new(|| {
        METHODS.iter().flat_map(|method| method.names.iter().map(move |name| (*name, method))).collect()
    });
    BY_NAME.get(name).copied()
}

/// Answers a call.
pub(super) async fn call(connection: &mut Connection, name: &str, params: Option<&RawValue>) -> Reply {
    if let Some(wait) = connection.bucket.take().wait {
        return Reply::Ready(Err(DoorError::too_often(wait)));
    }
    let (by_extension, plain) = match name.strip_prefix("_map/") {
        Some(rest) => (true, Cow::Owned(format!("map/{rest}"))),
        None => (false, Cow::Borrowed(name)),
    };
    let method = match find(&plain) {
        Some(Method { handler: Handler::Connecting(handler), .. }) => {
            if !by_extension {
                return handler(connection, params).await.into();
            }
            None
        }
        method => method,
    };
    match answer(connection, name, method, params, by_extension).await {
        Ok(reply) => reply,
        Err(error) => Reply::Ready(Err(error)),
    }
}

async fn answer(
    connection: &mut Connection,
    name: &str,
    method: Option<&Method>,
    params: Option<&RawValue>,
    by_extension: bool,
) -> Result<Reply, DoorError> {
    let identity = connection.identity.clone().ok_or_else(|| {
        DoorError::new(
            codes::AUTH_REQUIRED,
            "say who you are first: map/connect with auth, or map/authenticate",
        )
    })?;
    if name.starts_with(posthaste_wire::control::PREFIX) {
        connection.settle().await;
        let call = connection.door.own_methods().call(&connection.engine, &identity, name, params);
        return Ok(Reply::Ready(match call.await {
            Ok(result) => Ok(Answer(result.get().to_owned())),
            Err(error) => Err(DoorError::new(error.code, error.message)),
        }));
    }
    if name.starts_with("mail/") && !connection.door.keeps_mail() {
        return Err(DoorError::new(codes::MAIL_NOT_ENABLED, "this server keeps no mail"));
    }
    let method = method.ok_or_else(|| DoorError::no_method(name))?;
    let session = match &connection.session {
        Some(session) => session.clone(),
        None => Box::pin(connect::session(connection)).await?,
    };
    session.review(&connection.engine).await?;
    method.check(&session, by_extension)?;
    let call = Call { at: connection, session: &session, params, by_extension };
    Ok(match method.handler {
        Handler::Send => {
            let best_effort = call.best_effort();
            send::send(call.at, call.session, params, best_effort).await?
        }
        Handler::Turn => turns::say(call.at, call.session, params).await?,
        Handler::Pipelined(handler) => handler(call).await?,
        Handler::FlowControl(handler) => handler(call).await.into(),
        Handler::Ready(handler) => {
            call.at.settle().await;
            handler(call).await.into()
        }
        Handler::Connecting(_) => return Err(DoorError::no_method(name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_row() {
        let names: Vec<_> = method_names().collect();
        assert!(names.len() > 90, "{names:?}");
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} is there twice");
            assert!(find(name).is_some(), "{name}");
        }
    }
}
