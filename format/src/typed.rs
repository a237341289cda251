//! Typed builders and typed views for the ten grain types, over the same fields as [`Grain`].
//!
//! One macro invocation per type lists its fields with their kinds and generates builder and view. A
//! test checks the lists against the field registry. Fields are not validated here:
//! [`Grain::from_fields`] does that when a builder is finished.

use crate::error::Result;
use crate::grain::Grain;
use crate::grain_type::GrainType;
use crate::time::EpochMs;
use crate::value::{Map, Value};

/// The Rust type a setter takes, by kind of field.
macro_rules! given {
    (text) => { impl Into<String> };
    (float) => { f64 };
    (int) => { i64 };
    (time) => { EpochMs };
    (flag) => { bool };
    (map) => { Map };
    (texts) => { Vec<String> };
    (maps) => { Vec<Map> };
    (list) => { Vec<Value> };
    (value) => { impl Into<Value> };
}

/// The [`Value`] a setter stores, by kind of field.
macro_rules! stored {
    (text, $x:ident) => {
        Value::Str($x.into())
    };
    (time, $x:ident) => {
        Value::from($x.get())
    };
    (list, $x:ident) => {
        Value::Array($x)
    };
    ($kind:ident, $x:ident) => {
        Into::<Value>::into($x)
    };
}

