//! The closed list of template variables (CAL 10.5): one table, read by the parser, the renderer and
//! editor support.

/// A variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    AssemblyName,
    AssemblyIntent,
    AssemblySourceCount,
    AssemblyGrainCount,
    BudgetTotal,
    BudgetUsed,
    BudgetRemaining,
    BudgetUnit,
    BudgetUtilization,
    DisclosureLevel,
    Timestamp,
    SourceLabel,
    SourceIndex,
    SourcePriority,
    SourceGrainCount,
    SourceTokensUsed,
    SourceTruncated,
    GrainContent,
    GrainType,
    GrainSubject,
    GrainRelation,
    GrainHumanizedRelation,
    GrainObject,
    GrainConfidence,
    GrainImportance,
    GrainTags,
    GrainCreatedAt,
    GrainRelativeTime,
    GrainScore,
    GrainHash,
    GrainIsFull,
    GrainIsSummary,
}

/// Every variable with its name.
const VARIABLES: [(&str, Variable); 32] = [
    ("assembly.name", Variable::AssemblyName),
    ("assembly.intent", Variable::AssemblyIntent),
    ("assembly.source_count", Variable::AssemblySourceCount),
    ("assembly.grain_count", Variable::AssemblyGrainCount),
    ("budget.total", Variable::BudgetTotal),
    ("budget.used", Variable::BudgetUsed),
    ("budget.remaining", Variable::BudgetRemaining),
    ("budget.unit", Variable::BudgetUnit),
    ("budget.utilization", Variable::BudgetUtilization),
    ("disclosure.level", Variable::DisclosureLevel),
    ("timestamp", Variable::Timestamp),
    ("source.label", Variable::SourceLabel),
    ("source.index", Variable::SourceIndex),
    ("source.priority", Variable::SourcePriority),
    ("source.grain_count", Variable::SourceGrainCount),
    ("source.tokens_used", Variable::SourceTokensUsed),
    ("source.truncated", Variable::SourceTruncated),
    ("grain.content", Variable::GrainContent),
    ("grain.type", Variable::GrainType),
    ("grain.subject", Variable::GrainSubject),
    ("grain.relation", Variable::GrainRelation),
    ("grain.humanized_relation", Variable::GrainHumanizedRelation),
    ("grain.object", Variable::GrainObject),
    ("grain.confidence", Variable::GrainConfidence),
    ("grain.importance", Variable::GrainImportance),
    ("grain.tags", Variable::GrainTags),
    ("grain.created_at", Variable::GrainCreatedAt),
    ("grain.relative_time", Variable::GrainRelativeTime),
    ("grain.score", Variable::GrainScore),
    ("grain.hash", Variable::GrainHash),
    ("grain.is_full", Variable::GrainIsFull),
    ("grain.is_summary", Variable::GrainIsSummary),
];

impl Variable {
    /// Returns the variable of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, variable)| *variable)
    }
}

/// Iterates over the names of all variables, in the order of the standard.
///
/// ```
/// use grainstore_sml::template_variables;
///
/// assert!(template_variables().any(|name| name == "grain.content"));
/// ```
pub fn template_variables() -> impl Iterator<Item = &'static str> + Clone {
    VARIABLES.iter().map(|(name, _)| *name)
}
