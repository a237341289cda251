//! What is asked in a language. How it is said there is up to each store.

/// A question in words of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The ten best of the facts that have one of two words.
    Recall([String; 2]),
    /// The newest facts of a subject, 16 at most, as text for a prompt.
    Text(String),
    /// What is known of a subject (16 at most), the facts with one of two words, and the newest, as
    /// text of 2,000 tokens at most, in this order of importance.
    Assemble {
        /// The subject.
        subject: String,
        /// The words.
        words: [String; 2],
        /// Facts of the search, and of the newest, at most.
        each: u32,
    },
}
