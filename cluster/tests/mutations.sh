#!/bin/sh
# Makes five mistakes in a copy of the sources, one at a time, and holds that the tests notice each within a minute
# (docs/reliability.md). Takes a quarter of an hour; needs PostgreSQL. Run it from the top of the project.
set -eu

work=$(mktemp -d)
top=$PWD
# What the copy was built to with the last mistake must not be taken for what is built here.
trap 'rm -rf "$work"; touch "$top/engine/src/lib.rs" "$top/cluster/src/lib.rs"' EXIT
git archive HEAD | tar -x -C "$work"
# What other packages are built to is used again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
cd "$work"
git init -q . && git add -A && git -c user.name=m -c user.email=m@example.com commit -qm before

failed=0
# mutation NAME FILE SED-EXPRESSION: exactly what the expression changes must be there.
mutation() {
    git checkout -q .
    sed -i "$3" "$2"
    if git diff --quiet; then
        echo "$1: the mistake cannot be made any more: mend this script"
        failed=1
        return
    fi
    touch "$2"
    { cargo test -q -p grainstore --lib --no-run && cargo test -q --workspace --test postgres --no-run; } 2> "$work/build.log" || {
        cat "$work/build.log"
        echo "$1: does not compile"
        failed=1
        return
    }
    # The tests say which of them failed as they end.
    tests='cargo test -p grainstore --lib -- replication journal; cargo test --workspace --test postgres -- --skip kills'
    timeout 60 sh -c "$tests" > "$work/run.log" 2>&1 || true
    noticed=$(sed -n 's/^test \([a-z_:]*\) .*FAILED$/ \1/p' "$work/run.log" | tr -d '\n')
    if [ -z "$noticed" ]; then
        echo "$1: NOT NOTICED within 60 s"
        failed=1
    else
        echo "$1: noticed by$noticed"
    fi
}

schema=cluster/src/postgres/schema.rs
mutation "no epoch in the WHERE" $schema \
    's/WHERE shard = $1 AND epoch = $2 AND commit_no = $3 AND chain = $4/WHERE shard = $1 AND $2 = $2 AND commit_no = $3 AND chain = $4/'
mutation "no commit in the WHERE" $schema \
    's/WHERE shard = $1 AND epoch = $2 AND commit_no = $3 AND chain = $4/WHERE shard = $1 AND epoch = $2 AND $3 = $3 AND $4 = $4/'
mutation "told before it is appended" engine/src/disk/journaling.rs \
    's/state.head = append_surely(&\*self.journal, &self.lead, appended, self.patience)?;/let (journal, lead, after, record) = (Arc::clone(\&self.journal), self.lead.clone(), state.head, record.clone()); std::thread::spawn(move || journal.append(\&lead, \&after, \&record)); state.head = appended.1.head();/'
mutation "applied where the journal did not answer" engine/src/disk/journal/append.rs \
    's/return Err(Error::new(ErrorKind::InDoubt, failed.to_string()));/return Ok(record.head());/'
mutation "heads read from a replica" cluster/src/postgres/connection.rs \
    's/TargetSessionAttrs::ReadWrite/TargetSessionAttrs::Any/'
exit $failed
