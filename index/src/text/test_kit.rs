//! Helpers of the tests: documents and queries from lists, and a store whose expected hits are computed by
//! reading every live document.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::clause::{Clause, Occur, TermMatch};
use super::document::{Document, DocumentTerm};
use super::indexed_document::IndexedDocument;
use super::inverted_index::InvertedIndex;
use super::page_tag::MAX_PAGE_BYTES;
use super::query::FullTextQuery;
use super::score::{CollectionStats, K1, LengthNorms, idf, length_code};
use super::test_disk::MemoryDisk;
use super::{Hit, MAX_EXPANSIONS, Manifest, PageCache, SearchAfter};
use crate::posting::Sequence;

/// A document of these words in this order, each of the same weight.
pub(super) fn words(words: &[&str], weight: u32) -> IndexedDocument {
    let word = |(place, term): (u32, &&str)| DocumentTerm {
        term: (*term).into(),
        weight,
        lent: 0,
        places: [place].into(),
    };
    IndexedDocument::join(&(0..).zip(words).map(word).collect::<Document>(), &[])
}

pub(super) fn clause(occur: Occur, ask: TermMatch) -> Clause {
    Clause { occur, ask }
}

pub(super) fn word(term: &str) -> TermMatch {
    TermMatch::Word(vec![term.into()])
}

/// A query of which any word matches.
pub(super) fn any(terms: &[&str]) -> FullTextQuery {
    terms.iter().map(|term| clause(Occur::Should, word(term))).collect()
}

/// The address of a grain: in another order than the sequences.
pub(super) fn address(sequence: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mixed = (sequence + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[..8].copy_from_slice(&(mixed ^ (mixed >> 29)).to_be_bytes());
    bytes[24..].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

/// A change of the log.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) sequence: u64,
    pub(super) joined: Option<IndexedDocument>,
    pub(super) erase: bool,
}

/// A full text with its log, its files, and the live documents as a model.
pub(super) struct Store {
    pub(super) texts: InvertedIndex,
    pub(super) live: BTreeMap<u64, IndexedDocument>,
    pub(super) log: Vec<Change>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) manifest: Option<Vec<u8>>,
    pub(super) disk: Arc<MemoryDisk>,
    pub(super) cache: Arc<PageCache>,
}

impl Store {
    pub(super) fn new() -> Self {
        let disk: Arc<MemoryDisk> = Arc::default();
        // A few pages, so that most reads find another page there.
        let cache = Arc::new(PageCache::new(4 * MAX_PAGE_BYTES));
        Self {
            texts: InvertedIndex::with_store(1, disk.store(&cache)).unwrap(),
            live: BTreeMap::new(),
            log: Vec::new(),
            files: BTreeMap::new(),
            manifest: None,
            disk,
            cache,
        }
    }

    pub(super) fn apply(&mut self, change: Change) {
        match change.joined.clone().filter(|joined| !joined.is_empty()) {
            Some(joined) if !change.erase => self.live.insert(change.sequence, joined),
            _ => self.live.remove(&change.sequence),
        };
        set(&mut self.texts, &change);
        self.log.push(change);
    }

    pub(super) fn set(&mut self, sequence: u64, joined: IndexedDocument) {
        self.apply(Change { sequence, joined: Some(joined), erase: false });
    }

    pub(super) fn remove(&mut self, sequence: u64, erase: bool) {
        self.apply(Change { sequence, joined: None, erase });
    }

    /// Folds, with changes between its start and its end, and saves.
    pub(super) fn fold(&mut self, meanwhile: Vec<Change>) {
        let stamp = (self.log.len() as u64).to_le_bytes();
        let fold = self.texts.freeze(&stamp).unwrap();
        meanwhile.into_iter().for_each(|change| self.apply(change));
        let saving = self.texts.adopt(fold.run().unwrap()).unwrap();
        if let Some(name) = saving.write {
            let written = || self.disk.files.lock().unwrap().get(&name).cloned();
            let bytes = self.texts.file(&name).map_or_else(|| written().unwrap(), <[u8]>::to_vec);
            self.files.insert(name, bytes);
        }
        saving.remove.iter().for_each(|name| assert!(self.files.remove(name).is_some()));
        assert_eq!(self.files.keys().cloned().collect::<BTreeSet<_>>(), {
            self.texts.file_names().into_iter().collect()
        });
        self.manifest = Some(saving.manifest);
    }

    /// Opens the last saved state, and replays the changes since.
    pub(super) fn reopen(&mut self) {
        let Some(manifest) = &self.manifest else { return };
        let manifest = Manifest::decode(manifest).unwrap();
        let from = u64::from_le_bytes(manifest.log_position().try_into().unwrap());
        self.texts = InvertedIndex::open_files(&manifest, &self.disk.store(&self.cache)).unwrap();
        for change in &self.log[usize::try_from(from).unwrap()..] {
            set(&mut self.texts, change);
        }
    }

