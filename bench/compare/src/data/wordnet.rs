//! WordNet as triples: the `data.*` files of Debian's wordnet-base, as wndb(5) describes them.
//!
//! A synset becomes a readable name (`entity.n.1`: its first word, part of speech, and a count of
//! synsets that start with the same word), a pointer a triple, and so do its words and its gloss.
//! It reads files and knows nothing of grains.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::{Result, data::Synset};

/// The files and the letter names carry.
const FILES: [(&str, &str); 4] =
    [("data.noun", "n"), ("data.verb", "v"), ("data.adj", "a"), ("data.adv", "r")];

/// Pointer symbols and the relation each becomes; a part of speech where they differ.
const POINTERS: [(&str, Option<&str>, &str); 27] = [
    ("!", None, "antonym"),
    ("@", None, "hypernym"),
    ("@i", None, "instance_hypernym"),
    ("~", None, "hyponym"),
    ("~i", None, "instance_hyponym"),
    ("#m", None, "member_holonym"),
    ("#s", None, "substance_holonym"),
    ("#p", None, "part_holonym"),
    ("%m", None, "member_meronym"),
    ("%s", None, "substance_meronym"),
    ("%p", None, "part_meronym"),
    ("=", None, "attribute"),
    ("+", None, "derivationally_related"),
    (";c", None, "domain_topic"),
    ("-c", None, "member_of_topic"),
    (";r", None, "domain_region"),
    ("-r", None, "member_of_region"),
    (";u", None, "domain_usage"),
    ("-u", None, "member_of_usage"),
    ("*", None, "entailment"),
    (">", None, "cause"),
    ("^", None, "also_see"),
    ("$", None, "verb_group"),
    ("&", None, "similar_to"),
    ("<", None, "participle_of"),
    ("\\", Some("r"), "derived_from_adjective"),
    ("\\", None, "pertainym"),
];

/// A data line, read but with its pointers still at offsets.
struct Line<'t> {
    offset: &'t str,
    lexicographer_file: &'t str,
    words: Vec<&'t str>,
    /// Symbol, offset and part of speech of the target.
    pointers: Vec<(&'t str, &'t str, &'t str)>,
    gloss: &'t str,
}

/// Every synset of the four files in a directory; nothing where the files are not there.
///
/// # Errors
/// For files that cannot be read, and for lines that are not what wndb(5) says.
pub(crate) fn read(directory: &Path) -> Result<Option<Vec<Synset>>> {
    let mut texts = Vec::new();
    for (file, letter) in FILES {
        let path = directory.join(file);
        if !path.is_file() {
            return Ok(None);
        }
        texts.push((letter, fs::read_to_string(path)?));
    }
    let mut lines = Vec::new();
    for (letter, text) in &texts {
        // The licence at the top is indented.
        for line in text.lines().filter(|line| !line.starts_with(' ')) {
            let parsed = parse(line).ok_or_else(|| format!("not a WordNet line: {line:?}"))?;
            lines.push((*letter, parsed));
        }
    }
    Ok(Some(synsets(&lines)))
}

/// Reads `offset file type w_cnt word lex_id... p_cnt pointer... | gloss`.
fn parse(line: &str) -> Option<Line<'_>> {
    let (head, gloss) = line.split_once('|')?;
    let mut fields = head.split_ascii_whitespace();
    let offset = fields.next()?;
    let lexicographer_file = fields.next()?;
    fields.next()?;
    let words = usize::from_str_radix(fields.next()?, 16).ok()?;
    let words = (0..words).map(|_| {
        let word = fields.next()?;
        fields.next()?;
        Some(word)
    });
    let words = words.collect::<Option<Vec<_>>>()?;
    let pointers: usize = fields.next()?.parse().ok()?;
    let pointers = (0..pointers).map(|_| {
        let pointer = (fields.next()?, fields.next()?, fields.next()?);
        fields.next()?;
        Some(pointer)
    });
    let pointers = pointers.collect::<Option<Vec<_>>>()?;
    Some(Line { offset, lexicographer_file, words, pointers, gloss: gloss.trim() })
}

/// Names every synset, then follows the pointers.
fn synsets(lines: &[(&str, Line<'_>)]) -> Vec<Synset> {
    let mut same_name: HashMap<(&str, &str), usize> = HashMap::new();
    let mut names: HashMap<(&str, &str), String> = HashMap::new();
    for (letter, line) in lines {
        let Some(word) = line.words.first() else { continue };
        let count = same_name.entry((letter, word)).or_insert(0);
        *count += 1;
        names.insert((letter, line.offset), format!("{word}.{letter}.{count}"));
    }
    lines.iter().filter_map(|(letter, line)| synset(letter, line, &names)).collect()
}

fn synset(letter: &str, line: &Line<'_>, names: &HashMap<(&str, &str), String>) -> Option<Synset> {
    let mut triples = Vec::new();
    for (symbol, offset, target) in &line.pointers {
        // Satellite adjectives live among the adjectives.
        let target = if *target == "s" { "a" } else { target };
        let named = POINTERS.iter().find(|(known, only, _)| {
            known == symbol && only.is_none_or(|part_of_speech| part_of_speech == letter)
        });
        if let (Some((.., relation)), Some(object)) = (named, names.get(&(target, *offset))) {
            triples.push(((*relation).to_owned(), object.clone()));
        }
    }
    for word in &line.words {
        triples.push(("word".to_owned(), word.replace('_', " ")));
    }
    triples.push(("gloss".to_owned(), line.gloss.to_owned()));
    // Two words of a synset may point at the same synset; a triple says it once.
    triples.sort_unstable();
    triples.dedup();
    let name = names.get(&(letter, line.offset))?.clone();
    let tags = vec![
        format!("part-of-speech:{letter}"),
        format!("lexicographer-file:{}", line.lexicographer_file),
    ];
    Some(Synset { name, tags, triples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_its_words_pointers_and_gloss() {
        let first = "00000010 03 n 02 living_thing 0 animate_thing 0 002 ~ 00000020 n 0000 \
                     + 00000030 s 0101 | a living entity  ";
        let second = "00000020 05 n 01 animal 0 001 @ 00000010 n 0000 | it moves";
        let third = "00000030 00 s 01 alive 0 000 | having life";
        let lines: Vec<_> = [("n", first), ("n", second), ("a", third)]
            .into_iter()
            .map(|(letter, line)| (letter, parse(line).unwrap()))
            .collect();
        let found = synsets(&lines);
        assert_eq!(found[0].name, "living_thing.n.1");
        assert_eq!(found[0].tags, ["part-of-speech:n", "lexicographer-file:03"]);
        let expected = [
            ("derivationally_related", "alive.a.1"),
            ("gloss", "a living entity"),
            ("hyponym", "animal.n.1"),
            ("word", "animate thing"),
            ("word", "living thing"),
        ];
        let found: Vec<_> =
            found[0].triples.iter().map(|(r, o)| (r.as_str(), o.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_broken_line_is_refused() {
        for line in ["", "x", "00000010 03 n 02 one 0 000 | two words missing", "1 2 n zz |"] {
            assert!(parse(line).is_none(), "{line:?}");
        }
    }
}
