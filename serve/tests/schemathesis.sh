#!/bin/sh
# Asks a running server what its OpenAPI document says it answers (schemathesis).
#
#   serve/tests/schemathesis.sh GRAIN [CASES [REPORTS]]
#
# GRAIN is the program; CASES the most test cases of an operation in each phase (50); REPORTS a directory for a report
# in JUnit's and in JSON's form. Needs Linux and Python 3.10 or later: schemathesis is installed from PyPI into a
# directory of its own (SCHEMATHESIS_VENV, else one that is removed). A server on the demo's week is started and ended.
#
# Left out, and why:
# - positive_data_acceptance: a grain, a statement and a token are objects or texts to the document; whether they are
#   right is the store's to say (422), and an address of the right form need not be there (404).
# - use_after_free, ensure_resource_availability, object_level_authorization: nothing here is deleted at the path where
#   it was made, and both tokens are of one store.
# - /v1/changes and /v1/cal/socket: they stream without an end.
# - POST /v1/cal/switch: it would switch CAL off for all others. It is asked last, on its own.
set -eu

grain=$(realpath "$1")
cases=${2:-50}
work=$(mktemp -d)
mkdir -p "${3:-$work/reports}"
reports=$(realpath "${3:-$work/reports}")
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

venv=$(realpath -m "${SCHEMATHESIS_VENV:-$work/venv}")
if [ ! -x "$venv/bin/st" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'schemathesis==4.32.*'
fi

"$grain" --json serve --demo --listen 127.0.0.1:0 --log off >"$work/out" 2>"$work/err" &
server=$!
while [ ! -s "$work/out" ]; do
    kill -0 "$server"
    sleep 0.1
done
address=$(sed -n 's/.*"address": *"\([^"]*\)".*/\1/p' "$work/out")
store=$(sed -n 's/.*The week is in \(.*\), until this ends.*/\1/p' "$work/err")
token=$("$grain" --store "$store" tokens create --tier 1 --as-operator)

# The server refuses an address of the network that fails to sign in too often, so each connection comes from another.
cat >"$work/addresses.py" <<'PYTHON'
import random
import urllib3.util.connection as connection

plain = connection.create_connection


def create_connection(address, *args, **named):
    parts = ".".join(str(random.randint(1, 250)) for _ in range(3))
    named["source_address"] = (f"127.{parts}", 0)
    return plain(address, *args, **named)


connection.create_connection = create_connection
PYTHON

# It keeps what it found in the directory it runs in.
cd "$work"
run() {
    PYTHONPATH=$work SCHEMATHESIS_HOOKS=addresses \
    "$venv/bin/st" run "http://$address/v1/openapi.json" \
        --url "http://$address" \
        --header "Authorization: Bearer $token" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method,allow_header_conformance,ignored_auth \
        --phases examples,coverage,fuzzing,stateful \
        --max-examples "$cases" \
        --continue-on-failure \
        --request-timeout 60 \
        --generation-database none \
        --seed 1 \
        --report junit,json \
        --report-dir "$reports" \
        --no-color \
        "$@"
}

status=0
run --exclude-path /v1/changes --exclude-path /v1/cal/socket --exclude-operation-id post_v1_cal_switch || status=1
reports=$reports/switch
run --include-operation-id post_v1_cal_switch || status=1
kill -0 "$server"
exit $status