    /// The hits of the full text that pass the filter.
    pub(super) fn ask(
        &self,
        question: &FullTextQuery,
        limit: usize,
        after: Option<SearchAfter>,
        filter: fn(u64) -> bool,
    ) -> Vec<Hit> {
        let mut asked = BTreeSet::new();
        let mut judge = |sequence: Sequence| {
            assert!(self.live.contains_key(&sequence.get()), "a dead one is no candidate");
            assert!(asked.insert(sequence), "asked twice about one");
            Ok(filter(sequence.get()).then(|| address(sequence.get())))
        };
        self.texts.prepare(question).unwrap().search(limit, after, &mut judge).unwrap()
    }

    /// Compares all hits of a query with those of the model.
    pub(super) fn check(&self, question: &FullTextQuery) {
        let truth = self.truth(question);
        assert_eq!(bits(&self.ask(question, usize::MAX, None, |_| true)), bits(&truth));
        for limit in [0, 1, 3, 10] {
            let hits = self.ask(question, limit, None, |_| true);
            assert_eq!(bits(&hits), bits(&truth[..limit.min(truth.len())]), "the best {limit}");
        }
        let filtered: Vec<Hit> =
            truth.iter().filter(|hit| hit.sequence.get() % 7 == 3).copied().collect();
        let hits = self.ask(question, 5, None, |sequence| sequence % 7 == 3);
        assert_eq!(bits(&hits), bits(&filtered[..filtered.len().min(5)]));
        let all = |_| Ok(Some([0; 32]));
        assert_eq!(
            self.texts.prepare(question).unwrap().count_matches(&mut all.clone(), 4).unwrap(),
            truth.len().min(4)
        );
        let count = self
            .texts
            .prepare(question)
            .unwrap()
            .count_matches(&mut all.clone(), usize::MAX)
            .unwrap();
        assert_eq!(count, truth.len());
        let ceiling = self.texts.prepare(question).unwrap().max_score();
        assert!(truth.iter().all(|hit| hit.score > 0.0 && hit.score <= ceiling));
        let scores: BTreeMap<u64, u64> =
            truth.iter().map(|hit| (hit.sequence.get(), hit.score.to_bits())).collect();
        for sequence in self.live.keys().step_by(1 + self.live.len() / 50) {
            let score =
                self.texts.prepare(question).unwrap().score_of(Sequence::new(*sequence)).unwrap();
            assert_eq!(score.map(f64::to_bits), scores.get(sequence).copied());
            let asked = self.texts.prepare(question).unwrap();
            assert_eq!(asked.is_match(Sequence::new(*sequence)).unwrap(), score.is_some());
        }
    }

    /// Compares pages of hits with all hits.
    pub(super) fn check_pages(&self, question: &FullTextQuery, limit: usize) {
        let truth = self.truth(question);
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = self.ask(question, limit, after, |_| true);
            let Some(last) = page.last() else { break };
            after = Some(SearchAfter { score: last.score, address: last.address });
            pages.extend(page);
        }
        assert_eq!(bits(&pages), bits(&truth));
    }

    /// All hits, by reading every document.
    pub(super) fn truth(&self, question: &FullTextQuery) -> Vec<Hit> {
        let length = self.live.values().map(|joined| u64::from(joined.length())).sum();
        let extent = CollectionStats { documents: self.live.len() as u64, total_length: length };
        let norms = LengthNorms::new(extent.average_length());
        let mut clauses: Vec<(&Clause, Vec<Naive>)> =
            question.clauses().iter().map(|clause| (clause, self.naive(clause))).collect();
        clauses.sort_by_key(|(clause, _)| clause.occur == Occur::Boost);
        let mut hits = Vec::new();
        for (sequence, joined) in &self.live {
            let share = |naive: &Naive| naive.share(joined, &norms);
            let (mut score, mut answers) = (0.0, true);
            for (clause, naives) in &clauses {
                if clause.occur == Occur::MustNot {
                    answers &= naives.is_empty() || !naives.iter().all(|naive| share(naive) > 0.0);
                    continue;
                }
                if clause.occur == Occur::Boost && score <= 0.0 {
                    continue;
                }
                for naive in naives {
                    score += (K1 + 1.0) * naive.rarity * share(naive);
                    answers &= clause.occur != Occur::Must || share(naive) > 0.0;
                }
            }
            if answers && score > 0.0 {
                let address = address(*sequence);
                hits.push(Hit { sequence: Sequence::new(*sequence), address, score });
            }
        }
        hits.sort_by(|a, b| match b.score.total_cmp(&a.score) {
            Ordering::Equal => a.address.cmp(&b.address),
            other => other,
        });
        hits
    }

    fn frequency(&self, term: &str) -> u64 {
        self.live.values().filter(|joined| joined.term(term).is_some()).count() as u64
    }

    fn naive(&self, Clause { occur, ask }: &Clause) -> Vec<Naive> {
        let documents = self.live.len() as u64;
        let rarity_of = |term: &str| idf(documents, self.frequency(term));
        match ask {
            TermMatch::Word(terms) => terms
                .iter()
                .map(|term| Naive {
                    rarity: rarity_of(term),
                    what: NaiveWhat::Any(vec![(term.clone(), 1.0)]),
                })
                .collect(),
            TermMatch::Phrase(terms) if terms.is_empty() => Vec::new(),
            TermMatch::Phrase(terms) => vec![Naive {
                rarity: terms.iter().map(|(term, _)| rarity_of(term)).sum(),
                what: NaiveWhat::Phrase(terms.clone()),
            }],
            TermMatch::Identifier(term, phrases) => {
                let phrases = phrases.iter().filter(|terms| !terms.is_empty());
                let spellings: Vec<NaiveWhat> =
                    std::iter::once(NaiveWhat::Any(vec![(term.clone(), 1.0)]))
                        .chain(phrases.cloned().map(NaiveWhat::Phrase))
                        .collect();
                let bound = |what: &NaiveWhat| match what {
                    NaiveWhat::Phrase(terms) => {
                        terms.iter().map(|(term, _)| self.frequency(term)).min().unwrap()
                    }
                    _ => self.frequency(term),
                };
                let most = spellings.iter().map(bound).find(|most| *most > 0).unwrap_or(0);
                let what = NaiveWhat::Spellings(spellings);
                vec![Naive { rarity: idf(documents, most), what }]
            }
            TermMatch::Prefix(_) | TermMatch::Begin(..) | TermMatch::Fuzzy(..) => {
                let all: BTreeSet<&str> = self
                    .live
                    .values()
                    .flat_map(|joined| joined.terms().iter().map(|share| share.term.as_ref()))
                    .collect();
                let mut members: Vec<(u64, &str)> = all
                    .into_iter()
                    .filter(|term| worth(ask, term) > 0.0)
                    .map(|term| (self.frequency(term), term))
                    .collect();
                members.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
                members.truncate(if *occur == Occur::Should { MAX_EXPANSIONS } else { usize::MAX });
                let sum = members.iter().map(|member| member.0).sum::<u64>().min(documents);
                let terms = members.iter().map(|(_, term)| ((*term).into(), worth(ask, term)));
                let what = NaiveWhat::Any(terms.collect());
                vec![Naive { rarity: idf(documents, sum), what }]
            }
        }
    }
}

