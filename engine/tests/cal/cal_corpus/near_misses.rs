//! Statements that people and models write for CAL and that are none (`vectors/cal/near-misses.json`): how many of
//! them answer once what their refusal suggests is put in, once.

use grainstore::PrepareOptions;
use grainstore::cal::{Error, ExecuteOptions, QuerySource, Tier};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::cal_corpus::case::{As, NEAR_MISSES, near_misses, stores};
use crate::cal_corpus::stores::Built;

/// Of a hundred of each file that have a meaning in CAL, those that answer after one substitution.
const MENDED: [usize; 2] = [90, 80];

/// A statement that was meant to be CAL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NearMiss {
    query: String,
    /// The statements it may have meant; none where CAL has no way to say it.
    #[serde(default)]
    means: Vec<String>,
    /// It is CAL already.
    #[serde(default)]
    answers: bool,
    /// It begins as what CAL never does, so that nothing is suggested in its place.
    #[serde(default)]
    forbidden: bool,
    #[serde(default)]
    params: Map<String, Json>,
}

#[test]
fn what_is_suggested_answers_after_one_substitution() {
    let built = Built::of(&stores()["people"]);
    for (file, least) in NEAR_MISSES.into_iter().zip(MENDED) {
        let misses: Vec<NearMiss> = near_misses(file);
        assert!(misses.len() >= 60, "{}", misses.len());
        let (meant, mended) = substitutions(&built, &misses);
        assert!(mended * 100 >= meant * least, "{file}: {mended} of {meant}");
    }
}

/// How many of these have a meaning in CAL, and how many of those answer.
#[expect(clippy::print_stdout, reason = "a helper of a test, which shows what is not mended")]
fn substitutions(built: &Built, misses: &[NearMiss]) -> (usize, usize) {
    let (mut meant, mut mended, mut exact) = (0, 0, 0);
    for miss in misses {
        let query = built.labels.spell(&miss.query);
        let error = match ask(built, &query, &miss.params) {
            Ok(()) => {
                assert!(miss.answers, "{query} answers");
                continue;
            }
            Err(error) => error,
        };
        assert!(!miss.answers, "{query}: {error}");
        assert!(!error.suggestion().is_empty(), "{query}");
        if miss.forbidden {
            assert_eq!(error.example_query(), None, "{query}");
        }
        if miss.means.is_empty() {
            continue;
        }
        meant += 1;
        let Some(again) = substituted(&query, &error) else {
            println!("{query}\n    {error}. {}", error.suggestion());
            continue;
        };
        match ask(built, &again, &miss.params) {
            Ok(()) => mended += 1,
            Err(still) => {
                println!("{query}\n    {error}. {}\n    {again}\n    {still}", error.suggestion());
                continue;
            }
        }
        let hashes: Vec<_> =
            miss.means.iter().map(|means| hash(&built.labels.spell(means)).unwrap()).collect();
        if hash(&again).is_some_and(|hash| hashes.contains(&hash)) {
            exact += 1;
        } else {
            println!("{query}\n    {again}\n    is not {:?}", miss.means);
        }
    }
    println!(
        "{} near misses, {meant} with a meaning, {mended} answer, {exact} as meant",
        misses.len()
    );
    (meant, mended)
}

#[test]
fn what_near_misses_mean_is_cal() {
    let built = Built::of(&stores()["people"]);
    for miss in NEAR_MISSES.into_iter().flat_map(near_misses::<NearMiss>) {
        for means in &miss.means {
            let answer = ask(&built, &built.labels.spell(means), &miss.params);
            assert!(answer.is_ok(), "{means}: {}", answer.unwrap_err());
        }
    }
}

/// The statement with what the refusal suggests put in.
fn substituted(query: &str, error: &Error) -> Option<String> {
    if let Some(example) = error.example_query() {
        return Some(example.to_owned());
    }
    let meant = error.suggestion().strip_prefix("Did you mean \"")?.strip_suffix("\"?")?;
    let at = error.position()?;
    Some([query.get(..at.start)?, meant, query.get(at.end..)?].concat())
}

/// Asks a statement; one that writes is prepared, which checks it as far as can be without writing.
fn ask(built: &Built, query: &str, params: &Map<String, Json>) -> Result<(), Error> {
    // MY asks for a session of a user.
    let user = query.contains("MY ").then(|| "alice".to_owned());
    let session = built.session(&As { user, ..As::default() });
    let writes = QuerySource::read(query)?.statement()?.tier() > 0;
    let params: Vec<(String, Json)> =
        params.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    if writes {
        let now = Some(built.now);
        let preparing =
            PrepareOptions { tier: Tier::Evolve, params, now, ..PrepareOptions::default() };
        return session.prepare(query.as_bytes(), &preparing).map(|_| ());
    }
    let mut options = ExecuteOptions::at(built.now);
    for (name, value) in &params {
        options.params.bind(name, value)?;
    }
    session.ask_with(query.as_bytes(), &options).map(|_| ())
}

fn hash(query: &str) -> Option<String> {
    Some(QuerySource::read(query).ok()?.statement().ok()?.query_hash())
}
