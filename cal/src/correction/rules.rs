//! Rewrite rules for what people and models write in the place of CAL syntax.
//!
//! A group is an advice for a person and its rows of pattern and replacement. Among the rows that match at
//! the position of an error, the first that leads to a valid statement is taken, so narrow rows stand before
//! wide ones.

use super::Rewrite;
use super::pattern::QueryPieces;

type RuleGroup = (&'static str, &'static [(&'static str, &'static str)]);

/// Returns the rewrites of the rules that match around the piece at `place`.
pub(super) fn rewrites(query: QueryPieces<'_>, place: usize) -> Vec<Rewrite> {
    let mut steps = Vec::new();
    let writes = ["ADD", "SUPERSEDE"].iter().any(|word| query.is(0, word));
    let groups = if writes { OF_WRITES } else { ALL_RULES };
    for (advice, rows) in groups.iter().copied().flatten() {
        for (pattern, instead) in *rows {
            for from in 0..=query.all.len().min(place + 1) {
                let Some(found) = query.find(pattern, from) else { continue };
                let covers = found.from <= place + 1 && place <= found.to;
                let text = covers.then(|| query.replace(&found, instead)).flatten();
                if let Some(text) = text {
                    steps.push(Rewrite { advice: (*advice).to_owned(), text });
                }
            }
        }
    }
    steps
}

const ALL_RULES: &[&[RuleGroup]] =
    &[STATEMENT_RULES, RECALL_RULES, CONDITION_RULES, STAGE_RULES, ASSEMBLE_RULES, OTHER_RULES];
/// What a statement that writes takes looks like conditions, and is none.
const OF_WRITES: &[&[RuleGroup]] = &[STATEMENT_RULES, OTHER_RULES, CONDITION_RULES];

#[rustfmt::skip]
const STATEMENT_RULES: &[RuleGroup] = &[
    ("a query is RECALL and a type; what is shown of it stands in a SELECT behind it", &[
        ("^ SELECT * FROM $p", "RECALL #1"),
        ("^ SELECT $l FROM $p", "RECALL #2 >> | SELECT #1"),
    ]),
    ("HISTORY takes an address, or WHERE subject = ... AND relation = ... alone", &[
        ("^ HISTORY OF|FOR|ABOUT $s END", "RECALL WHERE subject = #1 WITH superseded"),
        ("^ HISTORY $s END", "RECALL WHERE subject = #1 WITH superseded"),
    ]),
    ("MY stands behind RECALL", &[("^ MY $p", "RECALL MY #1")]),
    ("a query begins with RECALL", &[
        ("^ FIND|GET|FETCH|LIST|SHOW|QUERY|SEARCH|LOOKUP|RETRIEVE|READ|MATCH|SELECT $p", "RECALL #1"),
        ("^ FIND|GET|FETCH|SEARCH|QUERY|LOOKUP $s", "RECALL LIKE #1"),
        ("^ $p", "RECALL #1"),
    ]),
    ("counting is a stage: RECALL ... | COUNT", &[
        ("^ COUNT ( $p )", "RECALL #1 >> | COUNT"),
        ("^ COUNT $p", "RECALL #1 >> | COUNT"),
        ("RECALL COUNT $p", "RECALL #1 >> | COUNT"),
        ("RECALL COUNT ( * ) FROM $p", "RECALL #1 >> | COUNT"),
    ]),
    ("DESCRIBE tells what there is", &[
        ("^ SHOW TEMPLATES", "DESCRIBE templates"),
        ("^ HELP", "DESCRIBE grammar"),
        ("DESCRIBE TABLES|TYPES|TYPE|ENTITIES", "DESCRIBE grain_types"),
        ("DESCRIBE ALL", "DESCRIBE capabilities"),
        ("DESCRIBE END", "DESCRIBE capabilities"),
        ("DESCRIBE $s", "DESCRIBE #1:bare"),
        ("DESCRIBE FIELDS OF|FOR|IN $w", "DESCRIBE fields #1"),
        ("DESCRIBE FIELDS ( $w )", "DESCRIBE fields #1"),
    ]),
    ("a grain is replaced by SUPERSEDE, which keeps the old one", &[
        ("^ UPDATE|REPLACE|MODIFY|CHANGE|EDIT $h", "SUPERSEDE #1"),
    ]),
    ("versions are compared by HISTORY ... DIFF ...", &[
        ("^ DIFF|COMPARE $h , $h", "HISTORY #1 DIFF #2"),
        ("^ DIFF|COMPARE $h $h", "HISTORY #1 DIFF #2"),
    ]),
    ("write EXPLAIN and the statement", &[
        ("^ EXPLAIN ANALYZE|PLAN|QUERY|:|, $k", "EXPLAIN #1"),
        ("^ EXPLAIN ( $k $* ) END", "EXPLAIN #1 #2"),
        ("^ DRYRUN|DRY_RUN|TEST|PREVIEW|SIMULATE|PLAN : $k", "EXPLAIN #1"),
        ("^ DRYRUN|DRY_RUN|TEST|PREVIEW|SIMULATE|PLAN $k", "EXPLAIN #1"),
        ("^ DRY RUN : $k", "EXPLAIN #1"),
        ("^ DRY RUN $k", "EXPLAIN #1"),
        ("^ EXPLAIN $p", "EXPLAIN RECALL #1"),
    ]),
    ("write DEFINE TEMPLATE and its name", &[("^ DEFINE $w ELEMENT", "DEFINE TEMPLATE #1 ELEMENT")]),
    ("the version is CAL/1, or nothing", &[
        ("^ CAL / 1.0|1.0.0|V1|V1.0 :|;|,", "CAL/1"),
        ("^ CAL / 1.0|1.0.0|V1|V1.0", "CAL/1"),
        ("^ CAL / 1 :|;|,", "CAL/1"),
        ("^ CAL 1|1.0|V1", "CAL/1"),
        ("^ CAL :", ""),
    ]),
    ("a query is the statement alone", &[
        ("^ PLEASE|CAL|NOW|THEN|RUN|EXECUTE|DO|QUERY $k", "#1"),
        ("^ $w : $r", "#2"),
        ("^ > $k", "#1"),
        ("; END", ""),
        (". END", ""),
        ("PIPE END", ""),
        (", END", ""),
    ]),
    ("parentheses stand around the parts of a set operation, and around no query alone", &[
        ("^ ( RECALL $* ) END", "RECALL #1"),
        ("^ RECALL $c UNION RECALL $c END", "(RECALL #1) UNION (RECALL #2)"),
        ("^ RECALL $c INTERSECT RECALL $c END", "(RECALL #1) INTERSECT (RECALL #2)"),
        ("^ RECALL $c EXCEPT RECALL $c END", "(RECALL #1) EXCEPT (RECALL #2)"),
        (") UNION ALL|DISTINCT (", ") UNION ("),
        (") +|OR|, (", ") UNION ("),
        (") AND|& (", ") INTERSECT ("),
        (") -|MINUS|WITHOUT (", ") EXCEPT ("),
    ]),
    ("several statements stand in a BATCH, each with a label", &[
        ("^ RECALL $* ; RECALL $* END", "BATCH { q1: RECALL #1, q2: RECALL #2 }"),
    ]),
];

