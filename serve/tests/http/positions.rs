//! The place of a copy in its journal, with answers and asked for by requests.

use std::sync::Arc;
use std::time::Duration;

use grainstore::journal::{Journal, MemoryJournal, ShardId};
use grainstore::{OpenOptions, Store};
use grainstore_rpc::StoreSocket;
use serde_json::{Value, json};

use crate::kit::{Answer, Served, belief};

const SHARD: ShardId = ShardId(1);
const LONG: Duration = Duration::from_secs(600);

/// A copy that is served over HTTP, as that of a node is.
struct Copy {
    served: Served,
    store: Store,
    _socket: StoreSocket,
}

impl Copy {
    fn open(options: &OpenOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), options).unwrap();
        let socket = StoreSocket::open(&store, options).unwrap();
        let short = |http: &mut grainstore_serve::HttpOptions| {
            http.timeout = Duration::from_millis(500);
        };
        Self { served: Served::on(directory, OpenOptions::new(), short), store, _socket: socket }
    }

    fn get(&self, token: &str, path: &str, at_least: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", &*bearer), ("Grainstore-At-Least", at_least)];
        self.served.raw(self.served.head(&format!("GET {path}"), &headers))
    }
}

fn position(answer: &Answer) -> Option<&str> {
    let mut headers = answer.headers.iter();
    headers.find(|(name, _)| name == "grainstore-position").map(|(_, value)| value.as_str())
}

#[test]
fn what_one_copy_answered_another_shows_when_it_is_asked_for() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let lead = journal.lead(SHARD, "one", LONG).unwrap();
    let options = OpenOptions::new().create(true);
    let leader = Copy::open(&options.clone().leading(Arc::clone(&journal), lead, LONG));
    let follower = Copy::open(&options.following(Arc::clone(&journal), SHARD));
    let (writes, reads) = (leader.served.operator(), follower.served.operator());
    let grain = json!({ "grain": belief("a", "ann", "tea") });
    let put = leader.served.post(&writes, "/v1/grains", &grain);
    assert_eq!(put.status, 201, "{put:?}");
    let path = format!("/v1/grains/{}", put.json()["address"].as_str().unwrap());
    let at = position(&put).unwrap();
    // Nobody follows here but by asking.
    let before = follower.served.get(&reads, &path);
    assert_eq!(before.status, 404);
    let after = follower.get(&reads, &path, at);
    assert_eq!((after.status, position(&after)), (200, Some(at)), "{after:?}");
    let grain = json!({ "grain": belief("a", "ann", "coffee") });
    let refused = follower.served.post(&reads, "/v1/grains", &grain);
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("ERR_NOT_LEADER")));
    assert!(refused.headers.iter().all(|(name, _)| name != "retry-after"), "{refused:?}");
    assert!(refused.json()["detail"].as_str().unwrap().contains("one leads"), "{refused:?}");
    let put = leader.served.post(&writes, "/v1/grains", &grain);
    let path = format!("/v1/grains/{}", put.json()["address"].as_str().unwrap());
    assert_eq!(follower.get(&reads, &path, "latest").status, 200);
    let late = follower.get(&reads, &path, "1:1000000");
    assert_eq!((late.status, &late.json()["code"]), (503, &json!("ERR_TIMEOUT")));
    let other = follower.get(&reads, &path, "2:1");
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("ERR_CONFLICT")));
    for wrong in ["", "1", "1:", "-1:4", "newest", "1:2:3", "1:99999999999999999999999"] {
        assert_eq!(follower.get(&reads, &path, wrong).status, 400, "{wrong:?}");
    }
    // The command and other hosts have it beside the result.
    let client = grainstore_rpc::Client::open(follower.served.path(), Default::default()).unwrap();
    let place: Value = client.call("position", &json!({})).unwrap();
    let own = follower.store.position().unwrap().unwrap().to_string();
    assert_eq!(place, json!({ "position": own, "role": "follower" }));
    let mut following = grainstore_rpc::Following::default();
    let nothing = serde_json::value::to_raw_value(&json!({})).unwrap();
    client.call_following("stats", &nothing, &mut following).unwrap();
    assert_eq!(following.position.map(|at| at.to_string()), Some(own));
}

#[test]
fn a_store_without_a_journal_has_no_places() {
    let served = Served::new();
    let token = served.operator();
    let address = served.put(&token, "a", "ann", "tea");
    let path = format!("/v1/grains/{address}");
    assert_eq!(position(&served.get(&token, &path)), None);
    let bearer = format!("Bearer {token}");
    let ask = |at_least| {
        let headers = [("Authorization", &*bearer), ("Grainstore-At-Least", at_least)];
        served.raw(served.head(&format!("GET {path}"), &headers)).status
    };
    assert_eq!((ask("latest"), ask("1:1")), (200, 409));
}
