//! Searches that would take long: they end when nobody waits for them, and their parts say what they said
//! one by one.

use std::collections::BTreeSet;

use grainstore::cal::{Diversity, Query, Rerank};
use grainstore::{ContentAddress, PageOptions, Session};

use crate::search::kit::{addresses, belief, put, store};

/// The words of a query behind another, each a letter and a number.
fn number(at: usize) -> String {
    format!("{}{at}", char::from(b'a' + u8::try_from(at % 26).unwrap()))
}

fn crowd(session: &Session) -> Vec<ContentAddress> {
    let said = |at: usize| belief("all", &format!("common {} {}", number(at), number(at * 7)));
    session.put_batch((0..300).map(said).collect::<Vec<_>>()).unwrap();
    addresses(session, &Query::default().searching("common"))
}

#[test]
fn parts_of_a_search_are_answered_together_as_one_by_one() {
    let (_dir, session) = store();
    let all = crowd(&session);
    assert_eq!(all.len(), 300);
    put(&session, belief("other", "uncommon"));
    let asks = ["a*", "b1* +common", "common~ -c2", "\"common d3\"", "e*", "-a0 common", "a26~ b1"];
    let of = |ask: &str| -> BTreeSet<ContentAddress> {
        addresses(&session, &Query::default().searching(ask)).into_iter().collect()
    };
    let mut answers = 0;
    for one in asks {
        for other in asks {
            let both = Query::default().searching(one).searching(other).searching("common");
            let both: BTreeSet<_> = addresses(&session, &both).into_iter().collect();
            let expected: BTreeSet<_> = of(one).intersection(&of(other)).copied().collect();
            assert_eq!(both, expected, "{one} and {other}");
            answers += both.len();
        }
    }
    assert!(answers > 100, "{answers}");
}

#[test]
fn a_search_ends_when_nobody_waits_for_it_also_where_it_finds_nothing() {
    let (_dir, session) = store();
    crowd(&session);
    put(&session, belief("x", &format!("{} y", "x ".repeat(4_000))));
    let x = "x ".repeat(60);
    let fuzzy: Vec<String> = (0..40).map(|at| format!("letters{at}zzz~2")).collect();
    for text in [format!("\"{x}common\""), format!("\"{x}y y\""), fuzzy.join(" ")] {
        let query = Query::default().searching(text.as_str());
        let mut page = PageOptions::first(5);
        let answer = session.query(&query, &page).unwrap();
        assert!(answer.results.is_empty(), "{text:.40}");
        page.cancel.cancel();
        let stopped = session.query(&query, &page).map(drop).map_err(|error| error.code());
        assert_eq!(stopped, Err("ERR_TIMEOUT"), "{text:.40}");
        page.cancel = grainstore::cal::CancelHandle::new();
        assert!(session.query(&query, &page).is_ok(), "{text:.40}");
    }
}

#[test]
fn unlike_answers_are_chosen_among_hundreds_and_no_answer_is_lost() {
    let (_dir, session) = store();
    let all: BTreeSet<_> = crowd(&session).into_iter().collect();
    let rerank = Rerank { diversity: Some(Diversity::Mmr { lambda: 0.5 }), ..Rerank::default() };
    let diverse = addresses(&session, &Query::default().searching("common").reranked(rerank));
    assert_eq!(diverse.len(), 300);
    assert_eq!(diverse.into_iter().collect::<BTreeSet<_>>(), all);
}
