//! Whether a text is a JQ expression (OMS A.7). It is parsed, never run.
//!
//! The parser calls itself for what lies within, and behind each sign of, an expression, and what somebody wrote must
//! not end the process: it gets a thread whose stack has room for as many calls as the text can ask for, and a text that
//! asks for too many is none.

use jaq_core::load;

/// Tokens of an expression.
const MAX_TOKENS: usize = 8192;
/// Stack a token takes at most: twice what the hungriest was seen to take in a build without optimisation.
const TOKEN_STACK: usize = 32 << 10;
/// Stack that is there without tokens.
const BASE_STACK: usize = 256 << 10;

/// Whether a text is an expression. One that says nothing is that of jq, which gives back what it is given.
pub(super) fn is_expression(text: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let tokens = tokens_at_most(text);
    if tokens > MAX_TOKENS {
        return false;
    }
    let stack = BASE_STACK.saturating_add(tokens.saturating_mul(TOKEN_STACK));
    std::thread::scope(|scope| {
        let parse = || load::parse(text, |parser| parser.term()).is_some();
        let parsed = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, parse);
        // Without a thread, or where it ended otherwise, nobody knows that it is one.
        parsed.is_ok_and(|parsed| parsed.join().unwrap_or_default())
    })
}

/// How many tokens a text has at most: each word is one, and each sign.
fn tokens_at_most(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut was_word = false;
    let begins = |c: &char| {
        let goes_on = was_word && is_word(*c);
        was_word = is_word(*c);
        !goes_on && !c.is_whitespace()
    };
    text.chars().filter(begins).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_jq_takes_is_an_expression_and_nothing_else() {
        for text in [
            "",
            ".",
            ".data.items",
            ".data[]?.name // \"none\"",
            "[.items[] | {id, name: .full_name}]",
            "map(select(.open))",
            "if .ok then .data else empty end",
            "reduce .[] as $x (0; . + $x)",
            "def f(x): x; f(.a)",
            "\"\\(.a) and \\(.b)\"",
            ".a as [$x, {b: $y}] | $x + $y",
            "try error catch .",
            ".[1:-1]",
            "@base64 \"x\\(.)\"",
            "# all of it\n.a",
            "-1",
            "..",
        ] {
            assert!(is_expression(text), "{text}");
        }
        for text in [
            ".data[ || ]]",
            ".data.",
            ".a |",
            "foo(",
            "[1, 2",
            "{a: }",
            "\"open",
            ".a b",
            "'x'",
            "$.data",
            "\u{0}",
            "?",
            ")",
            "if . then 1",
            "\"\\(.a\"",
        ] {
            assert!(!is_expression(text), "{text}");
        }
    }

    /// Whatever asks for the most calls has stack enough, and more than that is told without any.
    #[test]
    fn an_expression_of_any_depth_ends_no_process() {
        for (open, inner, close) in [
            ("(", ".", ")"),
            ("[", ".", "]"),
            ("{a:", "1", "}"),
            ("-", "1", ""),
            (".|", ".", ""),
            ("1,", "1", ""),
            ("1+", "1", ""),
            ("try ", ".", ""),
            ("if . then ", ".", " else . end"),
            ("def f: 1; ", ".", ""),
            (". as $x|", ".", ""),
            ("\"\\(", ".", ")\""),
            (".[", ".", "]"),
            ("f(", ".", ")"),
            ("label $x|", ".", ""),
            ("reduce . as $x (", ".", ";.)"),
        ] {
            let of = |times: usize| open.repeat(times) + inner + &close.repeat(times);
            let most = (MAX_TOKENS - 2) / (tokens_at_most(open) + tokens_at_most(close));
            let deep = of(most);
            assert!(tokens_at_most(&deep) <= MAX_TOKENS, "{open}");
            assert!(is_expression(&deep), "{open}");
            assert!(!is_expression(&open.repeat(most)), "{open}");
            assert!(!is_expression(&of(MAX_TOKENS)), "{open}");
        }
        let long = format!("\"{}\"", "a".repeat(1 << 20));
        assert!(is_expression(&long), "one word");
    }
}
