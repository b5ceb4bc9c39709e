//! Egress policy: the addresses that the server may connect to on its own account. A name is resolved once, every address
//! is checked, and the connection goes to a checked address, so that a second DNS answer cannot change the target.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Addresses that the server may reach on its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// All addresses.
    Anywhere,
    /// No address of this machine or of private networks.
    Public,
}

/// The egress policy, by the source of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressPolicy {
    /// Addresses in the operator's configuration: models, hooks and actions of a swarm's file.
    pub written: Egress,
    /// Addresses that callers name: peers, other swarms, other systems.
    pub named: Egress,
}

impl EgressPolicy {
    /// No limit on either.
    pub const ANYWHERE: Self = Self { written: Egress::Anywhere, named: Egress::Anywhere };
}

/// The policy forbids an address of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("private addresses may not be reached")]
pub struct PrivateAddress;

/// Resolves a name. Tests replace the system's resolver.
type Lookup = dyn Fn(String) -> Looking + Send + Sync;
type Looking = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names and checks the addresses. Cheap to clone.
#[derive(Clone)]
pub struct Resolver {
    is_forbidden: fn(IpAddr) -> bool,
    lookup: Arc<Lookup>,
}

impl Resolver {
    /// A resolver with this policy.
    pub fn new(reach: Egress) -> Self {
        let is_forbidden: fn(IpAddr) -> bool = match reach {
            Egress::Anywhere => |_| false,
            Egress::Public => is_private,
        };
        Self { is_forbidden, lookup: Arc::new(|host| Box::pin(ask_system(host))) }
    }

    /// Refuses a forbidden address that is written as a number; names are checked when they are resolved.
    pub fn check_literal(&self, host: &str) -> Result<(), PrivateAddress> {
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) if (self.is_forbidden)(address) => Err(PrivateAddress),
            _ => Ok(()),
        }
    }

    /// The addresses of a host. One forbidden address refuses the whole name: a public name does not point to a private
    /// address by chance.
    pub async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let bare = host.trim_matches(['[', ']']);
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => (self.lookup)(bare.to_owned()).await?,
        };
        if found.iter().any(|address| (self.is_forbidden)(*address)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, PrivateAddress));
        }
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    #[cfg(test)]
    pub(crate) fn with(is_forbidden: fn(IpAddr) -> bool, lookup: Arc<Lookup>) -> Self {
        Self { is_forbidden, lookup }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            // The connector adds the port.
            let found = resolver.find(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

async fn ask_system(host: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
}

/// Whether an error or one of its causes is [`PrivateAddress`].
pub fn is_forbidden(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<PrivateAddress>() {
            return true;
        }
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && is_forbidden(inner)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether an address belongs to this machine, a private network or another range that is not public, such as the cloud
/// metadata address 169.254.169.254. Addresses with an embedded IPv4 address are decided by that.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        // "This network", shared by a provider's customers, protocol assignments, benchmarks, reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(w, x, y, z))
    };
    match (a, b) {
        // Translated by NAT64: the well-known prefix carries an IPv4 address, the local-use one is local.
        (0x64, 0xff9b) => c != 0 || d != 0 || e != 0 || f != 0 || embedded(g, h),
        // 6to4 embeds one too; Teredo obscures it.
        (0x2002, _) => embedded(b, c),
        (0x2001, 0) => true,
        // Documentation, discard-only.
        (0x2001, 0xdb8) | (0x100, 0) => true,
        // Unspecified, loopback, and IPv4-compatible addresses, which are obsolete.
        (0, 0) => true,
        _ => {
            address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                // Site-local: deprecated and never public.
                || (a & 0xffc0) == 0xfec0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_public_addresses_are_told_apart() {
        for private in [
            "127.0.0.1",
            "127.255.255.254",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "fe80::1",
            "fec0::1",
            "fd00::1",
            "fc00:ec2::254",
            "ff02::1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[tokio::test]
    async fn one_private_address_refuses_the_name() {
        let answers = |list: &'static [&'static str]| -> Arc<Lookup> {
            Arc::new(move |_| {
                let found = list.iter().map(|text| text.parse().unwrap()).collect();
                Box::pin(async move { Ok(found) })
            })
        };
        let mixed = Resolver::with(is_private, answers(&["1.1.1.1", "10.0.0.1"]));
        let refused = mixed.find("two.test", 80).await.unwrap_err();
        assert!(is_forbidden(&refused), "{refused}");
        let nothing = Resolver::with(is_private, answers(&[]));
        assert!(!is_forbidden(&nothing.find("none.test", 80).await.unwrap_err()));
        let public = Resolver::with(is_private, answers(&["1.1.1.1"]));
        assert_eq!(public.find("one.test", 80).await.unwrap(), ["1.1.1.1:80".parse().unwrap()]);
        for written in ["127.0.0.1", "[::1]", "::ffff:127.0.0.1"] {
            assert!(public.find(written, 80).await.is_err(), "{written}");
            assert!(public.check_literal(written).is_err(), "{written}");
        }
    }
}
