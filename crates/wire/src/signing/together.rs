//! Many signatures at once. Each says that a sum of points is nothing; one sum of all of them, each with a weight that
//! nobody can choose, takes half the time of as many sums.

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::{IsIdentity as _, VartimeMultiscalarMul as _};
use curve25519_dalek::{EdwardsPoint, Scalar};
use sha2::{Digest as _, Sha512};

use super::{PublicKey, SMALL_ORDER, Signature, SigningError};

/// That somebody signed something.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who is said to have signed.
    pub key: PublicKey,
    /// What was signed.
    pub signed: String,
    /// The proof.
    pub signature: Signature,
}

impl Claim {
    /// Checks it by itself.
    pub fn check(&self) -> Result<(), SigningError> {
        self.key.verify(self.signed.as_bytes(), &self.signature)
    }

    /// What it adds to the sum; nothing for what is spelled in any odd way and better looked at by itself.
    fn term(&self) -> Option<Term> {
        let (point, response) = (self.signature.0.r_bytes(), self.signature.0.s_bytes());
        let response = Option::<Scalar>::from(Scalar::from_canonical_bytes(*response))?;
        let plain = self.key.is_plain && is_spelled_once(point) && !SMALL_ORDER.contains(point);
        let at = CompressedEdwardsY(*point).decompress().filter(|_| plain)?;
        let challenge = Sha512::new().chain_update(point).chain_update(self.key.as_bytes());
        let challenge = challenge.chain_update(self.signed.as_bytes()).finalize();
        let challenge = Scalar::from_bytes_mod_order_wide(&challenge.into());
        Some(Term { response, challenge, key: self.key, at })
    }
}

/// One equation: `response · base = challenge · key + at`.
struct Term {
    response: Scalar,
    challenge: Scalar,
    key: PublicKey,
    at: EdwardsPoint,
}

/// Checks claims as each would be checked by itself, in their order.
///
/// Weights are odd, so that among good ones even a signature that is wrong only by a point of small order is found out,
/// as the strict rule has it. Who holds the keys can make several whose flaws cancel each other out; what they say is
/// still theirs.
pub fn check_all(claims: &[&Claim]) -> Vec<Result<(), SigningError>> {
    if let [claim] = claims {
        return vec![claim.check()];
    }
    let terms: Vec<Option<Term>> = claims.iter().map(|claim| claim.term()).collect();
    let good = terms.iter().flatten().count() > 1 && add_up(&terms.iter().flatten().collect::<Vec<_>>());
    claims
        .iter()
        .zip(&terms)
        .map(|(claim, term)| if good && term.is_some() { Ok(()) } else { claim.check() })
        .collect()
}

/// Whether all equations hold.
fn add_up(terms: &[&Term]) -> bool {
    let mut all = Sha512::new();
    for term in terms {
        all.update(term.challenge.as_bytes());
        all.update(term.response.as_bytes());
    }
    let all = all.finalize();
    let (mut factors, mut points) = (Vec::new(), Vec::new());
    // A key that signed several is in the sum once.
    let mut keys: Vec<(PublicKey, Scalar)> = Vec::new();
    let mut base = Scalar::ZERO;
    for (term, weight) in terms.iter().zip(weights(&all)) {
        base += weight * term.response;
        match keys.iter_mut().find(|(key, _)| *key == term.key) {
            Some((_, factor)) => *factor += weight * term.challenge,
            None => keys.push((term.key, weight * term.challenge)),
        }
        // The weight itself, which no reduction may make even: only `at` can have a part of small order.
        factors.push(weight);
        points.push(term.at);
    }
    for (key, factor) in keys {
        factors.push(factor);
        points.push(key.point.to_edwards());
    }
    factors.push(-base);
    points.push(ED25519_BASEPOINT_POINT);
    EdwardsPoint::vartime_multiscalar_mul(factors, points).is_identity()
}

/// Odd numbers that nobody can choose, as many as are asked for.
fn weights(all: &[u8]) -> impl Iterator<Item = Scalar> {
    (0_u64..).flat_map(move |n| {
        let drawn = Sha512::new().chain_update(all).chain_update(n.to_le_bytes()).finalize();
        let (numbers, _) = drawn.as_chunks::<16>();
        let numbers: [_; 4] = std::array::from_fn(|at| u128::from_le_bytes(numbers[at]));
        numbers.map(|number| Scalar::from(number | 1))
    })
}

