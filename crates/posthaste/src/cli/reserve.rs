//! `posthaste reserve`, `posthaste release` and `posthaste reservations`.

use posthaste_wire::control::{
    PageSize, ReleaseParams, ReleaseResult, ReservationStatus, ReservationsParams, ReservationsResult,
    ReserveParams, ReserveResult,
};

use super::args::{GlobalArgs, ReleaseArgs, ReservationsArgs, ReserveArgs};
use super::exit::{Exit, Failure};
use super::output::{Output, Page, Style, Table, short_time, text_of};
use super::realm_access::{agent, with_realm};
use super::send::from_now;

pub(super) fn reserve(global: &GlobalArgs, args: &ReserveArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    let params = ReserveParams {
        agent: who.clone(),
        key: None,
        scope: args.scope.clone(),
        directory: current_directory(),
        paths: args.paths.clone(),
        exclusive: !args.shared,
        reason: args.reason.clone(),
        expires_at: from_now(args.ttl),
    };
    with_realm(global, &args.realm, async |realm| {
        let made: ReserveResult = realm.call_as(who.as_deref(), "reserve", params).await?;
        if output.is_json() {
            output.json(&made)?;
        } else {
            let until = short_time(made.reservation.expires_at.as_str());
            output.line(&format!("{} until {until}", made.reservation.id))?;
            if !made.conflicts.is_empty() {
                let mut table = Table::new(["PATH", "OVERLAPS", "HOLDER", "UNTIL"]);
                for one in &made.conflicts {
                    let until = short_time(one.expires_at.as_str());
                    let row = [one.path.clone(), one.held_path.clone(), one.holder.clone(), until];
                    table.row(row, Style::Warning);
                }
                output.table(&table)?;
            }
        }
        match made.conflicts.len() {
            0 => Ok(()),
            count => {
                let overlaps = if count == 1 { "1 overlap".to_owned() } else { format!("{count} overlaps") };
                let text = format!("reserved, with {overlaps} with what others hold");
                Err(Failure::warning(Exit::Unhealthy, text))
            }
        }
    })
}

/// The directory of the command, by which the server chooses the project: each work tree of a realm is one of its own.
fn current_directory() -> Option<String> {
    std::env::current_dir().ok()?.to_str().map(str::to_owned)
}

pub(super) fn release(global: &GlobalArgs, args: &ReleaseArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| {
        let params = ReleaseParams {
            agent: who,
            ids: args.ids.clone(),
            scope: Some(args.scope.clone()),
            directory: current_directory(),
            ..ReleaseParams::default()
        };
        let ReleaseResult { released } = realm.call("release", params).await?;
        if output.is_json() {
            return output.json(&Page::only("released", &released));
        }
        Ok(output.line(&format!("{} released", released.len()))?)
    })
}

pub(super) fn reservations(
    global: &GlobalArgs,
    args: &ReservationsArgs,
    output: &Output,
) -> Result<(), Failure> {
    with_realm(global, &args.list.realm, async |realm| {
        let params = ReservationsParams {
            scope: args.scope.clone(),
            owner: args.agent.clone(),
            ended: args.ended,
            after: args.list.next_number()?.unwrap_or(0),
            limit: PageSize(args.list.limit as usize),
        };
        let page: ReservationsResult = realm.call("reservations", params).await?;
        if output.is_json() {
            return output.json(&page);
        }
        let mut table = Table::new(["ID", "OWNER", "SCOPE", "PATHS", "HOW", "STATUS", "UNTIL", "REASON"]);
        for one in &page.reservations {
            let style = if one.status == ReservationStatus::Active { Style::Plain } else { Style::Dim };
            let row = [
                one.id.to_string(),
                one.owner.clone(),
                one.scope.clone(),
                one.paths.join(" "),
                if one.exclusive { "alone" } else { "shared" }.to_owned(),
                text_of(one.status),
                short_time(one.expires_at.as_str()),
                one.reason.clone().unwrap_or_default(),
            ];
            table.row(row, style);
        }
        output.table(&table)?;
        args.list.say_more(page.next.as_ref());
        Ok(())
    })
}