#[rustfmt::skip]
const RECALL_RULES: &[RuleGroup] = &[
    ("a type follows RECALL, and a number stands in LIMIT", &[
        ("RECALL $n $p", "RECALL #2 >> LIMIT #1"),
        ("RECALL TOP|FIRST $n $p", "RECALL #2 >> LIMIT #1"),
        ("RECALL LAST|LATEST|RECENT|NEWEST $n $p", "RECALL #2 >> RECENT #1"),
    ]),
    ("RECENT stands behind the type, and says how many", &[
        ("RECALL LAST|LATEST|RECENT|NEWEST $p", "RECALL #1 RECENT 20"),
    ]),
    ("LIMIT takes one number, and OFFSET stands before it", &[
        ("LIMIT $n , $n", "OFFSET #1 LIMIT #2"),
    ]),
    ("a span of time stands behind SINCE", &[
        ("IN|OVER|FOR|WITHIN THE LAST|PAST $n DAYS|DAY", "SINCE \"last #1 days\""),
        ("IN|OVER|FOR|WITHIN LAST|PAST $n DAYS|DAY", "SINCE \"last #1 days\""),
        ("LAST|PAST $n DAYS|DAY", "SINCE \"last #1 days\""),
        ("LAST|PAST $n WEEKS|WEEK", "SINCE \"last #1 weeks\""),
        ("LAST|PAST $n HOURS|HOUR", "SINCE \"last #1 hours\""),
        ("LAST|PAST $n MONTHS|MONTH", "SINCE \"last #1 months\""),
        ("SINCE $n @DAYS|DAY|WEEKS|WEEK|HOURS|HOUR|MONTHS|MONTH AGO", "SINCE \"#1 #2 ago\""),
        ("SINCE $n @DAYS|WEEKS|HOURS|MONTHS", "SINCE \"last #1 #2\""),
        ("WITHIN|IN $d", "SINCE #1"),
        ("WITHIN $s", "SINCE #1:span"),
        ("ON|AT $d", "BETWEEN #1 AND #1"),
    ]),
    ("a type follows RECALL, and a number stands in LIMIT or RECENT", &[
        ("@LIMIT|RECENT|OFFSET $u", "#1 #2:cap"),
        ("@LIMIT|RECENT|OFFSET $s", "#1 #2:cap"),
        ("@LIMIT|RECENT|OFFSET =|: $n", "#1 #2"),
        ("@LIMIT|RECENT|OFFSET ( $n )", "#1 #2"),
        ("FIRST 1", "FIRST"),
        ("TOP|HEAD|TAKE|FIRST ( $n )", "LIMIT #1"),
        ("TOP|HEAD|TAKE|FIRST $n", "LIMIT #1"),
        ("LAST|LATEST|NEWEST $n", "RECENT #1"),
        ("SKIP $n", "OFFSET #1"),
        ("RECENT $n LIMIT $n", "RECENT #2"),
    ]),
    ("a type follows RECALL at once; without one it is about all types", &[
        ("RECALL THE|ALL|ANY|EVERY|ME $p", "RECALL #1"),
        ("RECALL * FROM $p", "RECALL #1"),
        ("RECALL FROM $p", "RECALL #1"),
        ("RECALL ( $p )", "RECALL #1"),
        ("RECALL MEMORIES|MEMORY|GRAINS|ALL|EVERYTHING|ENTRIES|RECORDS|*", "RECALL"),
        ("RECALL PREFERENCES|PREFERENCE", "RECALL beliefs >> WHERE relation IS PREFERENCE"),
        ("RECALL MESSAGES|MESSAGE|EPISODES|CONVERSATIONS|TURNS", "RECALL events"),
        ("RECALL TASKS|TASK|TODOS|PLANS|INTENTIONS", "RECALL goals"),
        ("RECALL TOOL_CALLS|TOOL_CALL|TOOLCALLS|CALLS|FUNCTION_CALLS|INVOCATIONS", "RECALL actions"),
        ("RECALL TOOL CALLS", "RECALL actions"),
        ("RECALL @ACTIVE|SATISFIED|FAILED|SUSPENDED|COMPLETED|ABANDONED|BLOCKED GOALS WHERE", "RECALL goals WHERE goal_state = #1:quoted AND"),
        ("RECALL @ACTIVE|SATISFIED|FAILED|SUSPENDED|COMPLETED|ABANDONED|BLOCKED GOALS", "RECALL goals WHERE goal_state = #1:quoted"),
    ]),
    ("what it is about stands behind ABOUT, and words to search for behind LIKE", &[
        ("RECALL $s", "RECALL LIKE #1"),
        ("RECALL $p $s", "RECALL #1 ABOUT #2"),
        ("FOR|OF|ON|REGARDING|CONCERNING $s", "ABOUT #1"),
        ("SIMILAR|MATCHING|NEAR|MATCH|CONTAINING TO $s", "LIKE #1"),
        ("SIMILAR|MATCHING|NEAR|MATCH|CONTAINING|SEARCH $s", "LIKE #1"),
        ("ABOUT $s LIKE $s", "LIKE #2 WHERE subject = #1"),
        ("ABOUT $s ,|AND|OR $s", "WHERE subject IN (#1, #2)"),
        ("ABOUT ( $s , $L ) WHERE|AND", "WHERE subject IN (#1, #2) AND"),
        ("ABOUT ( $s , $L )", "WHERE subject IN (#1, #2)"),
        ("ABOUT [ $s , $L ] WHERE|AND", "WHERE subject IN (#1, #2) AND"),
        ("ABOUT [ $s , $L ]", "WHERE subject IN (#1, #2)"),
        ("@ABOUT|LIKE [ $s ]", "#1 #2"),
    ]),
    ("text stands in double quotes", &[
        ("@ABOUT|LIKE|SINCE|THREAD|IN|FOR|SCOPE|NAMESPACE $u", "#1 #2:quoted"),
        ("@ABOUT|LIKE|SINCE|THREAD|IN|REASON|FOR =|: $s", "#1 #2"),
        ("@ABOUT|LIKE|SINCE|THREAD|IN ( $s )", "#1 #2"),
        ("$q", "#1:within"),
        ("$o END", "#1\""),
    ]),
    ("a namespace stands behind IN", &[
        ("NAMESPACE $s", "IN #1"),
        ("FROM $s TO|UNTIL|AND $s", "BETWEEN #1 AND #2"),
        ("FROM $s", "IN #1"),
    ]),
    ("the events of a session are those of THREAD \"id\"", &[("IN THREAD", "THREAD")]),
    ("a time stands behind SINCE, or two in BETWEEN ... AND ...", &[
        ("SINCE $s UNTIL|TO|BEFORE $s", "BETWEEN #1 AND #2"),
        ("AFTER $s", "SINCE #1"),
        ("BEFORE|UNTIL $s", "BETWEEN 0 AND #1"),
        ("BETWEEN $v TO|,|-|OR $v", "BETWEEN #1 AND #2"),
        ("BETWEEN ( $v ,|AND $v )", "BETWEEN #1 AND #2"),
    ]),
];

