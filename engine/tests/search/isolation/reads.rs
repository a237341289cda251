//! Every way to read, in one table. Whoever adds a way to a `Session` adds it here: `property` asks all of
//! them, and `whole` finds one that is missing.

use std::collections::BTreeSet;
use std::fs;

use grainstore::cal::{
    CancelHandle, Diversity, ExecuteOptions, Expansion, Near, Query, Rerank, Tier,
};
use grainstore::format::DecodeOptions;
use grainstore::format::container::{Compression, Container};
use grainstore::graph::{BoundedList, EdgeQuery, GraphOptions, Relative};
use grainstore::{
    AsOf, ContentAddress, EpochMs, ExportOptions, PageOptions, PrepareOptions, Session,
    StreamOptions,
};
use serde_json::json;

use crate::isolation::kit::{NOW, Place, everything, grain};
use crate::isolation::steps::{AGENT, COMMON};

use crate::isolation::told::Told;

/// What is asked, by whom.
pub(crate) struct Asking<'a> {
    pub(crate) place: &'a Place,
    pub(crate) session: &'a Session,
    /// A grain that is asked about.
    pub(crate) address: ContentAddress,
    /// A word that stands in it alone.
    pub(crate) secret: &'a str,
}

/// What a way to read asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The store.
    Everything,
    /// One grain.
    Grain,
}

pub(crate) struct Read {
    pub(crate) name: &'static str,
    pub(crate) about: About,
    /// The methods of a session it goes through.
    pub(crate) methods: &'static [&'static str],
    pub(crate) ask: fn(&Asking<'_>, &mut Told),
}

macro_rules! reads {
    ($($name:literal $about:ident [$($method:literal),*] $ask:expr;)*) => {
        &[$(Read {
            name: $name,
            about: About::$about,
            methods: &[$($method),*],
            ask: $ask,
        }),*]
    };
}

