//! The operator's signals: the first one asks the office to close, the second one insists.

use std::io;

use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT (elsewhere than on Unix: by Ctrl-C). A second
/// signal ends the process at once, for which the books are made.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("closing; a second signal ends the process at once");
        asked.cancel();
        signals.next().await;
        tracing::warn!("ended by a second signal");
        std::process::exit(1);
    });
    Ok(stop)
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a way to hear it there is nothing to wait for, and closing would be wrong.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
