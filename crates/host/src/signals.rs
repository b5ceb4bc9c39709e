//! Signals: the first SIGTERM or SIGINT shuts down gracefully; a second one, or a timeout, ends the process.
//!
//! They are handled on a thread of their own, so that blocked request threads do not delay them.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Timeout of a graceful shutdown, after which the process ends. Every response that was sent is on disk by then, so
/// nothing that was acknowledged is lost.
const LONGEST_END: Duration = Duration::from_millis(9_500);

/// A token that is cancelled by SIGTERM or SIGINT (elsewhere than on Unix: by Ctrl-C). The process ends at once by a second
/// signal, and after [`LONGEST_END`] by itself; the database is made for that. SIGHUP no longer ends the process.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Signals are caught from here on.
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new()?
    };
    let listen = async move {
        signals.next().await;
        tracing::info!("closing; a second signal ends the process at once");
        asked.cancel();
        match tokio::time::timeout(LONGEST_END, signals.next()).await {
            Ok(()) => tracing::warn!("ended by a second signal"),
            Err(_) => tracing::error!("closing took too long; the process ends all the same"),
        }
        std::process::exit(1);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
    Ok(stop)
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                // SIGHUP reloads certificates only, which other code does.
                _ = self.hangup.recv() => tracing::info!("SIGHUP: certificates are read again if TLS is on"),
            }
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
        // If it cannot be caught, the server does not shut down because of it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
