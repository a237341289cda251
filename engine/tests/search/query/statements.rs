//! Statements at random: pipelines, ends, subqueries, LETs, set operations, COALESCE, BATCH and ASSEMBLE over
//! questions that CAL can ask. Knows how they are written, and no meaning of any.

use crate::query::asker::Asker;
use crate::query::cal::{expressible, recall};
use crate::query::naive::Item;
use crate::query::question::Question;
use grainstore::ContentAddress;
use grainstore::cal::Reach;

/// What ORDER BY takes.
const SORTABLE: [&str; 9] = [
    "subject",
    "relation",
    "object",
    "confidence",
    "importance",
    "score",
    "time",
    "verification_status",
    "source_type",
];
/// What GROUP BY takes.
const GROUPABLE: [&str; 7] =
    ["subject", "relation", "object", "user_id", "type", "verification_status", "source_type"];
/// What dedup is tried with.
const TOLD_APART: [&str; 4] = ["subject", "relation", "object", "user_id"];
/// Sessions of a thread.
const SESSIONS: [&str; 2] = ["s1", "s2"];

/// A statement.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Recall(Recall),
    /// `LET $v = ...; RECALL ... IN ($v)`.
    Let(Box<Recall>, Recall),
    Set(Box<Statement>, SetOperator, Box<Statement>),
    Coalesce(Vec<Recall>),
    Exists(ContentAddress),
    Batch(Vec<Statement>),
    /// Sources with all their grains, by grains.
    Assemble(Vec<Recall>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// A RECALL with its pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Recall {
    pub(crate) question: Question,
    pub(crate) thread: Option<&'static str>,
    pub(crate) about: Option<String>,
    pub(crate) recent: Option<usize>,
    pub(crate) within: Option<Within>,
    pub(crate) dedup: Option<&'static str>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) end: End,
}