/// The Rust type a getter returns, by kind of field.
macro_rules! seen {
    (text) => { Option<&'a str> };
    (float) => { Option<f64> };
    (int) => { Option<i64> };
    (time) => { Option<EpochMs> };
    (flag) => { Option<bool> };
    (map) => { Option<&'a Map> };
    (texts) => { Option<&'a [Value]> };
    (maps) => { Option<&'a [Value]> };
    (list) => { Option<&'a [Value]> };
    (value) => { Option<&'a Value> };
}

/// The expression a getter reads with, by kind of field.
macro_rules! read {
    (text, $grain:expr, $name:expr) => {
        $grain.text($name)
    };
    (float, $grain:expr, $name:expr) => {
        $grain.number($name)
    };
    (int, $grain:expr, $name:expr) => {
        $grain.int($name)
    };
    (time, $grain:expr, $name:expr) => {
        $grain.int($name).map(EpochMs::new)
    };
    (flag, $grain:expr, $name:expr) => {
        $grain.flag($name)
    };
    (map, $grain:expr, $name:expr) => {
        $grain.map($name)
    };
    (value, $grain:expr, $name:expr) => {
        $grain.get($name)
    };
    ($list:ident, $grain:expr, $name:expr) => {
        $grain.list($name)
    };
}

/// Generates the setters of a builder.
macro_rules! setters {
    ($($field:ident: $kind:ident),+ $(,)?) => {$(
        #[doc = concat!("Sets `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(self, value: given!($kind)) -> Self {
            self.set(stringify!($field), stored!($kind, value))
        }
    )+};
}

/// Generates the getters of a view.
macro_rules! getters {
    ($($field:ident: $kind:ident),+ $(,)?) => {$(
        #[doc = concat!("The field `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(&self) -> seen!($kind) {
            read!($kind, self.0, stringify!($field))
        }
    )+};
}

/// Passes the fields of OMS 6.1 that a writer may set to another macro.
macro_rules! common {
    ($macro:ident) => {
        $macro! {
            subject: text,
            relation: text,
            object: value,
            confidence: float,
            source_type: text,
            created_at: time,
            temporal_type: text,
            valid_from: time,
            valid_to: time,
            system_valid_from: time,
            context: map,
            importance: float,
            author_did: text,
            namespace: text,
            user_id: text,
            structural_tags: texts,
            derived_from: list,
            consolidation_level: int,
            success_count: int,
            failure_count: int,
            provenance_chain: maps,
            origin_did: text,
            origin_namespace: text,
            content_refs: maps,
            embedding_refs: maps,
            related_to: maps,
            _elided: map,
            _disclosure_of: text,
            invalidation_policy: map,
            supersession_justification: text,
            supersession_auth: list,
            owner: map,
            category: int,
            run_id: text,
            role: text,
            timestamp_ms: time,
            observer_did: text,
            subject_did: text,
            session_id: text,
            entity_id: text,
            epistemic_status: text,
            requires_human_review: flag,
            processing_basis: text,
            identity_state: text,
            license: text,
            trusted_timestamp: map,
            invalidation_type: text,
            invalidation_reason: text,
            invalidation_initiator: text,
            retention_policy: map,
            recall_priority: text,
        }
    };
}

/// Generates the view and the builder of one grain type.
macro_rules! typed {
    (
        $(#[$doc:meta])*
        $view:ident, $builder:ident, $name:literal, new($($arg:ident: $kind:ident),*) {
            $($fields:tt)*
        }
    ) => {
        $(#[$doc])*
        ///
        /// Each getter reads one field. The views of all ten types work like [`Belief`].
        #[derive(Debug, Clone, Copy)]
        pub struct $view<'a>(&'a Grain);

        impl<'a> $view<'a> {
            /// Returns the typed view, or `None` if the grain is of another type.
            #[must_use]
            pub fn of(grain: &'a Grain) -> Option<Self> {
                (grain.grain_type() == GrainType::$view).then_some(Self(grain))
            }

            common! { getters }
            getters! { $($fields)* }
        }

        $(#[$doc])*
        ///
        /// Each setter takes one field; [`build`](Self::build) validates. The builders of all ten types work
        /// like [`BeliefBuilder`].
        #[derive(Debug, Clone)]
        pub struct $builder(Map);

        impl $builder {
            /// Creates a builder with the fields that every grain of the type must have. `created_at`
            /// is never filled in automatically.
            #[must_use]
            pub fn new(created_at: EpochMs, $($arg: given!($kind)),*) -> Self {
                let builder = Self(Map::new()).set("type", $name);
                let builder = builder.created_at(created_at);
                $(let builder = builder.set(stringify!($arg), stored!($kind, $arg));)*
                builder
            }

            /// Sets any field by its full name, fields outside the registry included.
            #[must_use]
            pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
                self.0.insert(name.to_owned(), value.into());
                self
            }

            /// Validates the fields and returns the grain.
            ///
            /// # Errors
            /// As [`Grain::from_fields`].
            pub fn build(self) -> Result<Grain> {
                Grain::from_fields(self.0)
            }

            common! { setters }
            setters! { $($fields)* }
        }
    };
}

typed! {
    /// Fields of a subject-relation-object triple held with some confidence (OMS 8.1).
    ///
    /// ```
    /// use grainstore_format::{Belief, BeliefBuilder, EpochMs};
    ///
    /// let created_at = EpochMs::new(1_768_471_200_000);
    /// let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", "tea", 0.9)
    ///     .valid_to(EpochMs::new(1_800_000_000_000))
    ///     .set("x_note", "from the survey")
    ///     .build()?;
    /// let belief = Belief::of(&grain);
    /// assert_eq!(belief.and_then(|belief| belief.subject()), Some("alice"));
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    Belief, BeliefBuilder, "belief", new(subject: text, relation: text, object: value, confidence: float) {
        authorized_namespaces: texts,
        authorized_types: list,
        authorized_tools: texts,
        delegation_depth: int,
        delegation_expiry: time,
        context_grains: texts,
        return_to: text,
    }
}

typed! {
    /// Fields of a message or occurrence (OMS 8.2).
    Event, EventBuilder, "event", new(content: text) {
        content: text,
        consolidated: flag,
        content_blocks: maps,
        model_id: text,
        stop_reason: text,
        token_usage: map,
        parent_message_id: text,
    }
}

typed! {
    /// Fields of an agent state snapshot (OMS 8.3).
    State, StateBuilder, "state", new(context: map) {
        plan: texts,
        history: maps,
    }
}

typed! {
    /// Fields of a learned sequence of steps (OMS 8.4).
    Workflow, WorkflowBuilder, "workflow", new(steps: texts, trigger: text) {
        steps: texts,
        trigger: text,
    }
}

typed! {
    /// Fields of a tool invocation (OMS 8.5, 27.1).
    Action, ActionBuilder, "action", new() {
        action_phase: text,
        tool_name: text,
        input: map,
        content: value,
        is_error: flag,
        tool_call_id: text,
        call_batch_id: text,
        tool_type: text,
        tool_version: text,
        execution_mode: text,
        code: text,
        stdout: text,
        stderr: text,
        exit_code: int,
        interpreter_id: text,
        error: text,
        error_type: text,
        duration_ms: int,
        parent_task_id: text,
        tool_description: text,
        input_schema: map,
        output_schema: map,
        strict: flag,
    }
}

typed! {
    /// Fields of raw sensory or cognitive input (OMS 8.6).
    Observation, ObservationBuilder, "observation", new(observer_id: text, observer_type: text) {
        observer_id: text,
        observer_type: text,
        frame_id: text,
        sync_group: text,
        observation_mode: text,
        observation_scope: text,
        observer_model: text,
        compression_ratio: float,
    }
}

typed! {
    /// Fields of an objective with a lifecycle (OMS 8.7).
    Goal, GoalBuilder, "goal", new(description: text, goal_state: text) {
        description: text,
        goal_state: text,
        criteria: texts,
        criteria_structured: maps,
        priority: int,
        parent_goals: texts,
        state_reason: text,
        satisfaction_evidence: texts,
        progress: float,
        delegate_to: text,
        delegate_from: text,
        expiry_policy: text,
        recurrence: text,
        evidence_required: int,
        rollback_on_failure: texts,
        allowed_transitions: texts,
        depends_on: texts,
        assigned_agent: text,
        expected_output: text,
        output_grain: text,
        deadline: time,
        authorized_namespaces: texts,
        authorized_types: list,
        authorized_tools: texts,
        delegation_depth: int,
        delegation_expiry: time,
        context_grains: texts,
        return_to: text,
    }
}

typed! {
    /// Fields of an inference chain (OMS 8.8).
    Reasoning, ReasoningBuilder, "reasoning", new() {
        premises: texts,
        conclusion: text,
        inference_method: text,
        alternatives_considered: maps,
        thinking_content: text,
        thinking_redacted: flag,
        statistical_context: map,
        software_environment: map,
        parameter_set: map,
        random_seed: int,
    }
}

typed! {
    /// Fields of an agreement of several agents (OMS 8.9).
    Consensus, ConsensusBuilder, "consensus", new(participating_observers: texts, threshold: int, agreement_count: int, dissent_count: int) {
        participating_observers: texts,
        threshold: int,
        agreement_count: int,
        dissent_count: int,
        dissent_grains: texts,
        agreed_content: value,
    }
}

typed! {
    /// Fields of a permission granted or withdrawn (OMS 8.10).
    Consent, ConsentBuilder, "consent", new(subject_did: text, grantee_did: text, scope: texts, is_withdrawal: flag) {
        grantee_did: text,
        scope: texts,
        is_withdrawal: flag,
        basis: text,
        jurisdiction: text,
        prior_consent: text,
        witness_dids: texts,
    }
}