#[rustfmt::skip]
const CONDITION_RULES: &[RuleGroup] = &[
    ("presence is no condition of its own: a field with a value differs from \"\"", &[
        ("$f IS NOT NULL", "#1 != \"\""),
        ("$f != NULL", "#1 != \"\""),
    ]),
    ("tags take INCLUDE or EXCLUDE and an array", &[
        ("TAGS|TAG @INCLUDE|EXCLUDE ( $L )", "tags #1 [#2]"),
        ("TAGS|TAG @INCLUDE|EXCLUDE $L", "tags #1 [#2]"),
        ("TAGS|TAG INCLUDES|CONTAINS|HAS|=|: $L", "tags INCLUDE [#1]"),
        ("TAGS|TAG EXCLUDES|!= $L", "tags EXCLUDE [#1]"),
        ("TAGS|TAG IN ( $L )", "tags INCLUDE [#1]"),
        ("TAGS|TAG =|IN|INCLUDES|CONTAINS [", "tags INCLUDE ["),
        ("TAGS|TAG != [", "tags EXCLUDE ["),
        ("$s IN TAGS", "tags INCLUDE [#1]"),
        ("TAGGED $s", "WHERE tags INCLUDE [#1]"),
        ("@WHERE|AND TAGS|TAGGED $L", "#1 tags INCLUDE [#2]"),
        ("WITH TAGS|TAG [ $L ]", "WHERE tags INCLUDE [#1]"),
        ("WITH TAGS|TAG $L", "WHERE tags INCLUDE [#1]"),
        ("TAGS|TAGGED [ $L ]", "WHERE tags INCLUDE [#1]"),
        ("TAGS $L", "WHERE tags INCLUDE [#1]"),
    ]),
    ("a category of relations stands behind IS, without quotes", &[
        ("RELATION =|IS PREFERENCES", "relation IS PREFERENCE"),
        ("RELATION = @PREFERENCE|KNOWLEDGE|PERMISSION|INTERACTION|AGENCY|LIFECYCLE|OBSERVATION", "relation IS #1"),
        ("RELATION IS $s", "relation IS #1:bare"),
    ]),
    ("text is searched by LIKE \"words\", beside the conditions", &[
        ("WHERE $f LIKE|CONTAINS|MATCHES|ILIKE|~ $s AND", "LIKE #2:like WHERE"),
        ("WHERE $f LIKE|CONTAINS|MATCHES|ILIKE|~ $s", "LIKE #2:like"),
        ("AND $f LIKE|CONTAINS|MATCHES|ILIKE|~ $s", "AND query = #2:like"),
        ("LIKE $s", "LIKE #1:like"),
        ("WHERE CONTAINS|MATCHES|SEARCH ( $f , $s ) AND", "LIKE #2:like WHERE"),
        ("WHERE CONTAINS|MATCHES|SEARCH ( $f , $s )", "LIKE #2:like"),
        ("AND CONTAINS|MATCHES|SEARCH ( $f , $s )", "AND query = #2:like"),
    ]),
    ("words that begin so are searched by LIKE \"begin*\", beside the conditions", &[
        ("WHERE $f STARTSWITH|STARTS_WITH|BEGINS_WITH|PREFIX $s AND", "LIKE #2:begin WHERE"),
        ("WHERE $f STARTSWITH|STARTS_WITH|BEGINS_WITH|PREFIX $s", "LIKE #2:begin"),
        ("WHERE $f STARTS|BEGINS|STARTING WITH $s AND", "LIKE #2:begin WHERE"),
        ("WHERE $f STARTS|BEGINS|STARTING WITH $s", "LIKE #2:begin"),
        ("AND $f STARTSWITH|STARTS_WITH|BEGINS_WITH|PREFIX $s", "AND query = #2:begin"),
        ("AND $f STARTS|BEGINS|STARTING WITH $s", "AND query = #2:begin"),
    ]),
    ("several values stand in parentheses behind IN", &[
        ("$f IN (|[ $L ;|PIPE $v", "#1 IN (#2, #3"),
        ("$f IN (|[ $L $v", "#1 IN (#2, #3"),
        ("$f IN ( $L ]", "#1 IN (#2)"),
        ("$f IN [ $L ]", "#1 IN (#2)"),
        ("$f IN $s", "#1 IN (#2)"),
        ("$f = [ $L ]", "#1 IN (#2)"),
        ("$f = ( $L )", "#1 IN (#2)"),
        ("$f NOT IN ( $v )", "#1 != #2"),
        ("$f NOT IN ( $v , $v )", "#1 != #2 AND #1 != #3"),
        ("$f = $v OR $v", "#1 IN (#2, #3)"),
        ("PIPE PIPE $f", "OR #1"),
    ]),
    ("equality is one =", &[
        ("$f = = =", "#1 ="),
        ("$f = =", "#1 ="),
        ("$f : =", "#1 ="),
    ]),
    ("the comparisons are =, !=, >=, <=, > and <", &[
        ("$f < >", "#1 !="),
        ("$f = >", "#1 >="),
        ("$f = <", "#1 <="),
        ("$f IS NOT $v", "#1 != #2"),
        ("$f NOT =", "#1 !="),
        ("NOT $f = $v", "#1 != #2"),
        ("$f GTE|GE $v", "#1 >= #2"),
        ("$f LTE|LE $v", "#1 <= #2"),
        ("$f GT $v", "#1 > #2"),
        ("$f LT $v", "#1 < #2"),
        ("$f NE|NEQ $v", "#1 != #2"),
        ("$f IS AT LEAST $v", "#1 >= #2"),
        ("$f AT LEAST $v", "#1 >= #2"),
        ("$f AT MOST $v", "#1 <= #2"),
        ("$f :|EQUALS|EQ|IS $v", "#1 = #2"),
        ("$f GREATER|MORE|ABOVE|OVER THAN $v", "#1 > #2"),
        ("$f LESS|FEWER|BELOW|UNDER THAN $v", "#1 < #2"),
    ]),
    ("the field stands first, then what it is compared with", &[
        ("@WHERE|AND|OR|( $v < $f", "#1 #3 > #2"),
        ("@WHERE|AND|OR|( $v <= $f", "#1 #3 >= #2"),
        ("@WHERE|AND|OR|( $v > $f", "#1 #3 < #2"),
        ("@WHERE|AND|OR|( $v >= $f", "#1 #3 <= #2"),
        ("@WHERE|AND|OR|( $v @=|!= $f", "#1 #4 #3 #2"),
    ]),
    ("conditions are joined by AND, behind one WHERE, without parentheses", &[
        ("WHERE AND", "WHERE"),
        ("AND AND", "AND"),
        ("AND END", ""),
        ("WHERE END", ""),
        ("$v , $f", "#1 AND #2"),
        ("$v & & $f", "#1 AND #2"),
        ("$v & $f", "#1 AND #2"),
        ("$v WHERE $f", "#1 AND #2"),
        ("@WHERE|AND ( $* )", "#1 #2"),
        ("$p ( $* )", "#1 WHERE #2"),
        ("PIPE WHERE|FILTER", "WHERE"),
        ("FILTER|IF|HAVING $f", "WHERE #1"),
        ("WITH $f @=|!=|>|<|>=|<=", "WHERE #1 #2"),
        ("$p $f @=|!=|>|<|>=|<=|IN|INCLUDE", "#1 WHERE #2 #3"),
        ("$v $f @=|!=|>|<|>=|<=|IN", "#1 AND #2 #3"),
    ]),
    ("a number is digits, optionally with one fraction", &[
        ("$n %", "#1:share"),
        (". $n", "0.#1"),
        ("@=|>|<|>=|<= 0 , $n", "#1 0.#2"),
        ("@>|>=|<|<=|= $e", "#1 #2:number"),
        ("@>|>=|<|<= $s", "#1 #2:number"),
    ]),
    ("a range of numbers is two comparisons", &[
        ("$f BETWEEN $n AND $n", "#1 >= #2 AND #1 <= #3"),
    ]),
    ("a time takes = and BETWEEN, or use SINCE", &[
        ("TIME >|>= $v AND TIME <|<= $v", "time BETWEEN #1 AND #2"),
        ("@DEADLINE|EXPIRES_AT >|>= $v AND #1 <|<= $v", "#1 BETWEEN #2 AND #3"),
        ("@DEADLINE|EXPIRES_AT <|<= $v", "#1 BETWEEN 0 AND #2"),
        ("TIME >|>= $v", "time BETWEEN #1 AND \"now\""),
        ("TIME <|<= $v", "time BETWEEN 0 AND #1"),
    ]),
    ("the field has another name in CAL", &[
        ("CREATED_AT|TIMESTAMP|DATE|CREATED|UPDATED_AT", "time"),
        ("PREDICATE|PROPERTY|ATTRIBUTE|VERB", "relation"),
        ("STATUS|STATE", "goal_state"),
        ("TOOL|FUNCTION", "tool_name"),
        ("VALUE|TARGET", "object"),
        ("@WHERE|AND USER", "#1 user_id"),
        ("TEXT|CONTENT|BODY", "query"),
        ("ID|ADDRESS", "hash"),
        ("TAG", "tags"),
        ("$w . $f", "#2"),
        ("[ $f ]", "#1"),
        ("@WHERE|AND $s =", "#1 #2:bare ="),
    ]),
    ("name the type that has the field", &[
        ("RECALL WHERE @GOAL_STATE|DEADLINE|ASSIGNED_AGENT", "RECALL goals WHERE #1"),
        ("RECALL WHERE @TOOL_NAME|ACTION_PHASE|IS_ERROR", "RECALL actions WHERE #1"),
        ("RECALL WHERE @SESSION_ID|ROLE|MODEL_ID", "RECALL events WHERE #1"),
        ("RECALL $p WHERE @GOAL_STATE|DEADLINE|ASSIGNED_AGENT", "RECALL goals WHERE #2"),
        ("RECALL $p WHERE @TOOL_NAME|ACTION_PHASE|IS_ERROR", "RECALL actions WHERE #2"),
        ("RECALL $p WHERE @SESSION_ID|ROLE|MODEL_ID", "RECALL events WHERE #2"),
    ]),
    ("a parameter is $ and a name", &[
        ("{ { $w } }", "$#1"),
        ("DOLLAR { $w }", "$#1"),
        ("= { $w }", "= $#1"),
        ("= : $w", "= $#1"),
        ("= AT_SIGN $w", "= $#1"),
    ]),
    ("write the value in the form the field takes", &[
        ("GOAL_STATE = \"open\"|\"pending\"|\"in_progress\"|\"todo\"", "goal_state = \"active\""),
        ("GOAL_STATE = \"done\"|\"complete\"|\"finished\"|\"closed\"", "goal_state = \"satisfied\""),
        ("@CONTRADICTED|IS_ERROR = $s", "#1 = #2:bare"),
        ("WHERE @CONTRADICTED|IS_ERROR", "WHERE #1 = true"),
        ("HASH = $x", "hash = #1:address"),
        ("TYPE = $s", "type = #1:singular"),
        ("$f @=|!= $u", "#1 #2 #3:quoted"),
    ]),
];