/// `field IN (...)`: what another RECALL says, or a LET of it.
#[derive(Debug, Clone)]
pub(crate) struct Within {
    pub(crate) field: &'static str,
    pub(crate) recall: Box<Recall>,
    is_let: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    Order { field: &'static str, descending: bool },
    Limit(usize),
    Offset(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Grains,
    First,
    Count,
    Subjects,
    Objects,
    Hashes,
    Groups(&'static str),
}

impl Asker {
    /// A session's namespace and a statement it may give.
    pub(crate) fn statement(&mut self, items: &[Item]) -> (Option<&'static str>, Statement) {
        let (namespace, recall) = self.recall(items, 1);
        let statement = match self.random.below(20) {
            0..9 => Statement::Recall(recall),
            9..11 => self.with_let(namespace, items, recall),
            11..14 => self.set(namespace, items),
            14..16 => Statement::Coalesce(self.several(namespace, items, End::Grains)),
            16 => Statement::Exists(items[self.random.below(items.len())].address),
            17..19 => self.batch(namespace, items),
            _ => Statement::Assemble(self.several(namespace, items, End::Grains)),
        };
        (namespace, statement)
    }

    fn recall(&mut self, items: &[Item], depth: usize) -> (Option<&'static str>, Recall) {
        let (namespace, asked) = self.next(items);
        let mut question = expressible(asked);
        if namespace == Some("") {
            // CAL names the shared partition's own namespaces only where the session does.
            question.reach = Reach::Session;
        }
        let end = self.end(&question);
        let mut recall = Recall {
            question,
            thread: None,
            about: None,
            recent: None,
            within: None,
            dedup: None,
            stages: self.stages(),
            end,
        };
        self.shorten(items, &mut recall);
        if depth > 0 && self.random.percent(15) {
            let end = self.random.pick(&[End::Subjects, End::Objects]);
            recall.within = Some(self.subquery(namespace, items, depth - 1, end));
        }
        if matches!(recall.end, End::Grains | End::First | End::Count) && self.random.percent(15) {
            recall.dedup = Some(self.random.pick(&TOLD_APART));
        }
        (namespace, recall)
    }

    /// A RECALL of a session in this namespace with this end.
    fn recall_as(
        &mut self,
        namespace: Option<&str>,
        items: &[Item],
        depth: usize,
        end: End,
    ) -> Recall {
        loop {
            let (of, recall) = self.recall(items, depth);
            let typed = recall.question.of_type.is_some_and(|of_type| of_type.name() != "belief");
            let refused =
                matches!(end, End::Subjects | End::Objects) && (typed || recall.thread.is_some());
            if of == namespace && !refused {
                let keeps = matches!(end, End::Grains | End::First | End::Count);
                let dedup = recall.dedup.filter(|_| keeps);
                return Recall { end, dedup, ..recall };
            }
        }
    }

    fn subquery(
        &mut self,
        namespace: Option<&str>,
        items: &[Item],
        depth: usize,
        end: End,
    ) -> Within {
        let field = self.random.pick(&["subject", "object"]);
        let recall = Box::new(self.recall_as(namespace, items, depth, end));
        Within { field, recall, is_let: false }
    }

    fn with_let(&mut self, namespace: Option<&str>, items: &[Item], recall: Recall) -> Statement {
        let mut within = self.subquery(namespace, items, 0, End::Subjects);
        within.is_let = true;
        let bound = within.recall.clone();
        Statement::Let(bound, Recall { within: Some(within), ..recall })
    }

    fn set(&mut self, namespace: Option<&str>, items: &[Item]) -> Statement {
        let operators = [SetOperator::Union, SetOperator::Intersect, SetOperator::Except];
        let operator = self.random.pick(&operators);
        let mut operand = || {
            let recall = self.recall_as(namespace, items, 1, End::Grains);
            match self.random.below(4) {
                0 => Statement::Coalesce(self.several(namespace, items, End::Grains)),
                1 => {
                    let other = self.recall_as(namespace, items, 0, End::Grains);
                    let operator = self.random.pick(&operators);
                    let (left, right) = (Statement::Recall(recall), Statement::Recall(other));
                    Statement::Set(Box::new(left), operator, Box::new(right))
                }
                _ => Statement::Recall(recall),
            }
        };
        let (left, right) = (operand(), operand());
        Statement::Set(Box::new(left), operator, Box::new(right))
    }

    fn several(&mut self, namespace: Option<&str>, items: &[Item], end: End) -> Vec<Recall> {
        let count = 2 + self.random.below(2);
        (0..count).map(|_| self.recall_as(namespace, items, 1, end)).collect()
    }

    fn batch(&mut self, namespace: Option<&str>, items: &[Item]) -> Statement {
        let entries = (0..1 + self.random.below(3)).map(|_| match self.random.below(4) {
            0 => Statement::Exists(items[self.random.below(items.len())].address),
            1 => Statement::Coalesce(self.several(namespace, items, End::Grains)),
            _ => loop {
                let (of, recall) = self.recall(items, 1);
                if of == namespace {
                    break Statement::Recall(recall);
                }
            },
        });
        Statement::Batch(entries.collect())
    }

    fn end(&mut self, question: &Question) -> End {
        let beliefs = question.of_type.is_none_or(|of_type| of_type.name() == "belief");
        match self.random.below(12) {
            0 => End::First,
            1 => End::Count,
            2 if beliefs => End::Subjects,
            3 if beliefs => End::Objects,
            4 => End::Hashes,
            5 => End::Groups(self.random.pick(&GROUPABLE)),
            _ => End::Grains,
        }
    }

    /// Stages before the end, each kind once, in any order.
    fn stages(&mut self) -> Vec<Stage> {
        let mut stages = Vec::new();
        if self.random.percent(50) {
            let field = self.random.pick(&SORTABLE);
            stages.push(Stage::Order { field, descending: self.random.percent(50) });
        }
        for stage in [Stage::Limit(1 + self.random.below(40)), Stage::Offset(self.random.below(9))]
        {
            if self.random.percent(40) {
                let at = self.random.below(stages.len() + 1);
                stages.insert(at, stage);
            }
        }
        stages
    }

    /// One of the shortcuts, where nothing it stands for is there already.
    fn shorten(&mut self, items: &[Item], recall: &mut Recall) {
        let sorts = |stage: &Stage| matches!(stage, Stage::Order { .. });
        let limits = |stage: &Stage| matches!(stage, Stage::Limit(_));
        let question = &recall.question;
        let of_events = question.of_type.is_none_or(|of_type| of_type.name() == "event");
        match self.random.below(10) {
            0 if !recall.stages.iter().any(|stage| sorts(stage) || limits(stage)) => {
                recall.recent = Some(1 + self.random.below(30));
            }
            1 if of_events && !matches!(recall.end, End::Subjects | End::Objects) => {
                recall.thread = Some(self.random.pick(&SESSIONS));
            }
            2 => {
                let item = &items[self.random.below(items.len())];
                recall.about = item.grain.text("subject").map(str::to_owned);
            }
            _ => {}
        }
    }
}

impl Statement {
    /// In the text form.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Recall(recall) => recall.text(),
            Self::Let(bound, recall) => format!("LET $v = {}; {}", bound.text(), recall.text()),
            Self::Set(left, operator, right) => {
                let operator = format!("{operator:?}").to_uppercase();
                format!("({}) {operator} ({})", left.text(), right.text())
            }
            Self::Coalesce(branches) => {
                let branches: Vec<_> = branches.iter().map(Recall::text).collect();
                format!("COALESCE({})", branches.join(", "))
            }
            Self::Exists(address) => format!("EXISTS sha256:{address}"),
            Self::Batch(entries) => {
                let entries = entries.iter().enumerate();
                let entries: Vec<_> =
                    entries.map(|(at, entry)| format!("e{at}: {}", entry.text())).collect();
                format!("BATCH {{ {} }}", entries.join(", "))
            }
            Self::Assemble(sources) => {
                let sources = sources.iter().enumerate();
                let sources: Vec<_> =
                    sources.map(|(at, source)| format!("s{at}: ({})", source.text())).collect();
                format!("ASSEMBLE FROM {} BUDGET 200 grains", sources.join(", "))
            }
        }
    }
}

impl Recall {
    fn text(&self) -> String {
        let within = self.within.as_ref().map(|within| {
            let inner = if within.is_let { "$v".to_owned() } else { within.recall.text() };
            format!("{} IN ({inner})", within.field)
        });
        let within: Vec<String> = within.into_iter().collect();
        let mut text = recall(&self.question, &within);
        if let Some(field) = self.dedup {
            let before = if self.question.seeing.superseded { "," } else { " WITH" };
            text += &format!("{before} dedup({field})");
        }
        if let Some(subject) = &self.about {
            text += &format!(" ABOUT {subject:?}");
        }
        if let Some(session) = self.thread {
            text += &format!(" THREAD {session:?}");
        }
        if let Some(recent) = self.recent {
            text += &format!(" RECENT {recent}");
        }
        for stage in &self.stages {
            text += &match stage {
                Stage::Order { field, descending } => {
                    format!(" | ORDER BY {field} {}", if *descending { "DESC" } else { "ASC" })
                }
                Stage::Limit(count) => format!(" | LIMIT {count}"),
                Stage::Offset(count) => format!(" | OFFSET {count}"),
            };
        }
        text + &match self.end {
            End::Grains => String::new(),
            End::Groups(field) => format!(" | GROUP BY {field}"),
            end => format!(" | {}", format!("{end:?}").to_uppercase()),
        }
    }
}
