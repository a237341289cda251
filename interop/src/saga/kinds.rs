//! The closed lists of SAGA: layers, types of exports, chains. Tables that the rest of the module asks.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// Declares an enum with the names that documents use.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident => $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $type {
            /// All of them, in the order of the standard.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
                    Error::schema(format!("{name:?} is no {}: {}", $what, names.join(", ")))
                })
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}
pub(super) use named;

named! {
    /// A layer of a document.
    ///
    /// ```
    /// use grainstore_interop::saga::Layer;
    ///
    /// assert_eq!("taskHistory".parse::<Layer>()?, Layer::TaskHistory);
    /// assert_eq!(Layer::ALL.len(), 9);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    Layer, "layer" {
        /// Who the agent is.
        Identity => "identity",
        /// How it shows itself.
        Persona => "persona",
        /// Its models, parameters and system prompt.
        Cognitive => "cognitive",
        /// What it remembers.
        Memory => "memory",
        /// What it can do.
        Skills => "skills",
        /// What it did.
        TaskHistory => "taskHistory",
        /// Whom it works with.
        Relationships => "relationships",
        /// What it needs to run.
        Environment => "environment",
        /// Its credentials, as ciphertext.
        Vault => "vault",
    }
}

named! {
    /// What an export is for, which decides its layers.
    ///
    /// ```
    /// use grainstore_interop::saga::{ExportType, Layer};
    ///
    /// assert!(ExportType::Profile.has(Layer::Skills));
    /// assert!(!ExportType::Profile.has(Layer::Vault));
    /// ```
    ExportType, "export type" {
        /// The identity alone.
        Identity => "identity",
        /// Identity, persona and skills.
        Profile => "profile",
        /// The move to another organization.
        Transfer => "transfer",
        /// The base of a second agent.
        Clone => "clone",
        /// A copy for the same organization.
        Backup => "backup",
        /// Everything, asked for by name.
        Full => "full",
    }
}

impl Layer {
    /// Returns `true` for a layer with something that may be an organization's.
    pub(super) const fn may_be_of_organization(self) -> bool {
        matches!(self, Self::Cognitive | Self::Memory | Self::TaskHistory | Self::Relationships)
    }
}

impl ExportType {
    /// Returns `true` if exports of this type have the layer, if there is one.
    #[must_use]
    pub const fn has(self, layer: Layer) -> bool {
        match self {
            Self::Identity => matches!(layer, Layer::Identity),
            Self::Profile => matches!(layer, Layer::Identity | Layer::Persona | Layer::Skills),
            Self::Transfer | Self::Clone | Self::Backup | Self::Full => true,
        }
    }
}

/// The chains that the standard lists (its Appendix B). Others of the same families are read and written, with a
/// warning.
pub(super) const LISTED_CHAINS: [&str; 4] =
    ["eip155:8453", "eip155:1", "eip155:137", "solana:mainnet"];

/// The words for traits that the standard lists (its Appendix A).
pub(super) const LISTED_TRAITS: [&str; 26] = [
    "analytical",
    "creative",
    "methodical",
    "intuitive",
    "detail-oriented",
    "big-picture",
    "direct",
    "diplomatic",
    "verbose",
    "concise",
    "formal",
    "casual",
    "technical",
    "accessible",
    "autonomous",
    "collaborative",
    "proactive",
    "reactive",
    "systematic",
    "adaptive",
    "empathetic",
    "assertive",
    "supportive",
    "challenging",
    "patient",
    "decisive",
];