/// Whether the bytes are the only ones for their point: below the prime, and not one of the two points whose sign says
/// nothing.
fn is_spelled_once(point: &[u8; 32]) -> bool {
    let mut height = *point;
    height[31] &= 0x7f;
    let beyond = height[31] == 0x7f && height[1..31].iter().all(|byte| *byte == 0xff) && height[0] >= 0xed;
    !beyond && height != SMALL_ORDER[0] && height != SMALL_ORDER[1]
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use proptest::prelude::*;

    use super::super::SecretKey;
    use super::*;

    fn together(claims: &[Claim]) -> Vec<bool> {
        check_all(&claims.iter().collect::<Vec<_>>()).iter().map(Result::is_ok).collect()
    }

    fn secret(n: u8) -> SecretKey {
        SecretKey::from_seed(&[n; 32])
    }

    fn claim(n: u8, signed: &str) -> Claim {
        let secret = secret(n);
        Claim { key: secret.public(), signed: signed.to_owned(), signature: secret.sign(signed.as_bytes()) }
    }

    /// As its owner can make it: right but for a point of small order.
    fn flawed(n: u8, signed: &str, flaw: EdwardsPoint) -> Claim {
        let secret = secret(n);
        let (key, nonce) = (secret.public(), Scalar::from(77_u64));
        let point = (EdwardsPoint::mul_base(&nonce) + flaw).compress();
        let challenge = Sha512::new().chain_update(point.as_bytes()).chain_update(key.as_bytes());
        let challenge = challenge.chain_update(signed).finalize();
        let response = nonce + Scalar::from_bytes_mod_order_wide(&challenge.into()) * secret.0.to_scalar();
        let signature = ed25519_dalek::Signature::from_components(point.to_bytes(), response.to_bytes());
        Claim { key, signed: signed.to_owned(), signature: Signature(signature) }
    }

    #[test]
    fn a_flaw_of_small_order_is_found_among_good_ones() {
        for flaw in EIGHT_TORSION {
            let claims = [claim(1, "a"), flawed(2, "b", flaw), claim(3, "c")];
            let alone = claims.each_ref().map(|claim| claim.check().is_ok());
            assert_eq!(alone, [true, flaw.is_identity(), true], "{flaw:?}");
            assert_eq!(together(&claims), alone, "{flaw:?}");
        }
    }

    #[test]
    fn a_key_with_a_part_of_small_order_is_looked_at_by_itself() {
        // Good and bad by chance of the challenge, and the same together.
        let flaw = EIGHT_TORSION[1];
        let (secret, nonce) = (secret(5), Scalar::from(99_u64));
        let key = (EdwardsPoint::mul_base(&secret.0.to_scalar()) + flaw).compress();
        let key = PublicKey::from_bytes(key.as_bytes()).unwrap();
        let point = EdwardsPoint::mul_base(&nonce).compress();
        let claims: Vec<Claim> = (0..40)
            .map(|n| {
                let signed = format!("message {n}");
                let challenge = Sha512::new().chain_update(point.as_bytes()).chain_update(key.as_bytes());
                let challenge =
                    Scalar::from_bytes_mod_order_wide(&challenge.chain_update(&signed).finalize().into());
                let response = nonce + challenge * secret.0.to_scalar();
                let signature =
                    ed25519_dalek::Signature::from_components(point.to_bytes(), response.to_bytes());
                Claim { key, signed, signature: Signature(signature) }
            })
            .collect();
        let alone: Vec<bool> = claims.iter().map(|claim| claim.check().is_ok()).collect();
        assert!(alone.contains(&true) && alone.contains(&false), "{alone:?}");
        assert_eq!(together(&claims), alone);
    }

    #[test]
    fn odd_spellings_are_looked_at_by_themselves() {
        let mut high = [0xff; 32];
        (high[0], high[31]) = (0xee, 0x7f);
        let with_sign = |mut point: [u8; 32]| {
            point[31] |= 0x80;
            point
        };
        for point in [high, with_sign(high), with_sign(SMALL_ORDER[0]), with_sign(SMALL_ORDER[1])] {
            assert!(!is_spelled_once(&point), "{point:02x?}");
            let mut odd = claim(1, "a");
            let response = *odd.signature.0.s_bytes();
            odd.signature = Signature(ed25519_dalek::Signature::from_components(point, response));
            assert_eq!(together(&[odd, claim(2, "b"), claim(3, "c")]), [false, true, true]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn together_and_alone_are_of_one_mind(
            spoiled in prop::collection::vec((any::<u8>(), prop::option::of((0_usize..64, 0_u8..8)), any::<bool>()), 0..12),
        ) {
            let claims: Vec<Claim> = spoiled.into_iter().map(|(n, bit, other_text)| {
                let mut claim = claim(n, "what was said");
                if let Some((byte, bit)) = bit {
                    let mut bytes = claim.signature.to_bytes();
                    bytes[byte] ^= 1 << bit;
                    claim.signature = Signature(ed25519_dalek::Signature::from_bytes(&bytes));
                }
                if other_text {
                    claim.signed.push('!');
                }
                claim
            }).collect();
            let alone: Vec<bool> = claims.iter().map(|claim| claim.check().is_ok()).collect();
            prop_assert_eq!(together(&claims), alone);
        }
    }
}
