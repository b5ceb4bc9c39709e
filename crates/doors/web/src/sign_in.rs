//! Signing in with a token, signing out, and the choice of light or dark.

use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_engine::stamp;

use super::VIA;
use super::answers::{DoorError, Page};
use super::frame;
use super::query::Given;
use super::session::Session;
use super::visitor::{self, RequestRealm, THEME, Visitor};
use posthaste_host::Host;
use posthaste_host::caller::{AuthError, Identity};
use posthaste_host::keys;

/// `GET /ui/sign-in`.
pub(super) async fn page(State(host): State<Host>, at: RequestRealm, uri: axum::http::Uri) -> Response {
    let given = Given::new(uri.query().unwrap_or(""));
    Html(form(&host, &at, given.get("next"), None).into_string()).into_response()
}

fn form(host: &Host, at: &RequestRealm, next: Option<&str>, problem: Option<&str>) -> Markup {
    // No visitor is signed in yet, so the token is bound to none; other pages still cannot know it.
    let token = visitor::form_token(host, None);
    let body = html! {
        p { "Realm " b { (at.engine.realm()) } ". Every message, task and reservation of your agents, live." }
        @if let Some(problem) = problem { p.sorry role="alert" { (problem) } }
        form.sign method="post" action={(at.base) "/ui/sign-in"} {
            input type="hidden" name="word" value=(token);
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            label for="token" { "Your token" }
            input #token type="password" name="token" required autofocus autocomplete="current-password" spellcheck="false";
            button.primary { "Sign in" }
        }
        div.hint {
            p { "On the server’s machine, its key is in the data directory; or make a token under your own name:" }
            pre { code { "posthaste token create --role admin --name you" @if !at.base.is_empty() { " --realm " (at.engine.realm()) } } }
        }
    };
    frame::bare("Sign in", body)
}

/// `POST /ui/sign-in`.
pub(super) async fn sign_in(
    State(host): State<Host>,
    at: RequestRealm,
    OriginalUri(here): OriginalUri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let given = Given::new(&body);
    let ours = visitor::is_ours(&headers, &here)
        && subtle::ConstantTimeEq::ct_eq(
            visitor::form_token(&host, None).as_bytes(),
            given.raw("word").as_bytes(),
        )
        .into();
    if !ours {
        return DoorError::new(StatusCode::FORBIDDEN, "This form is not from this page.").into_response();
    }
    let token = given.get("token").unwrap_or("");
    let hash = keys::hash(token);
    let (known, pass) = match host.authenticate_hash(&at.engine, hash, VIA).await {
        Ok(recognised) => recognised,
        Err(AuthError::Failed(error)) => return DoorError::from(error).into_response(),
        Err(refused) => {
            let problem = refused.to_string();
            let page = form(&host, &at, given.get("next"), Some(&problem));
            return (StatusCode::UNAUTHORIZED, Html(page.into_string())).into_response();
        }
    };
    let Some(session) = Session::of(pass.as_ref()) else {
        return DoorError::bad("Sign in with a token that this server has made.").into_response();
    };
    if let Err(error) = welcome(&host, &at, known).await {
        return error.into_response();
    }
    let secure = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = visitor::session_cookie(&host, &at.engine, &session, secure);
    let to = safe_next(given.get("next"), &format!("{}/ui", at.base));
    with_cookies(Redirect::to(&to).into_response(), [cookie])
}

/// Enters a visitor that signs in into the directory, so that agents can write to the person.
async fn welcome(host: &Host, at: &RequestRealm, identity: Identity) -> Result<(), DoorError> {
    let visitor = Visitor {
        host: host.clone(),
        engine: at.engine.clone(),
        identity,
        base: at.base.clone(),
        here: axum::http::Uri::default(),
        form_token: String::new(),
        theme: None,
        pass: None,
        signed_in: true,
        now: stamp::now(),
    };
    // A realm that is read-only can still be read.
    if visitor.engine.poisoned().is_none() {
        visitor.enter().await?;
    }
    Ok(())
}

/// `POST /ui/sign-out`.
pub(super) async fn sign_out(visitor: Visitor, headers: HeaderMap, body: String) -> Page {
    visitor.check_form(Given::new(&body).raw("word"))?;
    let to = Redirect::to(&visitor.to("/sign-in")).into_response();
    Ok(with_cookies(to, visitor::farewell_cookies(&headers)))
}

/// `POST /ui/theme`.
pub(super) async fn theme(visitor: Visitor, body: String) -> Page {
    let given = Given::new(&body);
    visitor.check_form(given.raw("word"))?;
    let to = Redirect::to(&safe_next(given.get("next"), &visitor.to(""))).into_response();
    let cookie = match given.get("theme") {
        Some(theme @ ("light" | "dark")) => {
            format!("{THEME}={theme}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000")
        }
        _ => format!("{THEME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"),
    };
    Ok(with_cookies(to, [cookie]))
}

/// Allows only addresses of this page: a forged link must not lead to another site.
pub(super) fn safe_next(next: Option<&str>, otherwise: &str) -> String {
    let ours = |next: &&str| {
        let path = next.split(['?', '#']).next().unwrap_or("");
        let own = path == "/ui" || path.starts_with("/ui/") || path.starts_with("/r/");
        own && !next.contains(['\\', '\r', '\n', '\t']) && !path.contains("//") && !path.contains("..")
    };
    next.filter(ours).unwrap_or(otherwise).to_owned()
}

fn with_cookies(mut response: Response, cookies: impl IntoIterator<Item = String>) -> Response {
    for cookie in cookies {
        if let Ok(value) = HeaderValue::try_from(cookie) {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_the_page() {
        for (next, to) in [
            ("/ui/inbox?agent=ann", "/ui/inbox?agent=ann"),
            ("/r/shop/ui", "/r/shop/ui"),
            ("https://evil.test", "/ui"),
            ("//evil.test/ui", "/ui"),
            ("/ui/../../x", "/ui"),
            ("/uix", "/ui"),
            ("/\\evil.test", "/ui"),
            ("/r//evil.test", "/ui"),
        ] {
            assert_eq!(safe_next(Some(next), "/ui"), to, "{next}");
        }
    }
}
