//! Whether two patterns can match the same path: one table walk, used for segments and again for characters.

use super::{Atom, Segment, Steps};

/// Whether a path exists that both segment patterns match. Returns false once the steps are exhausted.
pub(super) fn paths(a: &[Segment], b: &[Segment], steps: &Steps) -> bool {
    let many = |segment: &Segment| matches!(segment, Segment::AnyDepth);
    intersect(a, b, many, |a, b| names(a, b, steps), steps)
}

/// Whether a name of one segment exists that both match; `**` is handled by the caller.
fn names(a: &Segment, b: &Segment, steps: &Steps) -> bool {
    match (a, b) {
        (Segment::AnyDepth, _) | (_, Segment::AnyDepth) => true,
        (Segment::Literal(a), Segment::Literal(b)) => a == b,
        (Segment::Literal(text), Segment::Wild(atoms)) | (Segment::Wild(atoms), Segment::Literal(text)) => {
            let literal: Vec<Atom> = text.chars().map(Atom::Char).collect();
            atoms_intersect(atoms, &literal, steps)
        }
        (Segment::Wild(a), Segment::Wild(b)) => atoms_intersect(a, b, steps),
    }
}

fn atoms_intersect(a: &[Atom], b: &[Atom], steps: &Steps) -> bool {
    intersect(a, b, |atom| matches!(atom, Atom::Star), |a, b| characters(a, b, steps), steps)
}

fn characters(a: &Atom, b: &Atom, steps: &Steps) -> bool {
    match (a, b) {
        // Classes are never empty, so a wildcard always finds a character that the other side matches.
        (Atom::Star | Atom::AnyChar, _) | (_, Atom::Star | Atom::AnyChar) => true,
        (Atom::Char(a), Atom::Char(b)) => a == b,
        (Atom::Char(c), Atom::Class(class)) | (Atom::Class(class), Atom::Char(c)) => class.contains(*c),
        (Atom::Class(a), Atom::Class(b)) => {
            steps.spend(a.size() + b.size());
            a.meets(b)
        }
    }
}

/// Whether a sequence exists that both patterns match, where `many` items match any run, also an empty one, and any
/// other two items match a common element if they `meet`.
///
/// `reach[j]` says that the items of `a` read so far and the first `j` items of `b` can match the same prefix. Each
/// pair of positions is visited once, so the walk is O(|a| · |b|) without backtracking. Each row of the table is paid
/// for before it is walked.
fn intersect<T>(
    a: &[T],
    b: &[T],
    many: impl Fn(&T) -> bool,
    meet: impl Fn(&T, &T) -> bool,
    steps: &Steps,
) -> bool {
    let end = b.len();
    let mut reach = vec![false; end + 1];
    let mut next = vec![false; end + 1];
    reach[0] = true;
    for x in a {
        if !steps.spend(end + 1) {
            return false;
        }
        let x_many = many(x);
        next.fill(false);
        for (j, y) in b.iter().enumerate() {
            if !reach[j] {
                continue;
            }
            if x_many || many(y) {
                // The run of one side ends here, or matches the other side's item: in both cases either item is passed.
                next[j] = true;
                reach[j + 1] = true;
            } else if meet(x, y) {
                next[j + 1] = true;
            }
        }
        next[end] |= reach[end] && x_many;
        if !next.contains(&true) {
            return false;
        }
        std::mem::swap(&mut reach, &mut next);
    }
    // `a` is used up: the rest of `b` must be able to match nothing.
    let matched = reach.iter().rposition(|&reached| reached).unwrap_or(0);
    b[matched..].iter().all(many)
}
