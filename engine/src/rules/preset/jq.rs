//! Syntax check of JQ expressions (OMS A.7). They are parsed, never run.
//!
//! The parser is recursive, and stored text must not be able to overflow its stack: it runs on a thread whose
//! stack suffices for the recursion that the text can cause, and a text with too many tokens is refused.

use jaq_core::load;

/// Maximum number of tokens in an expression.
const MAX_TOKENS: usize = 8192;
/// Maximum stack per token, in bytes: twice the largest use measured in an unoptimised build.
const TOKEN_STACK_BYTES: usize = 32 << 10;
/// Stack independent of the number of tokens, in bytes.
const BASE_STACK_BYTES: usize = 256 << 10;

/// Returns `true` if a text is an expression. An empty one is valid in jq: it is the identity.
pub(super) fn is_expression(text: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let tokens = max_tokens(text);
    if tokens > MAX_TOKENS {
        return false;
    }
    let stack = BASE_STACK_BYTES.saturating_add(tokens.saturating_mul(TOKEN_STACK_BYTES));
    std::thread::scope(|scope| {
        let parse = || load::parse(text, |parser| parser.term()).is_some();
        let parsed = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, parse);
        // Fails closed if there is no thread, or if it panicked.
        parsed.is_ok_and(|parsed| parsed.join().unwrap_or_default())
    })
}

/// Upper bound for the number of tokens: each word and each sign counts as one.
fn max_tokens(text: &str) -> usize {
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

    /// The expressions with the deepest recursion have enough stack, and longer ones are refused without
    /// parsing.
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
            let most = (MAX_TOKENS - 2) / (max_tokens(open) + max_tokens(close));
            let deep = of(most);
            assert!(max_tokens(&deep) <= MAX_TOKENS, "{open}");
            assert!(is_expression(&deep), "{open}");
            assert!(!is_expression(&open.repeat(most)), "{open}");
            assert!(!is_expression(&of(MAX_TOKENS)), "{open}");
        }
        let long = format!("\"{}\"", "a".repeat(1 << 20));
        assert!(is_expression(&long), "one word");
    }
}
