//! The hash by which turns are indexed under their author and content type. Names are long, and four indices of them were
//! larger than the content of the turns. Two names may share a hash, so queries compare the names as well.

/// The hash of a name (FNV-1a). Part of the database format.
#[must_use]
pub fn short(name: &str) -> i32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_in_existing_databases() {
        assert_eq!(short(""), 0x811c_9dc5_u32.cast_signed());
        assert_eq!(short("a"), 0xe40c_292c_u32.cast_signed());
        assert_eq!(short("foobar"), 0xbf9c_f968_u32.cast_signed());
    }
}
