//! Printing of RECALL and its clauses.

use std::fmt::{Display, Formatter, Result, Write};

use super::literal::{
    CountDisplay, HashDisplay, NumberDisplay, TextDisplay, clause, list, options,
};
use crate::ast::{
    BetweenClause, Condition, ConditionField, ConditionTest, ConsistencyLevel, DiversityOption,
    Extractor, InSet, LevelName, NamespaceClause, PipelineStage, ProjectClause, ProjectField,
    Recall, SortDirection, ThreadClause, WithOption,
};
use crate::predicate::Comparator;

impl Display for Recall<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("RECALL")?;
        if self.my.is_some() {
            f.write_str(" MY")?;
        }
        clause(f, " ", self.grain_type.as_ref().map(|name| name.node.plural))?;
        clause(f, " ", self.within.as_ref().map(|within| &within.node))?;
        clause(f, " ABOUT ", self.about.as_ref().map(|about| TextDisplay(&about.node)))?;
        clause(f, " LIKE ", self.like.as_ref().map(|like| TextDisplay(&like.node)))?;
        clause(f, " SINCE ", self.since.as_ref().map(|since| TextDisplay(&since.node)))?;
        clause(f, " BETWEEN ", self.between.as_ref().map(|between| &between.node))?;
        clause(f, " THREAD ", self.thread.as_ref().map(|thread| &thread.node))?;
        for (at, condition) in self.conditions.iter().flat_map(|list| &list.node).enumerate() {
            f.write_str(if at == 0 { " WHERE " } else { " AND " })?;
            condition.fmt(f)?;
        }
        options(f, self.options.as_ref())?;
        for stage in &self.stages {
            write!(f, " | {}", stage.node)?;
        }
        clause(f, " RECENT ", self.recent.as_ref().map(|recent| CountDisplay(&recent.node)))?;
        if self.contradictions.is_some() {
            f.write_str(" CONTRADICTIONS")?;
        }
        clause(f, " AS ", self.format.map(|format| format.node.name()))
    }
}

impl Display for NamespaceClause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.include_descendants { "IN SCOPE " } else { "IN " })?;
        TextDisplay(&self.namespace).fmt(f)
    }
}

impl Display for ThreadClause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Session(session) => TextDisplay(session).fmt(f),
            Self::From(message) => write!(f, "FROM {}", HashDisplay(message)),
        }
    }
}

impl Display for BetweenClause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} AND {}", self.from.node, self.to.node)
    }
}

impl Display for Condition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} ", self.field.node)?;
        match &self.test.node {
            ConditionTest::Compare(comparator, value) => {
                write!(f, "{} {}", comparator.text(), value.node)
            }
            ConditionTest::In(InSet::Values(values)) => {
                f.write_str("IN (")?;
                list(f, values)?;
                f.write_char(')')
            }
            ConditionTest::In(InSet::Recall(recall, extractor)) => {
                write!(f, "IN ({recall} | {})", extractor.text())
            }
            ConditionTest::Between(between) => write!(f, "BETWEEN {between}"),
            ConditionTest::Include(value) => write!(f, "INCLUDE {}", value.node),
            ConditionTest::Exclude(value) => write!(f, "EXCLUDE {}", value.node),
            ConditionTest::Is(category) => write!(f, "IS {}", category.keyword.text()),
        }
    }
}

impl Display for ConditionField<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Table(field) => f.write_str(field.name),
            Self::Domain { prefix, name } => write!(f, "{prefix}:{name}"),
        }
    }
}

impl Extractor {
    /// Returns the keyword.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Subjects => "SUBJECTS",
            Self::Objects => "OBJECTS",
            Self::Hashes => "HASHES",
        }
    }
}

impl Comparator {
    /// Returns the operator as written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::GreaterEqual => ">=",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::Less => "<",
        }
    }
}

impl Display for PipelineStage<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Select(fields) => {
                for (at, field) in fields.iter().enumerate() {
                    f.write_str(if at == 0 { "SELECT " } else { ", " })?;
                    f.write_str(field.node.name)?;
                }
                Ok(())
            }
            Self::OrderBy { field, direction } => {
                write!(f, "ORDER BY {}", field.node.name)?;
                f.write_str(match direction {
                    None => "",
                    Some(SortDirection::Ascending) => " ASC",
                    Some(SortDirection::Descending) => " DESC",
                })
            }
            Self::Limit(count) => write!(f, "LIMIT {}", CountDisplay(count)),
            Self::Offset(count) => write!(f, "OFFSET {}", CountDisplay(count)),
            Self::Count => f.write_str("COUNT"),
            Self::First => f.write_str("FIRST"),
            Self::Extract(extractor) => f.write_str(extractor.text()),
            Self::GroupBy(field) => write!(f, "GROUP BY {}", field.node.name),
            Self::Project(project) => project.fmt(f),
        }
    }
}

impl Display for ProjectClause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("PROJECT")?;
        let mut between = " ";
        for (name, fields) in [("content", &self.content), ("attr", &self.attr)] {
            let Some(fields) = fields else { continue };
            write!(f, "{between}{name}(")?;
            list(f, fields)?;
            f.write_char(')')?;
            between = ", ";
        }
        Ok(())
    }
}

impl Display for ProjectField<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Field(field) => field.fmt(f),
            Self::Attribute(name) => f.write_str(name),
            Self::Extension(name) => f.write_str(name),
        }
    }
}

impl Display for WithOption<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Superseded => f.write_str("superseded"),
            Self::ScoreBreakdown => f.write_str("score_breakdown"),
            Self::Explanation => f.write_str("explanation"),
            Self::Total => f.write_str("total"),
            Self::Provenance => f.write_str("provenance"),
            Self::ContradictionDetection => f.write_str("contradiction_detection"),
            Self::IsoTimestamps => f.write_str("iso_timestamps"),
            Self::Summarize => f.write_str("summarize"),
            Self::ProgressiveDisclosure(None) => f.write_str("progressive_disclosure"),
            Self::ProgressiveDisclosure(Some(level)) => {
                write!(f, "progressive_disclosure({})", level.name())
            }
            Self::Diversity(DiversityOption::Mmr(None)) => f.write_str("diversity(mmr)"),
            Self::Diversity(DiversityOption::Mmr(Some(lambda))) => {
                write!(f, "diversity(mmr, lambda = {})", NumberDisplay(&lambda.node))
            }
            Self::Diversity(DiversityOption::Threshold(most)) => {
                write!(f, "diversity(threshold, {})", NumberDisplay(&most.node))
            }
            Self::Dedup(field) => write!(f, "dedup({})", field.node.name),
            Self::Consistency(ConsistencyLevel::Eventual) => f.write_str("consistency(eventual)"),
            Self::Consistency(ConsistencyLevel::Linearizable) => {
                f.write_str("consistency(linearizable)")
            }
            Self::Consistency(ConsistencyLevel::Bounded(seconds)) => {
                write!(f, "consistency(bounded({}))", NumberDisplay(&seconds.node))
            }
            Self::Cache(seconds) => write!(f, "cache(ttl = {})", CountDisplay(seconds)),
            Self::Locale(locale) => write!(f, "locale({})", TextDisplay(locale)),
            Self::Extension(name, arguments) if arguments.is_empty() => f.write_str(name),
            Self::Extension(name, arguments) => {
                write!(f, "{name}(")?;
                list(f, arguments)?;
                f.write_char(')')
            }
        }
    }
}

impl LevelName {
    /// Returns the name in WITH.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Headlines => "headlines",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}
