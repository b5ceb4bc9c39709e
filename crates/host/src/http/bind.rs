//! Binding the address to listen on, and advice if that fails.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// Why an address could not be taken, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "cannot listen on {address}: the port is in use{}; `--listen {}:0` picks a free port, `--listen {}:PORT` \
         another one", by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default(), host(*address), host(*address)
    )]
    InUse { address: SocketAddr, by: Option<String> },
    #[error(
        "cannot listen on {address}: ports below 1024 are for privileged processes; `--listen {}:7678` takes another \
         one, or allow the program: sudo setcap cap_net_bind_service=+ep {program}", host(*address)
    )]
    Privileged { address: SocketAddr, program: String },
    #[error(
        "cannot listen on {address}: this machine has no such address; `--listen 127.0.0.1:PORT` listens on this \
             machine only"
    )]
    NotOurs { address: SocketAddr },
    #[error("cannot listen on {address}: {error}")]
    Other { address: SocketAddr, error: io::Error },
}

/// Listens on an address.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { address, by: listener_on(address.port()) },
        io::ErrorKind::PermissionDenied if address.port() < 1024 => {
            let program = std::env::current_exe().map(|path| path.display().to_string());
            BindError::Privileged { address, program: program.unwrap_or_else(|_| "posthaste".to_owned()) }
        }
        io::ErrorKind::AddrNotAvailable => BindError::NotOurs { address },
        _ => BindError::Other { address, error },
    })
}

/// An address's host as `--listen` takes it.
fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// The process that listens on a port, as far as this user may know: Linux tells of the user's own processes.
fn listener_on(port: u16) -> Option<String> {
    let inodes = listening_inodes(port);
    if inodes.is_empty() {
        return None;
    }
    for entry in std::fs::read_dir("/proc").ok()?.filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(open) = std::fs::read_dir(entry.path().join("fd")) else { continue };
        let holds =
            open.filter_map(Result::ok).filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|to| {
                let to = to.to_string_lossy();
                inodes.iter().any(|inode| to.as_ref() == format!("socket:[{inode}]"))
            });
        if holds {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", name.trim()));
        }
    }
    None
}

/// The kernel's numbers of the sockets that listen on a port.
fn listening_inodes(port: u16) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let lines = tables.into_iter().filter_map(|table| std::fs::read_to_string(table).ok());
    lines.flat_map(|text| text.lines().filter_map(|line| inode_of(line, port)).collect::<Vec<_>>()).collect()
}

/// The inode of a line of /proc/net/tcp, if it is a socket that listens on the port.
fn inode_of(line: &str, port: u16) -> Option<String> {
    const LISTENS: &str = "0A";
    let words: Vec<&str> = line.split_whitespace().collect();
    let own = words.get(1)?.rsplit(':').next()?;
    let listens = words.get(3) == Some(&LISTENS) && u16::from_str_radix(own, 16) == Ok(port);
    listens.then(|| words.get(9).map(|inode| (*inode).to_owned()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    // F62
    #[tokio::test]
    async fn a_port_in_use_names_its_process_and_the_flag() {
        let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = first.local_addr().unwrap();
        let text = bind(address).await.unwrap_err().to_string();
        assert!(text.contains("the port is in use") && text.contains("`--listen 127.0.0.1:0`"), "{text}");
        #[cfg(target_os = "linux")]
        assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
    }

    // F65
    #[test]
    fn a_privileged_port_says_what_to_do() {
        let address = "0.0.0.0:443".parse().unwrap();
        let text = BindError::Privileged { address, program: "/usr/bin/posthaste".into() }.to_string();
        assert!(text.contains("--listen 0.0.0.0:7678") && text.contains("setcap"), "{text}");
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_told_as_such() {
        let text = bind("192.0.2.1:7678".parse().unwrap()).await.unwrap_err().to_string();
        assert!(text.contains("no such address"), "{text}");
    }
}
