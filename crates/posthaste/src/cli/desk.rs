//! Where a command does its work: at the running office if there is one, else on the books themselves.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{Fault, Office, OfficeGuard};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::exit::{Exit, Failure};
use crate::caller::Identity;
use crate::config::Config;
use crate::doors::control;
use crate::keys::AdminKey;
use crate::serve::{held, make_private_directory};
use crate::shared::{Shared, Switches};

/// One realm, at the running office or in our own hands.
#[derive(Debug)]
pub(super) enum Desk {
    Running { client: Client, realm: RealmName },
    Ours { shared: Shared, guard: OfficeGuard },
}

impl Desk {
    /// Takes the data directory, or finds the office that has it.
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        let data = &config.data.value;
        make_private_directory(data)?;
        let realm = config.realm.value.clone();
        let (office, guard) = match Office::open(data, Limits::default()) {
            Ok(opened) => opened,
            Err(fault @ Fault::Locked { .. }) => {
                let client = Client::find(data).map_err(|_| held(fault))?;
                client.open_realm(&realm).await?;
                return Ok(Self::Running { client, realm });
            }
            Err(fault) => return Err(held(fault)),
        };
        let admin = AdminKey::open(data)?;
        office.realm(&realm).await.map_err(anyhow::Error::from)?;
        let switches = Switches { auth: true, ..config.switches() };
        let shared = Shared::new(office, realm, admin, switches, CancellationToken::new());
        Ok(Self::Ours { shared, guard })
    }

    /// Calls one of the office's own methods as the one who runs it.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        match self {
            Self::Running { client, realm } => client.call(realm, method, params).await,
            Self::Ours { shared, .. } => {
                let engine =
                    shared.office().realm(shared.default_realm()).await.map_err(anyhow::Error::from)?;
                let params = serde_json::value::to_raw_value(&params)?;
                let answer =
                    control::call(shared, &engine, &Identity::operator(), method, Some(&params)).await;
                let answer = answer.map_err(|error| Failure::new(Exit::Denied, error.message))?;
                Ok(serde_json::from_str(answer.get())?)
            }
        }
    }

    /// Lets go of the books, if they are in our hands.
    pub(super) async fn close(self) {
        if let Self::Ours { shared, guard } = self {
            drop(shared);
            guard.close().await;
        }
    }
}