#[rustfmt::skip]
const STAGE_RULES: &[RuleGroup] = &[
    ("it is ORDER BY field, then ASC or DESC; and one field", &[
        ("ORDERBY", "ORDER BY"),
        ("ORDER BY @ASC|DESC $f", "ORDER BY #2 #1"),
        ("ORDER BY $f @ASC|DESC , $f ASC|DESC", "ORDER BY #1 #2"),
        ("ORDER BY $f @ASC|DESC , $f", "ORDER BY #1 #2"),
        ("ORDER BY $f , $f ASC|DESC", "ORDER BY #1"),
        ("ORDER BY $f , $f", "ORDER BY #1"),
        ("ORDER $f", "ORDER BY #1"),
        ("SORT|SORTED BY", "ORDER BY"),
        ("SORT|SORTED $f", "ORDER BY #1"),
        ("DESCENDING", "DESC"),
        ("ASCENDING", "ASC"),
    ]),
    ("it is GROUP BY field, which counts each group", &[
        ("GROUPBY", "GROUP BY"),
        ("GROUP BY $f COUNT", "GROUP BY #1"),
        ("GROUP $f", "GROUP BY #1"),
    ]),
    ("COUNT stands alone", &[
        ("COUNT ( * )", "COUNT"),
        ("COUNT ( )", "COUNT"),
    ]),
    ("a stage stands behind one |", &[
        ("PIPE PIPE", "|"),
        ("> @LIMIT|SELECT|ORDER|COUNT|OFFSET|GROUP|FIRST", "| #1"),
    ]),
    ("SELECT names fields apart by commas; without it all are shown", &[
        ("PIPE SELECT *", ""),
        ("SELECT *", ""),
        ("SELECT ( $l )", "SELECT #1"),
        ("SELECT $l ,", "SELECT #1"),
        ("SELECT $f $f", "SELECT #1, #2"),
        ("PROJECT $l", "PROJECT content(#1)"),
        ("RETURN|RETURNING|FIELDS $f", "SELECT #1"),
    ]),
    ("the format stands behind AS in a RECALL and behind FORMAT in an ASSEMBLE, without quotes", &[
        ("@AS|FORMAT MD", "#1 markdown"),
        ("@AS|FORMAT $s", "#1 #2:bare"),
        ("AS FORMAT $w", "AS #1"),
        ("^ RECALL $* FORMAT|TO|OUTPUT $w", "RECALL #1 AS #2"),
        ("AS @SML|MARKDOWN|JSON|YAML|TEXT|TRIPLES|TOON", "FORMAT #1"),
    ]),
    ("structured, readable, compact and data are presets of FORMAT in an ASSEMBLE; behind AS stands a format", &[
        ("AS STRUCTURED", "AS sml"),
        ("AS READABLE", "AS markdown"),
        ("AS COMPACT", "AS text"),
        ("AS DATA", "AS json"),
    ]),
    ("the best of each value are those WITH dedup(field)", &[
        ("PIPE DEDUP|DEDUPLICATE BY|ON $f", "WITH dedup(#1)"),
        ("PIPE DEDUP|DEDUPLICATE ( $f )", "WITH dedup(#1)"),
        ("WITH DEDUP|DEDUPLICATE BY|ON $f", "WITH dedup(#1)"),
        ("DEDUP|DEDUPLICATE BY|ON $f", "WITH dedup(#1)"),
        ("DISTINCT BY|ON $f", "WITH dedup(#1)"),
        ("DEDUP|DEDUPLICATE ( $f )", "WITH dedup(#1)"),
    ]),
    ("options stand behind one WITH, apart by commas, what they take in parentheses", &[
        ("WITH EXPLAIN", "WITH explanation"),
        ("WITH ( $l )", "WITH #1"),
        ("WITH $w AND|WITH $w", "WITH #1, #2"),
        ("WITH $w AND WITH $w", "WITH #1, #2"),
        ("WITH $w =|: TRUE", "WITH #1"),
        ("WITH $w ( )", "WITH #1"),
        ("WITH $w = $w", "WITH #1(#2)"),
        ("WITH $w ( $s )", "WITH #1(#2:bare)"),
        ("INCLUDING $w", "WITH #1"),
    ]),
];

