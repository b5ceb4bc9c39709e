//! The table of posthaste's own methods: name, description, params, result and handler of each. Calls are dispatched by
//! it, and the schema is generated from it.

use posthaste_engine::Engine;
use posthaste_host::Host;
use posthaste_host::caller::Identity;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::{ErrorObject, METHOD_NOT_FOUND};
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::errors::bad_params;
use super::{
    agents, attachments, contacts, conversations, events, messages, projects, reservations, rules, search,
    signals, tokens,
};

/// A caller whose token was checked, and where it calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) host: &'a Host,
    pub(super) engine: &'a Engine,
    pub(super) identity: &'a Identity,
}

/// A row of the table, as the schema needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    /// Its name without the prefix.
    pub(super) name: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! methods {
    ($($name:literal, $about:literal, $params:ident -> $result:ident, $handler:path;)+) => {
        /// Every method, in the order of the documentation.
        pub(super) const METHODS: &[Method] = &[$(Method {
            name: $name,
            about: $about,
            params: |generator| generator.subschema_for::<wire::$params>(),
            result: |generator| generator.subschema_for::<wire::$result>(),
        }),+];

        /// Calls the method of a name.
        pub(super) async fn dispatch(
            call: Call<'_>,
            method: &str,
            given: Option<&RawValue>,
        ) -> Result<Box<RawValue>, ErrorObject> {
            match method {
                $($name => {
                    let result: wire::$result = Box::pin($handler(call, parse::<wire::$params>(given)?)).await?;
                    to_raw_value(&result).map_err(bad_params)
                })+
                _ => Err(ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method x-posthaste/{method}"))),
            }
        }
    };
}

methods! {
    "whoami", "Says which name, role and realm the server knows the caller by.",
        NoParams -> WhoamiResult, agents::whoami;
    "register", "Enters an agent into the directory, or changes its entry.",
        RegisterParams -> RegisterResult, agents::register;
    "agents", "Lists the agents of the directory, and whether each is connected.",
        AgentsParams -> AgentsResult, agents::agents;
    "agent", "Shows one agent.",
        AgentParams -> AgentResult, agents::agent;
    "agent.remove", "Removes an agent from the directory; its messages stay. For administrators.",
        AgentRemoveParams -> AgentRemoveResult, agents::remove;
    "send", "Sends a message.",
        SendParams -> SendResult, messages::send;
    "inbox", "Lists an agent's mail.",
        InboxParams -> InboxResult, messages::inbox;
    "read", "Marks a message as read.",
        MarkParams -> Delivery, messages::read;
    "ack", "Acknowledges a message.",
        MarkParams -> Delivery, messages::ack;
    "search", "Finds messages and turns by their text.",
        SearchParams -> SearchResult, search::search;
    "attachment", "Fetches a file of a message.",
        AttachmentParams -> AttachmentResult, attachments::attachment;
    "message", "Shows a message and its deliveries, without marking it as read.",
        MessageParams -> MessageResult, messages::message;
    "thread", "Shows what was said in a conversation.",
        ThreadParams -> ThreadResult, conversations::thread;
    "conversations", "Lists conversations, newest first.",
        ConversationsParams -> ConversationsResult, conversations::conversations;
    "events", "Reads the event log, forwards or backwards, and can wait for the next event.",
        EventsParams -> EventsResult, events::events;
    "reserve", "Reserves paths. Reservations inform other agents and prevent nothing.",
        ReserveParams -> ReserveResult, reservations::reserve;
    "release", "Releases reservations.",
        ReleaseParams -> ReleaseResult, reservations::release;
    "reservations", "Lists reservations.",
        ReservationsParams -> ReservationsResult, reservations::reservations;
    "contacts", "Lists an agent's contacts.",
        ContactsParams -> ContactsResult, contacts::contacts;
    "contact.ask", "Asks another agent for consent to write to it.",
        ContactParams -> Contact, contacts::ask;
    "contact.accept", "Lets another agent write to the caller.",
        ContactParams -> Contact, contacts::accept;
    "contact.block", "Refuses all mail of another agent.",
        ContactParams -> Contact, contacts::block;
    "contact.end", "Ends a contact, in both directions.",
        ContactParams -> ContactEndResult, contacts::end;
    "nudge", "Nudges an agent of the mail directory.",
        NudgeParams -> NudgeResult, signals::nudge;
    "hooks", "Lists the work that is assigned to agents of the mail directory.",
        NoParams -> HooksResult, signals::hooks;
    "rules", "Shows the realm's rules, after changing those that are given. Administrators change them.",
        RulesParams -> Rules, rules::rules;
    "realm.open", "Opens a realm, which is made if need be. For the operator.",
        RealmOpenParams -> RealmOpenResult, projects::open;
    "realm.list", "Lists the realms of the server. For the operator.",
        ProjectPageParams -> RealmListResult, projects::realms;
    "project.claim", "Has a work tree mean the realm of the call. For administrators.",
        ProjectClaimParams -> ProjectClaimResult, projects::claim;
    "project.list", "Lists the paths and addresses that mean a realm. For administrators.",
        ProjectPageParams -> ProjectListResult, projects::list;
    "project.move", "Has a path mean another realm. For administrators.",
        ProjectMoveParams -> ProjectMoveResult, projects::relocate;
    "project.release", "Takes a claim back. For administrators.",
        ProjectReleaseParams -> ProjectReleaseResult, projects::release;
    "token.create", "Makes an access token. For administrators.",
        TokenCreateParams -> TokenCreateResult, tokens::create;
    "token.list", "Lists access tokens. For administrators.",
        NoParams -> TokenListResult, tokens::list;
    "token.revoke", "Revokes an access token. For administrators.",
        TokenRevokeParams -> Token, tokens::revoke;
}

/// Reads params; none at all count as an empty object.
fn parse<T: DeserializeOwned>(given: Option<&RawValue>) -> Result<T, ErrorObject> {
    serde_json::from_str(given.map_or("{}", RawValue::get)).map_err(bad_params)
}
