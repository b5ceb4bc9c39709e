//! The operator's signals: the first one asks the server to close, the second one insists, and so does time.
//!
//! They are heard on a thread of their own: whatever holds up the threads that serve requests, a signal is obeyed.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long closing may take before the process ends regardless. Every answer that was given is on disk by then, so nothing
/// that was acknowledged is lost.
const LONGEST_END: Duration = Duration::from_millis(9_500);

/// A token that is cancelled by SIGTERM or SIGINT (elsewhere than on Unix: by Ctrl-C). The process ends at once by a second
/// signal, and after [`LONGEST_END`] by itself; the database is made for that. SIGHUP no longer ends the process.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // From here on signals are heard, although nothing waits for them yet.
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
                // Certificates are read again, where there are any; nothing else is.
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
        // Without a way to hear it there is nothing to wait for, and closing would be wrong.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
