#!/usr/bin/env bash
# Takes each rule of the policy decision out of a copy of the source tree, one at a time, and runs the
# cases of vectors/policy on the decision. A mutation that no case notices is told, and fails the run.
#
#   engine/tests/rules/policy/mutate.sh [PATTERN]     only mutations whose name matches

set -euo pipefail
root=$(cd "$(dirname "$0")/../../../.." && pwd)
pattern=${1:-.}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -C "$root" --exclude=./target --exclude=./.git -cf - . | tar -C "$copy" -xf -
export CARGO_TARGET_DIR="${MUTATE_TARGET_DIR:-$copy/target}"

cases() { (cd "$copy" && cargo test --quiet -p grainstore --lib policy::vector_tests 2>&1); }

# name | file in engine/src/rules/policy | text to be found once | what takes its place
table=$(cat <<'TABLE'
a hold is ignored|decide.rs|if protector.held && (is_target \|\| terms.holds)|if false
a held ancestor is ignored|decide.rs|(is_target \|\| terms.holds)|is_target
a placed hold reaches what derives|decide.rs|(is_target \|\| terms.holds)|true
a lifted hold goes on|decide.rs|if terms.mode == PolicyMode::Hold {|if false {
every transition is allowed|decide.rs|goal.is_some_and(\|goal\| goal.allows)|goal.is_some()
no transition is allowed|decide.rs|goal.is_some_and(\|goal\| goal.allows)|false
an open goal has transitions|decide.rs|&& terms.mode != PolicyMode::Open {|{
evidence is not asked for|decide.rs|&& goal.evidence_required > 0|&& false
evidence is one short|decide.rs|attempt.evidence >= goal.evidence_required|attempt.evidence + 1 >= goal.evidence_required
evidence is one too much|decide.rs|attempt.evidence >= goal.evidence_required|attempt.evidence > goal.evidence_required
a signed change needs evidence|decide.rs|&& !is_settled|&& (!is_settled \|\| true)
a lock ends a second late|decide.rs|< i128::from(until)|<= i128::from(until)
a lock ends in milliseconds|decide.rs|attempt.now.get().div_euclid(1000)|attempt.now.get()
a timed lock never shuts|decide.rs|rules.push(PolicyRule::TimedLock);|rules.push(PolicyRule::Unlocked);
a lock that is over is open|decide.rs|rules.push(mode_rule(fallback.mode(), attempt, protector));|rules.push(PolicyRule::Open);
a blank justification is one|decide.rs|if !why.trim().is_empty() => PolicyRule::SoftLocked|if true => PolicyRule::SoftLocked
no justification is one|decide.rs|_ => PolicyRule::NotJustified,|_ => PolicyRule::SoftLocked,
review is forgotten|decide.rs|decision.needs_review \|= rules.contains(&PolicyRule::SoftLocked);|
locked is open|decide.rs|PolicyMode::Locked => locked_rule(attempt, terms, author),|PolicyMode::Locked => PolicyRule::Open,
a lock takes signatures unasked|decide.rs|if !attempt.locked_accepts_signature \|\| |if
a lock takes any signature|decide.rs|\|\| !is_authorized(terms, signer) {|{
a lock takes its author's signature|decide.rs|true => PolicyRule::OwnKey,|true => PolicyRule::LockedSigned,
a quorum marks|decide.rs|if attempt.act != PolicyAction::Supersede {|if false {
a quorum needs no threshold|decide.rs|else { return PolicyRule::NoThreshold };|else { return PolicyRule::Quorum };
a quorum counts twice|decide.rs|&& !counted {|{
a quorum counts strangers|decide.rs|if is_authorized(terms, Some(signer)) && |if
a quorum counts the author|decide.rs|signers.retain(\|signer\| !is_author(author, Some(signer)));|
a quorum is one short|decide.rs|if count(&signers) >= threshold {|if count(&signers) + 1 >= threshold {
a quorum is one too many|decide.rs|if count(&signers) >= threshold {|if count(&signers) > threshold {
anyone is a delegate|decide.rs|false => PolicyRule::NotDelegated,|false => PolicyRule::Delegated,
nobody is a delegate|decide.rs|true => PolicyRule::Delegated,|true => PolicyRule::NotDelegated,
an unknown mode is open|decide.rs|PolicyMode::Unknown => PolicyRule::UnknownMode,|PolicyMode::Unknown => PolicyRule::Open,
a malformed policy is open|decide.rs|PolicyMode::Malformed \| PolicyMode::Timed(..) => PolicyRule::Malformed,|PolicyMode::Malformed \| PolicyMode::Timed(..) => PolicyRule::Open,
a fallback to hold is open|decide.rs|PolicyMode::Hold => PolicyRule::Hold,|PolicyMode::Hold => PolicyRule::Open,
an author vouches for itself|decide.rs|true => PolicyRule::OwnVerification,|true => PolicyRule::Verification,
anyone lifts a hold|decide.rs|false => PolicyRule::LiftNotOperator,|false => PolicyRule::LiftByOperator,
a hold is the operator's whoever is named|decide.rs|} else if is_theirs {|} else if false {
any signature lifts a hold|decide.rs|false => PolicyRule::LiftNotSigned,|false => PolicyRule::LiftSigned,
a malformed hold is lifted|decide.rs|if terms.mode == PolicyMode::Malformed && terms.holds {|if false {
every ancestor is asked|decide.rs|(!protector.applies() \|\| !involves_related(attempt.act))|!involves_related(attempt.act)
no ancestor is asked|decide.rs|(!protector.applies() \|\| !involves_related(attempt.act))|true
lifting asks the ancestors|decide.rs|(!protector.applies() \|\| !involves_related(attempt.act))|!protector.applies()
too many ancestors are no matter|decide.rs|if facts.is_truncated {|if false {
nothing is released|decide.rs|decision.keeps_older_policies = signed == 0 \|\| unsigned > 0;|decision.keeps_older_policies = true;
everything is released|decide.rs|decision.keeps_older_policies = signed == 0 \|\| unsigned > 0;|decision.keeps_older_policies = false;
what is half signed is released|decide.rs|signed == 0 \|\| unsigned > 0|signed == 0
consent is open|terms.rs|== GrainType::Consent { PolicyMode::SoftLocked }|== GrainType::Consent { PolicyMode::Open }
a missing fallback is open|terms.rs|None \| Some("locked" \| "timed") => Self::Locked|None \| Some("locked" \| "timed") => Self::Open
an unknown fallback is open|terms.rs|Some(_) => Self::Unknown,|Some(_) => Self::Open,
a threshold of zero is one|terms.rs|.filter(\|least\| *least > 0)|
an unknown scope is grain|terms.rs|_ => Self::Unknown,$|_ => Self::Grain,
lineage covers what derives|terms.rs|matches!(self.scope, PolicyScope::Subtree \| PolicyScope::Unknown)|self.scope != PolicyScope::Grain
subtree covers nothing|terms.rs|matches!(self.scope, PolicyScope::Subtree \| PolicyScope::Unknown)|self.scope == PolicyScope::Unknown
lineage covers no chain|terms.rs|matches!(self.scope, PolicyScope::Lineage \| PolicyScope::Unknown)|self.scope == PolicyScope::Unknown
a version protects by its scope|facts.rs|ProtectionLink::TargetOrOlder => true,|ProtectionLink::TargetOrOlder => terms.covers_chain(),
a later version protects whatever its scope|facts.rs|ProtectionLink::NewerVersion => terms.covers_chain(),|ProtectionLink::NewerVersion => true,
a released version protects|facts.rs|ProtectionLink::ReleasedVersion => terms.covers_chain() \|\| terms.covers_derived(),|ProtectionLink::ReleasedVersion => true,
a released lineage protects no more|facts.rs|ProtectionLink::ReleasedVersion => terms.covers_chain() \|\| terms.covers_derived(),|ProtectionLink::ReleasedVersion => false,
taking trust back is verification|facts.rs|_ if trust(to) < trust(from) => Self::Contest,|_ if trust(to) < trust(from) => Self::Verify,
a changed description is a transition|goals.rs|const MUTABLE_FIELDS: [&str; 16] = [|const MUTABLE_FIELDS: [&str; 17] = ["description",
failure takes all the evidence|goals.rs|least.min(1)|least
an unlisted state is allowed|goals.rs|allows: listed && keeps|allows: keeps
a changed goal is allowed|goals.rs|allows: listed && keeps|allows: listed
a fragment makes another DID|mod.rs|strip_fragment(one) == strip_fragment(other)|one == other
TABLE
)

cases > "$copy/log" || { cat "$copy/log"; echo "the cases fail on the source as it is"; exit 1; }
survivors=0 count=0
while IFS= read -r line; do
    # A \| in a row is a | of the source.
    IFS=$'\t' read -r name file from to <<< "$(perl -pe 's/\\\|/\x01/g; s/\|/\t/g; s/\x01/|/g' <<< "$line")"
    [[ $name =~ $pattern ]] || continue
    path="$copy/engine/src/rules/policy/$file"
    cp "$path" "$copy/original"
    FROM=$from TO=${to-} perl -0pi -e '
        my ($from, $to) = ($ENV{FROM}, $ENV{TO});
        my $end = $from =~ s/\$$// ? "(?=\n)" : "";
        # Only what stands before the tests; line breaks and indentation do not count.
        my ($code, $tests) = split /(?=#\[cfg\(test\)\]\nmod tests)/, $_, 2;
        my $find = join "\\s+", map { quotemeta } split / +/, $from, -1;
        my @found = $code =~ /$find$end/g;
        die "found " . scalar(@found) . " times: $from\n" unless @found == 1;
        $code =~ s/$find$end/$to/;
        $_ = $code . ($tests // "");
    ' "$path"
    count=$((count + 1))
    if cases > "$copy/log"; then
        survivors=$((survivors + 1))
        echo "NOT NOTICED  $name"
    elif grep -q "^error" "$copy/log" && ! grep -q "test result: FAILED" "$copy/log"; then
        survivors=$((survivors + 1))
        echo "DOES NOT COMPILE  $name"
        grep -m 3 -A 6 "^error" "$copy/log" || true
    else
        echo "noticed  $name"
    fi
    cp "$copy/original" "$path"
done <<< "$table"
echo "$count mutations, $survivors survived"
[[ $survivors -eq 0 ]]
