//! Batch verification of Ed25519 signatures: one multiscalar multiplication over all verification equations, each
//! with a weight that no signer can choose. It takes about half the time of verifying the signatures one by one.

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::{IsIdentity as _, VartimeMultiscalarMul as _};
use curve25519_dalek::{EdwardsPoint, Scalar};
use sha2::{Digest as _, Sha512};

use super::{PublicKey, SMALL_ORDER, Signature, SigningError};

/// A signature to verify: its key and the text that it covers.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claimed signer's key.
    pub key: PublicKey,
    /// The signed text.
    pub signed: String,
    /// The signature.
    pub signature: Signature,
}

impl Claim {
    /// Verifies this signature alone.
    pub fn check(&self) -> Result<(), SigningError> {
        self.key.verify(self.signed.as_bytes(), &self.signature)
    }

    /// The verification equation; `None` if an encoding is not canonical, so that the signature is verified alone.
    fn term(&self) -> Option<Term> {
        let (point, response) = (self.signature.0.r_bytes(), self.signature.0.s_bytes());
        let response = Option::<Scalar>::from(Scalar::from_canonical_bytes(*response))?;
        let canonical = self.key.is_torsion_free && has_one_encoding(point) && !SMALL_ORDER.contains(point);
        let commitment = CompressedEdwardsY(*point).decompress().filter(|_| canonical)?;
        let challenge = Sha512::new().chain_update(point).chain_update(self.key.as_bytes());
        let challenge = challenge.chain_update(self.signed.as_bytes()).finalize();
        let challenge = Scalar::from_bytes_mod_order_wide(&challenge.into());
        Some(Term { response, challenge, key: self.key, commitment })
    }
}

/// One verification equation: `response · base = challenge · key + commitment`.
struct Term {
    response: Scalar,
    challenge: Scalar,
    key: PublicKey,
    commitment: EdwardsPoint,
}

/// Verifies all claims; the results are in the order of the claims and agree with [`Claim::check`], with one exception.
///
/// Weights are odd, so that a single signature that is wrong by a point of small order fails, as under strict
/// verification. The exception: a holder of the secret keys can make several such signatures whose errors cancel out.
/// That forges nothing, because only the key holders can sign these texts.
pub fn check_all(claims: &[&Claim]) -> Vec<Result<(), SigningError>> {
    if let [claim] = claims {
        return vec![claim.check()];
    }
    let terms: Vec<Option<Term>> = claims.iter().map(|claim| claim.term()).collect();
    let all_hold =
        terms.iter().flatten().count() > 1 && all_hold(&terms.iter().flatten().collect::<Vec<_>>());
    claims
        .iter()
        .zip(&terms)
        .map(|(claim, term)| if all_hold && term.is_some() { Ok(()) } else { claim.check() })
        .collect()
}

/// Whether all equations hold.
fn all_hold(terms: &[&Term]) -> bool {
    let mut transcript = Sha512::new();
    for term in terms {
        transcript.update(term.challenge.as_bytes());
        transcript.update(term.response.as_bytes());
    }
    let transcript = transcript.finalize();
    let (mut factors, mut points) = (Vec::new(), Vec::new());
    // Each key is multiplied once, however many texts it signed.
    let mut keys: Vec<(PublicKey, Scalar)> = Vec::new();
    let mut base = Scalar::ZERO;
    for (term, weight) in terms.iter().zip(weights(&transcript)) {
        base += weight * term.response;
        match keys.iter_mut().find(|(key, _)| *key == term.key) {
            Some((_, factor)) => *factor += weight * term.challenge,
            None => keys.push((term.key, weight * term.challenge)),
        }
        // The unreduced weight, which stays odd: only `commitment` can have a small-order component.
        factors.push(weight);
        points.push(term.commitment);
    }
    for (key, factor) in keys {
        factors.push(factor);
        points.push(key.point.to_edwards());
    }
    factors.push(-base);
    points.push(ED25519_BASEPOINT_POINT);
    EdwardsPoint::vartime_multiscalar_mul(factors, points).is_identity()
}

/// Odd pseudo-random 128-bit weights, derived from the hash of all equations.
fn weights(transcript: &[u8]) -> impl Iterator<Item = Scalar> {
    (0_u64..).flat_map(move |n| {
        let hash = Sha512::new().chain_update(transcript).chain_update(n.to_le_bytes()).finalize();
        let (numbers, _) = hash.as_chunks::<16>();
        let numbers: [_; 4] = std::array::from_fn(|at| u128::from_le_bytes(numbers[at]));
        numbers.map(|number| Scalar::from(number | 1))
    })
}

/// Whether the point has no other encoding: y is below the field prime, and x is not zero (then both signs are valid).
fn has_one_encoding(point: &[u8; 32]) -> bool {
    let mut y = *point;
    y[31] &= 0x7f;
    let above_prime = y[31] == 0x7f && y[1..31].iter().all(|byte| *byte == 0xff) && y[0] >= 0xed;
    !above_prime && y != SMALL_ORDER[0] && y != SMALL_ORDER[1]
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use proptest::prelude::*;

    use super::super::SecretKey;
    use super::*;

    fn check_batch(claims: &[Claim]) -> Vec<bool> {
        check_all(&claims.iter().collect::<Vec<_>>()).iter().map(Result::is_ok).collect()
    }

    fn secret(n: u8) -> SecretKey {
        SecretKey::from_seed(&[n; 32])
    }

    fn claim(n: u8, signed: &str) -> Claim {
        let secret = secret(n);
        Claim { key: secret.public(), signed: signed.to_owned(), signature: secret.sign(signed.as_bytes()) }
    }

    /// A signature that only the key holder can make: valid up to `flaw`, a point of small order.
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
    fn small_order_error_fails_among_valid_signatures() {
        for flaw in EIGHT_TORSION {
            let claims = [claim(1, "a"), flawed(2, "b", flaw), claim(3, "c")];
            let alone = claims.each_ref().map(|claim| claim.check().is_ok());
            assert_eq!(alone, [true, flaw.is_identity(), true], "{flaw:?}");
            assert_eq!(check_batch(&claims), alone, "{flaw:?}");
        }
    }

    #[test]
    fn key_with_small_order_component_is_verified_alone() {
        // Validity depends on the challenge; the batch must agree with single verification.
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
        assert_eq!(check_batch(&claims), alone);
    }

    #[test]
    fn non_canonical_points_are_verified_alone() {
        let mut high = [0xff; 32];
        (high[0], high[31]) = (0xee, 0x7f);
        let with_sign = |mut point: [u8; 32]| {
            point[31] |= 0x80;
            point
        };
        for point in [high, with_sign(high), with_sign(SMALL_ORDER[0]), with_sign(SMALL_ORDER[1])] {
            assert!(!has_one_encoding(&point), "{point:02x?}");
            let mut odd = claim(1, "a");
            let response = *odd.signature.0.s_bytes();
            odd.signature = Signature(ed25519_dalek::Signature::from_components(point, response));
            assert_eq!(check_batch(&[odd, claim(2, "b"), claim(3, "c")]), [false, true, true]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn batch_agrees_with_single_verification(
            cases in prop::collection::vec((any::<u8>(), prop::option::of((0_usize..64, 0_u8..8)), any::<bool>()), 0..12),
        ) {
            let claims: Vec<Claim> = cases.into_iter().map(|(n, bit, other_text)| {
                let mut claim = claim(n, "text");
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
            prop_assert_eq!(check_batch(&claims), alone);
        }
    }
}
