//! Coming in with a token and going out again; light or dark.

use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_engine::stamp;

use super::VIA;
use super::answers::{Page, Trouble};
use super::frame;
use super::query::Given;
use super::session::Session;
use super::visitor::{self, Place, THEME, Visitor};
use posthaste_host::Host;
use posthaste_host::caller::{AuthError, Identity};
use posthaste_host::keys;

/// `GET /ui/sign-in`.
pub(super) async fn page(State(shared): State<Host>, place: Place, uri: axum::http::Uri) -> Response {
    let given = Given::new(uri.query().unwrap_or(""));
    Html(form(&shared, &place, given.get("next"), None).into_string()).into_response()
}

fn form(shared: &Host, place: &Place, next: Option<&str>, problem: Option<&str>) -> Markup {
    // Nobody is signed in yet, so the word is bound to nobody; it still cannot be known to another page.
    let word = visitor::form_word(shared, None);
    let body = html! {
        p { "Realm " b { (place.engine.realm()) } ". Every letter, task and reservation of your agents, live." }
        @if let Some(problem) = problem { p.sorry role="alert" { (problem) } }
        form.sign method="post" action={(place.base) "/ui/sign-in"} {
            input type="hidden" name="word" value=(word);
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            label for="token" { "Your token" }
            input #token type="password" name="token" required autofocus autocomplete="current-password" spellcheck="false";
            button.primary { "Sign in" }
        }
        div.hint {
            p { "On the machine of the office, its key is in the data directory; or make a token under your own name:" }
            pre { code { "posthaste token create --role admin --name you" @if !place.base.is_empty() { " --realm " (place.engine.realm()) } } }
        }
    };
    frame::bare("Sign in", body)
}

/// `POST /ui/sign-in`.
pub(super) async fn sign_in(
    State(shared): State<Host>,
    place: Place,
    OriginalUri(here): OriginalUri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let given = Given::new(&body);
    let ours = visitor::is_ours(&headers, &here)
        && subtle::ConstantTimeEq::ct_eq(
            visitor::form_word(&shared, None).as_bytes(),
            given.raw("word").as_bytes(),
        )
        .into();
    if !ours {
        return Trouble::new(StatusCode::FORBIDDEN, "This form is not from this page.").into_response();
    }
    let token = given.get("token").unwrap_or("");
    let hash = keys::hash(token);
    let (known, pass) = match shared.recognise_hash(&place.engine, hash, VIA).await {
        Ok(recognised) => recognised,
        Err(AuthError::Failed(error)) => return Trouble::from(error).into_response(),
        Err(refused) => {
            let problem = refused.to_string();
            let page = form(&shared, &place, given.get("next"), Some(&problem));
            return (StatusCode::UNAUTHORIZED, Html(page.into_string())).into_response();
        }
    };
    let Some(session) = Session::of(pass.as_ref()) else {
        return Trouble::bad("Sign in with a token that this server has made.").into_response();
    };
    if let Err(error) = welcome(&shared, &place, known).await {
        return error.into_response();
    }
    let secure = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = visitor::session_cookie(&shared, &place.engine, &session, secure);
    let to = safe_next(given.get("next"), &format!("{}/ui", place.base));
    with_cookies(Redirect::to(&to).into_response(), [cookie])
}

/// Whoever signs in is in the address book from now on, so that agents can write to the person.
async fn welcome(shared: &Host, place: &Place, identity: Identity) -> Result<(), Trouble> {
    let visitor = Visitor {
        shared: shared.clone(),
        engine: place.engine.clone(),
        identity,
        base: place.base.clone(),
        here: axum::http::Uri::default(),
        word: String::new(),
        theme: None,
        pass: None,
        signed_in: true,
        now: stamp::now(),
    };
    // A realm that takes no writes can still be looked at.
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

/// Only to a page of ours: an address from outside must not lead people elsewhere.
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
    fn nobody_is_led_elsewhere() {
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
