//! Realms, tokens and peers, for those who run the office; who one is, for everybody.

use maud::{Markup, html};
use posthaste_engine::nouns::{Peer, PeerKind, RealmName, Token, TokenRole};
use posthaste_engine::views::{OfficeStats, Outbound};

use super::answers::{Page, Trouble};
use super::frame::{self, Place};
use super::visitor::Visitor;
use super::{letter, rows, words};
use posthaste_host::units::show_bytes;

/// `GET /ui/settings`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor, None).await {
        Ok(body) => Ok(letter::beside(&visitor, Place::Settings, "Settings", body).await),
        Err(trouble) => Ok(trouble.framed(&visitor).await),
    }
}

/// The page, with a token that was made just now: it is shown this once.
pub(super) async fn shown(visitor: &Visitor, made: Option<(&str, &str)>) -> Result<Markup, Trouble> {
    let (stats, peers, history) =
        visitor.read(|view, caller| Ok((view.stats(caller)?, view.peers(caller)?, view.history()?))).await?;
    let office = match visitor.is_admin() {
        true => {
            let (tokens, outbound) =
                visitor.read(|view, caller| Ok((view.tokens(caller)?, view.outbound(caller, 50)?))).await?;
            html! { (tokens_of(visitor, &tokens, made)) (realms(visitor)) (peers_of(visitor, &peers)) (carried(&outbound)) }
        }
        false => html! { p.dim { "Realms, tokens and peers are managed by those who run the office." } },
    };
    Ok(html! { h1 { "Settings" } (about(visitor, &stats, &history)) (office) })
}

fn about(visitor: &Visitor, stats: &OfficeStats, history: &str) -> Markup {
    let limits = visitor.engine.limits();
    html! {
        section {
            h2 { "This realm" }
            dl.facts {
                dt { "Realm" } dd { b { (visitor.engine.realm()) } }
                dt { "You" } dd { (visitor.me()) ", " (visitor.identity.role.as_str()) @if !visitor.shared.needs_token() { " (nobody is asked for a token here)" } }
                dt { "History" } dd { code { (history) } " · " (words::count(stats.events)) " events" }
                dt { "Books" } dd { (show_bytes(u64::try_from(stats.bytes).unwrap_or(0))) @if visitor.is_admin() { " at " code { (visitor.engine.path().display()) } } }
                dt { "A letter" } dd { "at most " (show_bytes(limits.message_bytes as u64)) " and " (limits.addresses) " addresses" }
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
                (frame::word(visitor))
                label { "For " input name="name" required maxlength="256" size="14" placeholder="ann"; }
                label { " as " select name="role" { @for role in TokenRole::ALL.iter().rev() { option value=(role.as_str()) { (role.as_str()) } } } }
                label { " for " select name="expires" { option value="" { "ever" } option value="1d" { "a day" } option value="30d" { "30 days" } option value="365d" { "a year" } } }
                label title="Sees messages, conversations and tasks between others unless they are marked private" { " " input type="checkbox" name="observe"; " may observe " }
                button { "Make a token" }
            }
            @if tokens.is_empty() { p.dim { "None yet; the office’s own key is in its data directory." } }
            @else {
                div.scroll { table.list {
                    thead { tr { th { "Name" } th { "Role" } th { "Made" } th { "Good until" } th {} } }
                    tbody { @for token in tokens {
                        tr class=(if token.is_valid(visitor.now) { "" } else { "ended" }) {
                            td { (token.name) } td { (token.role.as_str()) @if token.observe { ", observes" } @if let Some(door) = &token.door { ", " (door) " only" } } td { (words::ago(visitor.now, token.created_at)) " ago" }
                            td { @match (token.revoked_at, token.expires_at) {
                                (Some(at), _) => { (rows::chip("danger", "revoked")) " " (words::ago(visitor.now, at)) }
                                (None, Some(at)) if at <= visitor.now => { (rows::chip("warn", "expired")) }
                                (None, Some(at)) => { (words::until(visitor.now, at)) }
                                (None, None) => { "no end" }
                            } }
                            td { @if token.is_valid(visitor.now) {
                                form.inline method="post" action=(visitor.to("/do/revoke")) { (frame::word(visitor)) input type="hidden" name="token" value=(token.id); button.small.danger { "Revoke" } }
                            } }
                        }
                    } }
                } }
            }
        }
    }
}

fn realms(visitor: &Visitor) -> Markup {
    let names: Vec<RealmName> = visitor.shared.office().realms().unwrap_or_default();
    html! {
        section {
            h2 { "Realms" }
            ul.people {
                @for name in names.iter().take(200) {
                    li { a href={"/r/" (name) "/ui"} { (name) } @if name == visitor.engine.realm() { " " (rows::chip("accent", "here")) } @if name == visitor.shared.default_realm() { " " span.dim { "default" } } }
                }
            }
            form.inline method="post" action=(visitor.to("/do/realm")) {
                (frame::word(visitor))
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
            @if peers.is_empty() { p.dim { "Other offices and realms that mail is exchanged with. Realms of this office become peers with the first letter to " code { "name@realm" } "." } }
            @else {
                div.scroll { table.list {
                    thead { tr { th { "Name" } th { "Sort" } th { "Address" } th { "Token in" } th { "Answers" } th {} } }
                    tbody { @for peer in peers {
                        tr {
                            td { (peer.name) } td { (peer.kind.as_str()) } td { (peer.url.as_deref().unwrap_or("—")) }
                            td { @if let Some(name) = &peer.token_ref { code { (name) } } }
                            td { (rows::chip(if peer.reachable { "ok" } else { "danger" }, if peer.reachable { "yes" } else { "no" })) @if let Some(at) = peer.seen_at { " " (words::ago(visitor.now, at)) } }
                            td { form.inline method="post" action=(visitor.to("/do/forget")) { (frame::word(visitor)) input type="hidden" name="peer" value=(peer.name); button.small.danger { "Forget" } } }
                        }
                    } }
                } }
            }
            form.inline method="post" action=(visitor.to("/do/peer")) {
                (frame::word(visitor))
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
                ul.plain { @for waiting in outbound { li { (words::heading(&waiting.message)) span.dim { " for " (waiting.agent) " at " (waiting.peer) } } } }
            }
        }
    }
}