#[rustfmt::skip]
const ASSEMBLE_RULES: &[RuleGroup] = &[
    ("a source is a RECALL in parentheses, with or without a label: facts: (RECALL beliefs)", &[
        ("FROM $p , $p END", "FROM (RECALL #1), (RECALL #2)"),
        ("FROM $p $* @BUDGET|PRIORITY|FORMAT|STREAM", "FROM (RECALL #1 #2) #3"),
        ("FROM $p $* END", "FROM (RECALL #1 #2)"),
        ("FROM ( $p", "FROM (RECALL #1"),
        ("FROM RECALL $* @BUDGET|PRIORITY|FORMAT|STREAM", "FROM (RECALL #1) #2"),
        ("FROM RECALL $* END", "FROM (RECALL #1)"),
        ("ASSEMBLE RECALL $* END", "ASSEMBLE FROM (RECALL #1)"),
        ("ASSEMBLE (", "ASSEMBLE FROM ("),
        ("FROM $w : RECALL $* END", "FROM #1: (RECALL #2)"),
        (") $w :", "), #1:"),
        ("FROM $w = (", "FROM #1: ("),
        ("FROM ( $* ) AS $w", "FROM #2: (#1)"),
        ("$s : (", "#1:slug: ("),
    ]),
    ("the name is one word, and what it is for stands behind FOR, before FROM", &[
        ("ASSEMBLE $s", "ASSEMBLE #1:slug"),
        ("ASSEMBLE $w - $w", "ASSEMBLE #1_#2"),
        ("ASSEMBLE FROM $* FOR $s", "ASSEMBLE FOR #2 FROM #1"),
    ]),
    ("a budget is a number and tokens or grains", &[
        ("BUDGET $n END", "BUDGET #1 tokens"),
        ("BUDGET $n @PRIORITY|FORMAT|STREAM|WITH", "BUDGET #1 tokens #2"),
        ("BUDGET $n , $n", "BUDGET #1#2"),
        ("BUDGET @TOKENS|GRAINS $n", "BUDGET #2 #1"),
        ("BUDGET =|: $n", "BUDGET #1"),
        ("BUDGET ( $n $w )", "BUDGET #1 #2"),
        ("BUDGET $n TOKEN|TOK|TOKS|T", "BUDGET #1 tokens"),
        ("BUDGET $n GRAIN", "BUDGET #1 grains"),
        ("BUDGET $x @TOKENS|GRAINS", "BUDGET #1:count #2"),
        ("BUDGET $x", "BUDGET #1:count tokens"),
        ("LIMIT|MAX|WITHIN $n @TOKENS|GRAINS", "BUDGET #1 #2"),
        ("MAX @TOKENS|GRAINS $n", "BUDGET #2 #1"),
        ("MAX_TOKENS =|: $n", "BUDGET #1 tokens"),
        ("MAX_TOKENS $n", "BUDGET #1 tokens"),
    ]),
    ("a budget stands in an ASSEMBLE", &[
        ("^ RECALL $c BUDGET $n TOKENS|TOKEN END", "ASSEMBLE FROM (RECALL #1) BUDGET #2 tokens"),
        ("^ RECALL $c BUDGET $n GRAINS|GRAIN END", "ASSEMBLE FROM (RECALL #1) BUDGET #2 grains"),
    ]),
    ("PRIORITY sets labels apart by >, the first one first", &[
        ("PRIORITY ( $w > $w )", "PRIORITY #1 > #2"),
        ("PRIORITY $w < $w", "PRIORITY #2 > #1"),
        ("PRIORITY $w , $w", "PRIORITY #1 > #2"),
        ("PRIORITY $w $w", "PRIORITY #1 > #2"),
        ("> $w , $w", "> #1 > #2"),
        ("> $w $w", "> #1 > #2"),
        ("@PRIORITY|> $s", "#1 #2:slug"),
    ]),
    ("STREAM stands alone, or takes what is wanted in braces", &[
        ("STREAM TRUE|ON|ALL", "STREAM"),
        ("STREAM ( $* )", "STREAM { #1 }"),
    ]),
];

