//! A few messages through each door that can be measured.

use crate::{json, load};

#[test]
fn each_door_can_be_measured() {
    for (door, names) in
        [("airc", &["office", "mcp", "airc"][..]), ("swarm", &["swarm, 1 hop", "swarm, 3 hops"])]
    {
        let args =
            ["bench", "--door", door, "--in-flight", "3", "--messages", "30", "--seconds", "5", "--json"];
        let ran = load(&args).output().unwrap();
        let rounds = json(&ran);
        assert_eq!(ran.status.code(), Some(0), "{door}: {rounds}");
        let measured: Vec<&str> =
            rounds.as_array().unwrap().iter().map(|round| round["door"].as_str().unwrap()).collect();
        assert_eq!(measured, names);
        assert!(rounds.as_array().unwrap().iter().all(|round| round["messages"] == 30), "{rounds}");
    }
}