/// All of them.
pub(crate) const READS: &[Read] = reads! {
    "get" Grain ["get", "signature"] |on, told| {
        told.outcome(on.session.get(&on.address), |told, stored| {
            told.stored(&stored);
            told.debug(&on.session.signature(&stored));
        });
    };
    "inspect" Grain ["inspect"] |on, told| {
        told.outcome(on.session.inspect(&on.address), |told, stored| told.stored(&stored));
    };
    "embedding_refs" Grain ["embedding_refs"] |on, told| {
        told.outcome(on.session.embedding_refs(&on.address), |told, refs| told.debug(&refs));
    };
    "get_batch" Grain ["get_batch"] |on, told| {
        let got = on.session.get_batch(&[on.address, on.address]).unwrap();
        told.shown = Some(BTreeSet::new());
        got.iter().flatten().for_each(|stored| told.stored(stored));
    };
    "exists" Grain ["exists"] |on, told| {
        let shown = on.session.exists(&on.address).unwrap().then_some(on.address);
        told.shown = Some(shown.into_iter().collect());
    };
    "resolve" Grain ["resolve"] |on, told| {
        let digits = on.address.to_string();
        told.shown = Some(BTreeSet::new());
        for prefix in [digits.get(..8), digits.get(..21), Some(&*digits)] {
            let found = on.session.resolve(prefix.unwrap(), 9).unwrap();
            found.into_iter().for_each(|address| told.grain(address));
        }
    };
    "history" Grain ["history"] |on, told| {
        told.outcome(on.session.history(&on.address), |told, versions| {
            versions.iter().for_each(|version| told.stored(version));
        });
    };
    "older_versions" Grain ["older_versions"] |on, told| {
        let versions = on.session.older_versions(&on.address, 50);
        told.outcome(versions, |told, found| found.items.iter().for_each(|one| told.stored(one)));
    };
    "newer_versions" Grain ["newer_versions"] |on, told| {
        let versions = on.session.newer_versions(&on.address, 50);
        told.outcome(versions, |told, found| found.items.iter().for_each(|one| told.stored(one)));
    };
    "history_of" Everything ["history_of"] |on, told| {
        told.outcome(on.session.history_of("hub", "knows", None, None), |told, versions| {
            told.shown = Some(BTreeSet::new());
            versions.iter().for_each(|version| told.stored(version));
        });
    };
    "history_of as it was" Everything ["history_of"] |on, told| {
        let at = Some(EpochMs::new(NOW));
        told.outcome(on.session.history_of("hub", "knows", Some("a"), at), |told, versions| {
            versions.iter().for_each(|version| told.stored(version));
        });
    };
    "latest" Everything ["latest", "latest_as_of"] |on, told| {
        let then = AsOf { known_at: Some(EpochMs::new(NOW)), ..AsOf::default() };
        for latest in [
            on.session.latest("hub", "knows"),
            on.session.latest_as_of("hub", "knows", None, &then),
            on.session.latest_as_of("hub", "knows", Some("a:b"), &AsOf::default()),
        ] {
            told.outcome(latest, |told, found| found.iter().for_each(|one| told.stored(one)));
        }
    };
    "query" Everything ["query"] |on, told| asked(on, told, &everything());
    "query, current" Everything ["query"] |on, told| asked(on, told, &Query::default());
    "query, by words" Everything ["query"] |on, told| {
        asked(on, told, &Query::default().searching(COMMON));
    };
    "query, by vector" Everything ["query"] |on, told| {
        asked(on, told, &Query::default().nearing(near()));
    };
    "query, by both" Everything ["query"] |on, told| {
        asked(on, told, &Query::default().nearing(near()).searching(COMMON));
    };
    "query, reranked" Everything ["query"] |on, told| {
        let diversity = Some(Diversity::Mmr { lambda: 0.5 });
        let rerank = Rerank { diversity, recency_ms: Some(1_000), access: true };
        asked(on, told, &Query::default().searching(COMMON).reranked(rerank));
    };
    "query, by a secret" Grain ["query"] |on, told| {
        asked(on, told, &Query::default().searching(on.secret));
    };
    "query, by links" Grain ["query"] |on, told| {
        let expansion = Expansion { freely: true, hops: 3, ..Expansion::default() };
        asked(on, told, &everything().expanding(expansion));
        asked(on, told, &everything().among(vec![on.address]).expanding(expansion));
        asked(on, told, &everything().searching(on.secret).expanding(expansion));
        told.shown = None;
    };
    "query, by address" Grain ["query"] |on, told| {
        asked(on, told, &everything().at_address(on.address));
    };
    "explain" Everything ["explain"] |on, told| {
        for query in [everything(), Query::default().searching("c* zq*"), everything().nearing(near())] {
            told.outcome(on.session.explain(&query), |told, plan| told.json(&plan));
        }
    };
    "ask" Everything ["ask", "ask_with", "reading"] |on, told| {
        for statement in [
            "RECALL | LIMIT 100",
            "RECALL WITH superseded | LIMIT 100",
            "RECALL MY beliefs",
            "RECALL beliefs WHERE user_id = \"bob\"",
            "RECALL LIKE \"common\" WITH explanation",
            "RECALL events THREAD \"talk\"",
            "RECALL beliefs | SUBJECTS",
            "RECALL beliefs | HASHES",
            "RECALL beliefs ABOUT \"hub\" CONTRADICTIONS",
            "RECALL beliefs WHERE subject IN (RECALL beliefs | SUBJECTS)",
            "RECALL beliefs AS sml",
            "ASSEMBLE FROM beliefs: (RECALL beliefs), talk: (RECALL events THREAD \"talk\")",
            "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { HEADER { {{assembly.grain_count}} {{#each}}{{grain.content}}{{/each}} } }",
            "DESCRIBE templates",
            "HISTORY WHERE subject = \"hub\" AND relation = \"knows\"",
            "EXPLAIN RECALL LIKE \"common\"",
            "DESCRIBE server",
        ] {
            said(on, told, statement);
        }
    };
    "ask in two phases" Everything ["prepare", "execute"] |on, told| {
        for statement in ["RECALL | LIMIT 100", "RECALL beliefs WHERE user_id = \"bob\""] {
            let prepared = on.session.prepare(statement.as_bytes(), &PrepareOptions::default()).unwrap();
            told.bytes(&serde_json::to_vec(&prepared.plan).unwrap());
            told.json(&on.session.execute(&prepared.token).unwrap());
        }
    };
    "stream" Everything ["stream", "ask_streaming", "execute_streaming"] |on, told| {
        let statement = "ASSEMBLE FROM beliefs: (RECALL beliefs), talk: (RECALL events LIKE \"common\") STREAM";
        for event in on.session.stream(statement, StreamOptions::default()).unwrap() {
            told.json(&event);
        }
        let prepared = on.session.prepare(statement.as_bytes(), &PrepareOptions::default()).unwrap();
        let answer = on.session.execute_streaming(&prepared.token, told).unwrap();
        told.json(&answer);
    };
    "ask about a grain" Grain ["ask"] |on, told| {
        let address = on.address;
        for statement in [
            format!("EXISTS sha256:{address}"),
            format!("EXISTS sha256:{}", address.to_string().split_at(12).0),
            format!("HISTORY sha256:{address}"),
            format!("RECALL events THREAD FROM sha256:{address}"),
            format!("RECALL LIKE \"{}\"", on.secret),
            format!("EXPLAIN RECALL ABOUT \"{}\"", on.secret),
            format!("EXPLAIN SUPERSEDE sha256:{address} SET object = \"o\" REASON \"r\""),
            format!("EXPLAIN REVERT sha256:{address} REASON \"r\""),
        ] {
            said(on, told, &statement);
        }
    };
    "neighbours" Everything ["neighbours"] |on, told| {
        for node in ["hub", AGENT] {
            told.outcome(on.session.neighbours(node, &EdgeQuery::default()), |told, edges| {
                edges.items.iter().for_each(|edge| told.grain(edge.address));
                told.json(&edges);
            });
        }
        told.shown.get_or_insert_default();
    };
    "paths" Grain ["paths"] |on, told| {
        let object = format!("{} {COMMON}", on.secret);
        told.outcome(on.session.paths("hub", &object, 3, &EdgeQuery::default()), |told, found| {
            told.json(&found);
        });
    };
    "ancestry" Grain ["ancestry"] |on, told| {
        told.outcome(on.session.ancestry(&on.address, 9, 99, &graph_options()), relatives);
    };
    "children" Grain ["children"] |on, told| {
        told.outcome(on.session.children(&on.address, 99, &graph_options()), relatives);
    };
    "related" Grain ["related"] |on, told| {
        told.outcome(on.session.related(&on.address, None, 99, &graph_options()), |told, found| {
            found.items.iter().for_each(|one| told.grain(one.address));
        });
    };
    "thread" Grain ["thread", "thread_from_state"] |on, told| {
        for thread in [
            on.session.thread(&on.address, &graph_options()),
            on.session.thread_from_state(&on.address, &graph_options()),
        ] {
            told.outcome(thread, |told, thread| {
                thread.messages.iter().for_each(|message| told.grain(message.address));
                told.debug(&thread);
            });
        }
    };
    "thread_of_session" Everything ["thread_of_session"] |on, told| {
        told.outcome(on.session.thread_of_session("talk", &graph_options()), |told, thread| {
            told.shown = Some(BTreeSet::new());
            thread.messages.iter().for_each(|message| told.grain(message.address));
            told.debug(&thread);
        });
    };
    "agents" Grain ["owner", "capabilities", "agents_with", "handoffs"] |on, told| {
        let words = format!("{} {COMMON}", on.secret);
        told.outcome(on.session.owner(AGENT), |told, owner| told.json(&owner));
        told.outcome(on.session.capabilities(AGENT), |told, found| told.json(&found));
        told.outcome(on.session.agents_with(&words), |told, found| told.json(&found));
        told.outcome(on.session.handoffs("talk"), |told, found| told.json(&found));
    };
    "audit" Everything ["audit", "audit_to", "audit_by", "audit_head"] |on, told| {
        told.outcome(on.session.audit(None, 1_000), |told, entries| told.debug(&entries));
        let part = on.session.audit_to(None, 500, 1_000, &CancelHandle::new());
        told.outcome(part, |told, entries| told.debug(&entries));
        told.outcome(on.session.audit_by("did:web:x", None, 9), |told, found| told.debug(&found));
        told.outcome(on.session.audit_head(), |told, (count, _)| told.debug(&count));
    };
    "figures" Everything [] |on, told| {
        told.outcome(on.session.store().stats(), |told, stats| told.json(&stats));
        told.debug(on.session);
        told.debug(on.session.options());
    };
    "export" Everything ["export", "export_unnamed"] |on, told| {
        let file = on.place.dir.path().join("export.mg");
        let how = ExportOptions { compression: Compression::None, ..ExportOptions::default() };
        told.outcome(on.session.export(&file, &everything(), &how), |told, exported| {
            let bytes = fs::read(&file).unwrap();
            told.packed(&bytes);
            told.shown = Some(BTreeSet::new());
            let container = Container::open(bytes, &DecodeOptions::default()).unwrap();
            container.entries().unwrap().for_each(|entry| told.grain(entry.unwrap().address()));
            assert_eq!(told.shown.as_ref().map(BTreeSet::len), exported.exported.try_into().ok());
        });
    };
    "refusals" Grain ["try_supersede", "ask_with"] |on, told| {
        // What is refused says so in words that name nothing. The rest would be done.
        let mut new = json!({ "type": "belief", "subject": "hub", "relation": "knows",
            "object": "new", "confidence": 0.5, "created_at": NOW });
        if let Some(own) = &on.session.options().namespace {
            new["namespace"] = json!(own);
        }
        let trial = on.session.try_supersede(&on.address, grain(&new), Some("why")).unwrap();
        trial.refusal.iter().for_each(|error| told.error(error));
        if !on.session.exists(&on.address).unwrap() {
            let (session, address) = (on.session, &on.address);
            let statement = format!("SUPERSEDE sha256:{address} SET object = \"x\" REASON \"why\"");
            let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
            let error = session.ask_with(statement.as_bytes(), &options).unwrap_err();
            told.bytes(format!("{error} {error:?}").as_bytes());
            told.outcome(session.supersede(address, grain(&new), None), |_, _| panic!("done"));
            told.outcome(session.contradict(address, "why", None), |_, ()| panic!("done"));
            told.outcome(session.embed(address, vec![]), |_, ()| panic!("done"));
        }
    };
};

