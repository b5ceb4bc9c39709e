//! Canonical bytes depend only on the value, not on its JSON text.

use posthaste_wire::canonical::{canonicalize, canonicalize_value, canonicalize_without};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON value; floats of any magnitude, and names from all Unicode planes, because UTF-8 and UTF-16 order differ.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let name = prop_oneof!["[a-c]{0,2}", "[\u{e000}-\u{ffff}\u{10000}-\u{10ffff}]{1,2}", any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The value with the members of all objects in reverse order; `serde_json` keeps it (`preserve_order`).
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, it)| (name.clone(), reversed(it))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn canonicalization_is_idempotent(value in any_value()) {
        let once = canonicalize_value(&value).unwrap();
        prop_assert_eq!(canonicalize(&once).unwrap(), once);
    }

    #[test]
    fn member_order_and_white_space_do_not_matter(value in any_value()) {
        let canonical = canonicalize_value(&value).unwrap();
        let other = reversed(&value);
        prop_assert_eq!(&canonicalize(&value.to_string()).unwrap(), &canonical);
        prop_assert_eq!(&canonicalize(&serde_json::to_string_pretty(&other).unwrap()).unwrap(), &canonical);
    }

    #[test]
    fn shuffled_members_canonicalize_equally(
        members in prop::collection::hash_map(any::<String>(), any::<i32>(), 0..12)
            .prop_map(|members| members.into_iter().collect::<Vec<_>>())
            .prop_flat_map(|members| (Just(members.clone()), Just(members).prop_shuffle()))
    ) {
        let canonical = |members: Vec<(String, i32)>| {
            let object: Map<String, Value> = members.into_iter().map(|(name, it)| (name, json!(it))).collect();
            canonicalize(&Value::Object(object).to_string()).unwrap()
        };
        prop_assert_eq!(canonical(members.0), canonical(members.1));
    }

    #[test]
    fn doubles_and_strings_round_trip(number in any::<f64>(), text in any::<String>()) {
        let value = json!({ "number": number, "text": text });
        let read: Value = serde_json::from_str(&canonicalize_value(&value).unwrap()).unwrap();
        prop_assert_eq!(read["number"].as_f64(), Some(number));
        prop_assert_eq!(read["text"].as_str(), Some(text.as_str()));
    }

    #[test]
    fn removed_member_leaves_no_trace(value in any_value(), signature in any_value()) {
        let mut envelope = json!({ "value": value });
        let unsigned = canonicalize_value(&envelope).unwrap();
        envelope["signature"] = signature;
        prop_assert_eq!(canonicalize_without(&envelope.to_string(), "signature").unwrap(), unsigned);
    }

    #[test]
    fn any_text_is_canonicalized_or_refused(text in any::<String>(), json in r#"[\[\]{}:,"a\\u0-9eE.+ -]{0,40}"#) {
        let _ = canonicalize(&text);
        let _ = canonicalize(&json);
    }
}

/// The table of RFC 8785, appendix B.
#[test]
fn doubles_of_the_rfc_are_written() {
    for (bits, expect) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonicalize_value(&json!(f64::from_bits(bits))).unwrap(), expect, "{bits:016x}");
    }
}

/// The samples of RFC 8785, sections 3.2.2 and 3.2.3.
#[test]
fn objects_of_the_rfc_are_written() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    assert_eq!(
        canonicalize(sample).unwrap(),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );

    let names = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
    assert_eq!(
        canonicalize(names).unwrap(),
        "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}"
    );
}
