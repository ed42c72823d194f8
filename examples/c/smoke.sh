#!/bin/sh
# What a host relies on, through the agent: success, a tool that fails, timeout, cancellation.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
count=0

# check NAME STATUS TEXT: the last run ended with that status and printed that text.
check() {
    if [ "$status" -ne "$2" ] || ! grep -qF -- "$3" "$folder/out"; then
        echo "not ok - $1: status $status, expected $2 and \"$3\" in:"
        cat "$folder/out"
        exit 1
    fi
    count=$((count + 1))
    echo "ok - $1"
}

run() {
    ./agent "$@" >"$folder/out" 2>&1
    status=$?
}

run
check "success" 0 "https://example.org/three 8 words"

cat >"$folder/fails.py" <<'PY'
from hermes_tools import fetch_page
print(fetch_page("https://example.org/missing"))
PY
run "$folder/fails.py"
check "a tool that fails" 0 "{'error': '404: there is no page https://example.org/missing'}"

cat >"$folder/slow.py" <<'PY'
print("begun")
import time
time.sleep(1000)
PY
run "$folder/slow.py" 3
check "timeout" 2 "Script timed out after 3s and was killed."
check "timeout keeps the output" 2 "begun"

cat >"$folder/ready.py" <<PY
open("$folder/ready", "w").close()
import time
time.sleep(1000)
PY
./agent "$folder/ready.py" >"$folder/out" 2>&1 &
agent=$!
while [ ! -e "$folder/ready" ]; do sleep 0.05; done
kill -INT $agent
wait $agent
status=$?
check "cancellation" 3 "[execution interrupted - user sent a new message]"

echo "examples/c: $count passed"
