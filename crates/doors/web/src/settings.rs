//! Realms, tokens and peers for administrators; the own identity for every visitor.

use maud::{Markup, html};
use posthaste_engine::nouns::{Peer, PeerKind, RealmName, Token, TokenRole};
use posthaste_engine::views::{OfficeStats, Outbound};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::visitor::Visitor;
use super::{message, rows, text};
use posthaste_host::units::show_bytes;

/// `GET /ui/settings`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor, None).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Settings, "Settings", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

/// The page, with a token that was just made: it is shown once.
pub(super) async fn shown(visitor: &Visitor, made: Option<(&str, &str)>) -> Result<Markup, DoorError> {
    let (stats, peers, history) =
        visitor.read(|view, caller| Ok((view.stats(caller)?, view.peers(caller)?, view.history()?))).await?;
    let managed = match visitor.is_admin() {
        true => {
            let (tokens, outbound) =
                visitor.read(|view, caller| Ok((view.tokens(caller)?, view.outbound(caller, 50)?))).await?;
            html! { (tokens_of(visitor, &tokens, made)) (realms(visitor)) (peers_of(visitor, &peers)) (carried(&outbound)) }
        }
        false => html! { p.dim { "Realms, tokens and peers are managed by administrators." } },
    };
    Ok(html! { h1 { "Settings" } (about(visitor, &stats, &history)) (managed) })
}

fn about(visitor: &Visitor, stats: &OfficeStats, history: &str) -> Markup {
    let limits = visitor.engine.limits();
    html! {
        section {
            h2 { "This realm" }
            dl.facts {
                dt { "Realm" } dd { b { (visitor.engine.realm()) } }
                dt { "You" } dd { (visitor.me()) ", " (visitor.identity.role.as_str()) @if !visitor.host.needs_token() { " (no token is needed here)" } }
                dt { "History" } dd { code { (history) } " · " (text::count(stats.events)) " events" }
                dt { "Database" } dd { (show_bytes(u64::try_from(stats.bytes).unwrap_or(0))) @if visitor.is_admin() { " at " code { (visitor.engine.path().display()) } } }
                dt { "A message" } dd { "at most " (show_bytes(limits.message_bytes as u64)) " and " (limits.addresses) " addresses" }
                dt { "Version" } dd { (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

fn tokens_of(visitor: &Visitor, tokens: &[Token], made: Option<(&str, &str)>) -> Markup {
    html! {
        section {
            h2 { "Tokens" }
            @if let Some((name, secret)) = made {
                div.once role="status" { p { "The token of " b { (name) } ". It is shown this once:" } pre { code { (secret) } } }
            }
            form.inline method="post" action=(visitor.to("/do/token")) {
                (frame::form_token(visitor))
                label { "For " input name="name" required maxlength="256" size="14" placeholder="ann"; }
                label { " as " select name="role" { @for role in TokenRole::ALL.iter().rev() { option value=(role.as_str()) { (role.as_str()) } } } }
                label { " for " select name="expires" { option value="" { "ever" } option value="1d" { "a day" } option value="30d" { "30 days" } option value="365d" { "a year" } } }
                label title="Sees messages, conversations and tasks between others unless they are marked private" { " " input type="checkbox" name="observe"; " may observe " }
                button { "Make a token" }
            }
            @if tokens.is_empty() { p.dim { "None yet; the server’s own key is in its data directory." } }
            @else {
                div.scroll { table.list {
                    thead { tr { th { "Name" } th { "Role" } th { "Made" } th { "Good until" } th {} } }
                    tbody { @for token in tokens {
                        tr class=(if token.is_valid(visitor.now) { "" } else { "ended" }) {
                            td { (token.name) } td { (token.role.as_str()) @if token.observe { ", observes" } @if let Some(door) = &token.door { ", " (door) " only" } } td { (text::ago(visitor.now, token.created_at)) " ago" }
                            td { @match (token.revoked_at, token.expires_at) {
                                (Some(at), _) => { (rows::chip("danger", "revoked")) " " (text::ago(visitor.now, at)) }
                                (None, Some(at)) if at <= visitor.now => { (rows::chip("warn", "expired")) }
                                (None, Some(at)) => { (text::until(visitor.now, at)) }
                                (None, None) => { "no end" }
                            } }
                            td { @if token.is_valid(visitor.now) {
                                form.inline method="post" action=(visitor.to("/do/revoke")) { (frame::form_token(visitor)) input type="hidden" name="token" value=(token.id); button.small.danger { "Revoke" } }
                            } }
                        }
                    } }
                } }
            }
        }
    }
}

fn realms(visitor: &Visitor) -> Markup {
    let names: Vec<RealmName> = visitor.host.office().realms().unwrap_or_default();
    html! {
        section {
            h2 { "Realms" }
            ul.people {
                @for name in names.iter().take(200) {
                    li { a href={"/r/" (name) "/ui"} { (name) } @if name == visitor.engine.realm() { " " (rows::chip("accent", "here")) } @if name == visitor.host.default_realm() { " " span.dim { "default" } } }
                }
            }
            form.inline method="post" action=(visitor.to("/do/realm")) {
                (frame::form_token(visitor))
                label { "A new one " input name="name" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" size="16"; }
                button { "Make a realm" }
            }
        }
    }
}

fn peers_of(visitor: &Visitor, peers: &[Peer]) -> Markup {
    html! {
        section {
            h2 { "Peers" }
            @if peers.is_empty() { p.dim { "Other servers and realms that mail is exchanged with. Realms of this server become peers with the first message to " code { "name@realm" } "." } }
            @else {
                div.scroll { table.list {
                    thead { tr { th { "Name" } th { "Sort" } th { "Address" } th { "Token in" } th { "Answers" } th {} } }
                    tbody { @for peer in peers {
                        tr {
                            td { (peer.name) } td { (peer.kind.as_str()) } td { (peer.url.as_deref().unwrap_or("—")) }
                            td { @if let Some(name) = &peer.token_ref { code { (name) } } }
                            td { (rows::chip(if peer.reachable { "ok" } else { "danger" }, if peer.reachable { "yes" } else { "no" })) @if let Some(at) = peer.seen_at { " " (text::ago(visitor.now, at)) } }
                            td { form.inline method="post" action=(visitor.to("/do/forget")) { (frame::form_token(visitor)) input type="hidden" name="peer" value=(peer.name); button.small.danger { "Forget" } } }
                        }
                    } }
                } }
            }
            form.inline method="post" action=(visitor.to("/do/peer")) {
                (frame::form_token(visitor))
                label { "Name " input name="name" required size="10" maxlength="64"; }
                label { " sort " select name="kind" { @for kind in [PeerKind::Office, PeerKind::Server] { option value=(kind.as_str()) { (kind.as_str()) } } } }
                label { " address " input type="url" name="url" required size="24" placeholder="https://"; }
                label { " token in " input name="token_ref" size="14" placeholder="ENV_NAME" pattern="[A-Za-z_][A-Za-z0-9_]*" title="The environment variable that holds the token; never the token"; }
                button { "Add a peer" }
            }
        }
    }
}

fn carried(outbound: &[Outbound]) -> Markup {
    html! {
        @if !outbound.is_empty() {
            section {
                h2 { "Waiting to be carried" }
                ul.plain { @for waiting in outbound { li { (text::heading(&waiting.message)) span.dim { " for " (waiting.agent) " at " (waiting.peer) } } } }
            }
        }
    }
}
