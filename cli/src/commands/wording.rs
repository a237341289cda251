//! Options about what is indexed as text: languages, and domains of observers.

use std::str::FromStr;

use clap::Args;
use grainstore::OpenOptions;

use crate::error::Result;

/// Which texts are indexed, and in which language. The store keeps all of them until others are given.
#[derive(Debug, Default, Args)]
pub(crate) struct Wording {
    /// The language of texts, by a code such as de, or of a namespace and those below it (NS=de); English
    /// without it, und for words as they are. May be given several times
    #[arg(long = "language", value_name = "[NS=]CODE")]
    languages: Vec<String>,
    /// The domain of some observer types, such as physical=lidar,camera (OMS 24). May be given several times
    #[arg(long = "observer-domain", value_name = "DOMAIN=TYPE,...")]
    domains: Vec<Domain>,
    /// A domain whose observations are not indexed as text, such as streams of readings
    #[arg(long = "unsearched", value_name = "DOMAIN", requires = "domains")]
    unsearched: Vec<String>,
}

/// A domain, and the observer types in it.
#[derive(Debug, Clone)]
struct Domain {
    name: String,
    types: Vec<String>,
}

impl FromStr for Domain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, types) = text.split_once('=').unwrap_or_default();
        let types: Vec<_> = types.split(',').map(str::to_owned).collect();
        if name.is_empty() || types.iter().any(String::is_empty) {
            return Err("write it as physical=lidar,camera".to_owned());
        }
        Ok(Self { name: name.to_owned(), types })
    }
}

impl Wording {
    /// Returns `true` if nothing is given, so that a store keeps what it has.
    pub(crate) fn is_empty(&self) -> bool {
        self.languages.is_empty() && self.domains.is_empty()
    }

    /// Adds what is given to the options of a store.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for an unknown language.
    pub(crate) fn add_to(&self, mut options: OpenOptions) -> Result<OpenOptions> {
        for given in &self.languages {
            let (namespace, code) = match given.split_once('=') {
                Some((namespace, code)) => (Some(namespace), code),
                None => (None, given.as_str()),
            };
            options = options.language(namespace, code)?;
        }
        for Domain { name, types } in &self.domains {
            let searched = !self.unsearched.contains(name);
            options = options.observer_domain(name, types.iter().map(String::as_str), searched);
        }
        Ok(options)
    }
}