fn near() -> Near {
    Near { model: None, values: vec![1.0, 2.0].into() }
}

fn graph_options() -> GraphOptions {
    GraphOptions { include_superseded: true, ..GraphOptions::default() }
}

/// Every page of an answer, three rows at a time.
fn asked(on: &Asking<'_>, told: &mut Told, query: &Query) {
    let mut cursor = None;
    loop {
        let page =
            PageOptions { explain: true, count_to: 100, ..PageOptions::first(3).after(cursor) };
        let answer = match on.session.query(query, &page) {
            Ok(answer) => answer,
            Err(error) => return told.error(&error),
        };
        told.answer(&answer);
        cursor = answer.next_cursor;
        if cursor.is_none() {
            return;
        }
    }
}

fn said(on: &Asking<'_>, told: &mut Told, statement: &str) {
    match on.session.ask(statement) {
        Ok(response) => told.json(&response),
        Err(error) => {
            // Each is a statement of the language.
            assert!(!["CAL-E002", "CAL-E004"].contains(&error.code()), "{statement}: {error}");
            told.bytes(format!("{error} {error:?}").as_bytes());
        }
    }
}

fn relatives(told: &mut Told, found: BoundedList<Relative>) {
    told.debug(&found);
    found.items.into_iter().for_each(|one| told.grain(one.address));
}