#[rustfmt::skip]
const OTHER_RULES: &[RuleGroup] = &[
    ("an address stands as sha256: and its digits, without quotes", &[
        ("@EXISTS|HISTORY|SUPERSEDE|REVERT|DIFF ( $h )", "#1 #2"),
        ("@EXISTS|HISTORY|SUPERSEDE|REVERT|DIFF $x", "#1 #2:address"),
        ("HISTORY OF|FOR $h", "HISTORY #1"),
        ("$h . . .", "#1"),
        ("$h ...", "#1"),
        ("$h . .", "#1"),
    ]),
    ("EXISTS takes an address; conditions are counted by RECALL ... | COUNT", &[
        ("EXISTS $p $* END", "RECALL #1 #2 | COUNT"),
    ]),
    ("HISTORY takes an address, or WHERE subject = ... AND relation = ... alone", &[
        ("HISTORY $p WHERE", "HISTORY WHERE"),
        ("HISTORY $f =", "HISTORY WHERE #1 ="),
        ("HISTORY WHERE $f = $v END", "RECALL WHERE #1 = #2 WITH superseded"),
        ("HISTORY $* LIMIT $n", "HISTORY #1"),
    ]),
    ("a BATCH is { label: statement, label: statement }", &[
        ("BATCH [ $* ] END", "BATCH { #1 }"),
        ("BATCH ( $* ) END", "BATCH { #1 }"),
        ("BATCH { RECALL $* , RECALL $* } END", "BATCH { q1: RECALL #1, q2: RECALL #2 }"),
        ("BATCH { RECALL $* } END", "BATCH { q1: RECALL #1 }"),
        ("; $w :", ", #1:"),
        ("$w : ( $k $* )", "#1: #2 #3"),
        (", }", "}"),
        ("@{|, $w = $k", "#1 #2: #3"),
        ("@{|, $s :", "#1 #2:slug:"),
        ("$w : $k", ", #1: #2"),
        ("BATCH { $* END", "BATCH { #1 }"),
    ]),
    ("a COALESCE is (RECALL ..., RECALL ...)", &[
        ("COALESCE { $* } END", "COALESCE (#1)"),
        ("COALESCE ( ( $* ) , ( $* ) )", "COALESCE (#1, #2)"),
        ("COALESCE ( RECALL $* ; RECALL $* )", "COALESCE (RECALL #1, RECALL #2)"),
        ("COALESCE RECALL $* END", "COALESCE (RECALL #1)"),
        ("COALESCE ( RECALL $* ) END", "RECALL #1"),
    ]),
    ("a LET is LET $name = RECALL ...; and the statement behind it", &[
        ("LET $w =", "LET $#1 ="),
        ("LET $P : =", "LET #1 ="),
        ("LET $P = RECALL $* @ASSEMBLE|RECALL|BATCH", "LET #1 = RECALL #2; #3"),
        ("LET $P = ( RECALL $* )", "LET #1 = RECALL #2"),
        ("LET $P = $v ; $* #1 END", "#3 #2"),
        ("LET $P = $v ; $* #1 $* END", "#3 #2 #4"),
    ]),
    ("each field has a SET of its own: SET subject = \"...\" SET object = \"...\"", &[
        ("@ADD $w $w =", "#1 #2 SET #3 ="),
        ("@SUPERSEDE $h WITH $w", "#1 #2 SET #3"),
        ("@SUPERSEDE $h $w =", "#1 #2 SET #3 ="),
        (", @SET|REASON", "#1"),
        (",|AND $w =", "SET #1 ="),
        ("ADD $w ( $* ) REASON", "ADD #1 SET #2 REASON"),
        ("SET $w $v", "SET #1 = #2"),
        ("SET $w :", "SET #1 ="),
        ("SET PREDICATE|VERB =", "SET relation ="),
        ("SET $w = $n", "SET #1 = #2:quoted"),
        ("SET TAGS = $L", "SET tags = [#1]"),
    ]),
    ("the reason stands behind REASON", &[("BECAUSE|WHY|FOR $s", "REASON #1")]),
    ("a section of a template is ELEMENT { text }", &[
        ("TEMPLATE $w { ELEMENT : $* } END", "TEMPLATE #1 ELEMENT { #2 }"),
        ("TEMPLATE $w AS|ELEMENT $s", "TEMPLATE #1 ELEMENT { #2:bare }"),
    ]),
];
