//! Short ids of messages: their number, or a prefix of their id.

use posthaste_engine::views::Named;

use crate::harness::{Realm, member};

// F23
#[tokio::test]
async fn message_is_found_by_number_and_by_id_prefix() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let first = realm.send(&anna, "bert", "first").await.message;
    let second = realm.send(&bert, "anna", "second").await.message;
    let named = |who: &str, word: &str| realm.see(|view| view.message_named(&member(who), word));
    let whole = first.id.0.to_string();
    let alike = whole.bytes().zip(second.id.0.to_string().bytes()).take_while(|(a, b)| a == b).count();
    assert!((4..36).contains(&alike), "ids of one month begin alike: {whole} {}", second.id.0);
    for word in [&whole, &whole.replace('-', ""), &whole[..=alike], &whole[..35], &first.seq.to_string()] {
        assert_eq!(named("bert", word), Named::One(first.id), "{word}");
    }
    let both = Named::Several(vec![(second.id, second.seq), (first.id, first.seq)]);
    assert_eq!(named("anna", &whole[..alike]), both);
    for word in ["", "abc", "999", "not-an-id", "ffffffff", "00000000-0000-0000-0000-000000000000"] {
        assert_eq!(named("anna", word), Named::None, "{word}");
    }
}

// F23: what a caller may not see is neither found nor a candidate.
#[tokio::test]
async fn short_id_does_not_reveal_messages_of_others() {
    let realm = Realm::new();
    let [anna, carl] = realm.agents(["anna", "carl"]).await;
    realm.agents(["bert"]).await;
    let hidden = realm.send(&anna, "bert", "between two").await.message;
    let own = realm.send(&carl, "carl", "to myself").await.message;
    let named = |word: &str| realm.see(|view| view.message_named(&member("carl"), word));
    for word in [hidden.id.0.to_string(), hidden.seq.to_string()] {
        assert_eq!(named(&word), Named::None, "{word}");
    }
    let alike: String = own.id.0.to_string().chars().take(4).collect();
    assert!(hidden.id.0.to_string().starts_with(&alike));
    assert_eq!(named(&alike), Named::One(own.id));
}
