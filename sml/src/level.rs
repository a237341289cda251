//! The levels of detail at which grains are shown.

/// The level of detail of a grain (CAL 10.4.4).
///
/// ```
/// use grainstore_sml::Level;
///
/// assert_eq!(Level::Full.lower(), Some(Level::Standard));
/// assert_eq!((Level::Summary.lower(), Level::Summary.name()), (None, "summary"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The text and the essential attributes.
    Summary,
    /// Every attribute of the type. The default, also called `headlines`.
    Standard,
    /// Also source, time, importance, tags and verification status.
    Full,
}

impl Level {
    /// Returns the name used in `progressive_disclosure`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    /// Returns the next level with less detail, or `None` for the lowest.
    #[must_use]
    pub fn lower(self) -> Option<Self> {
        match self {
            Self::Full => Some(Self::Standard),
            Self::Standard => Some(Self::Summary),
            Self::Summary => None,
        }
    }
}