fn set(texts: &mut InvertedIndex, change: &Change) {
    let sequence = Sequence::new(change.sequence);
    if change.erase {
        texts.erase(sequence).unwrap();
    } else {
        texts.set(sequence, change.joined.clone()).unwrap();
    }
}

fn worth(ask: &TermMatch, term: &str) -> f64 {
    match ask {
        TermMatch::Prefix(prefix) if !prefix.is_empty() && term.starts_with(prefix.as_ref()) => 1.0,
        TermMatch::Begin(prefix, terms) => f64::from(u8::from(
            term.starts_with(&**prefix) || terms.iter().any(|own| **own == *term),
        )),
        TermMatch::Fuzzy(asked, most) => match strsim::osa_distance(asked, term) {
            edits if edits > usize::from((*most).min(2)) => 0.0,
            edits => [1.0, 1.0 / 2.0, 1.0 / 3.0][edits],
        },
        _ => 0.0,
    }
}

struct Naive {
    rarity: f64,
    what: NaiveWhat,
}

enum NaiveWhat {
    Any(Vec<(Box<str>, f64)>),
    Phrase(Vec<(Box<str>, u32)>),
    Spellings(Vec<NaiveWhat>),
}

impl Naive {
    fn share(&self, joined: &IndexedDocument, norms: &LengthNorms) -> f64 {
        self.what.share(joined, norms)
    }
}

impl NaiveWhat {
    fn share(&self, joined: &IndexedDocument, norms: &LengthNorms) -> f64 {
        let code = length_code(joined.length());
        let weight = |term: &str| joined.term(term).map_or(0, |share| share.weight);
        match self {
            NaiveWhat::Spellings(members) => {
                members.iter().map(|member| member.share(joined, norms)).fold(0.0, f64::max)
            }
            NaiveWhat::Any(terms) => terms
                .iter()
                .filter(|(term, _)| weight(term) > 0)
                .map(|(term, worth)| worth * norms.tf(weight(term), code))
                .fold(0.0, f64::max),
            NaiveWhat::Phrase(terms) => {
                let least = terms.iter().map(|(term, _)| weight(term)).min().unwrap();
                let stands = |start: u32| {
                    terms.iter().all(|(term, distance)| {
                        let share = joined.term(term);
                        share.is_some_and(|share| share.positions.contains(&(start + distance)))
                    })
                };
                if least > 0 && (0..40).any(stands) { norms.tf(least, code) } else { 0.0 }
            }
        }
    }
}

/// The sequence and the bits of the score of each hit, for comparison.
pub(super) fn bits(hits: &[Hit]) -> Vec<(u64, u64)> {
    hits.iter().map(|hit| (hit.sequence.get(), hit.score.to_bits())).collect()
}
