# SPDX-License-Identifier: Apache-2.0
# files: disk
# tools/tally adds up results. Above all, it must not report a failure as success.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  tally=$BATS_TEST_DIRNAME/../../tools/tally
  results=$BATS_TEST_TMPDIR/results
  mkdir "$results"
  allowed=$BATS_TEST_TMPDIR/allowed
  echo 'runc: needs a moon | there is no moon' >"$allowed"
}

last() {
  tail -n 1 <<<"$output"
}

@test "passes, failures and skips are counted over streams" {
  printf '1..3\nok 1 - a\nok 2 b\nnot ok 3 - c\n# why\n' >"$results/one.tap"
  printf '1..2\nok 1 - a\nok 2 - needs a moon # SKIP no moon\n' >"$results/runc.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "3 passed, 1 failed, 1 skipped" ]
  [[ $output == *"FAILED   one: c"* ]]
  [[ $output == *"# why"* ]]
  [[ $output == *"skipped  runc: needs a moon: no moon"* ]]
}

@test "an allowed skip is no failure, any other is" {
  printf '1..2\nok 1 - a\nok 2 - needs a moon # skip no moon\n' >"$results/runc.tap"
  run -0 "$tally" "$results" "$allowed"
  [ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
  printf '1..2\nok 1 - a\nok 2 - needs a sun # SKIP no sun\n' >"$results/runc.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
  [[ $output == *"SKIPPED  runc: needs a sun"*"not in test/allowed-skips"* ]]
}

@test "what a stream skips is no failure, though Meson takes it for one" {
  printf '%s\n' '{"name": "json", "stdout": "1..2\nnot ok 1 # SKIP needs a moon\nok 2 - b\n", "result": "FAIL", "returncode": 0}' \
    >"$results/runc.json"
  echo '*: needs a moon | there is no moon' >"$allowed"
  run -0 "$tally" "$results" "$allowed"
  [ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
}

@test "a stream that ends early is a failure" {
  printf '1..3\nok 1 - a\n' >"$results/one.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "1 passed, 1 failed, 0 skipped" ]
  [[ $output == *"ended after 1 of 3"* ]]
}

@test "an empty stream is a failure, and so is no result at all" {
  : >"$results/one.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "0 passed, 1 failed, 0 skipped" ]
  rm "$results/one.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "0 passed, 0 failed, 0 skipped" ]
}

@test "Meson's log: TAP inside is counted, a crash and a time-out are failures" {
  cat >"$results/gcc.json" <<'JSON'
{"name": "fine", "stdout": "1..2\nok 1 - a\nok 2 - b\n", "result": "OK", "returncode": 0}
{"name": "dies", "stdout": "1..2\nok 1 - a\n", "stderr": "AddressSanitizer: heap", "result": "ERROR", "returncode": -11}
{"name": "sanitizer", "stdout": "1..1\nok 1 - a\n", "stderr": "leak", "result": "FAIL", "returncode": 23}
{"name": "hangs", "stdout": "", "result": "TIMEOUT", "returncode": -15}
{"name": "plain", "stdout": "", "result": "OK", "returncode": 0}
{"name": "plain skip", "stdout": "no moon\n", "result": "SKIP", "returncode": 77}
JSON
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "5 passed, 3 failed, 1 skipped" ]
  [[ $output == *"FAILED   gcc dies: ended after 1 of 2"* ]]
  [[ $output == *"AddressSanitizer: heap"* ]]
  [[ $output == *"FAILED   gcc sanitizer: exited with status 23"* ]]
  [[ $output == *"FAILED   gcc: hangs: TIMEOUT"* ]]
  [[ $output == *"SKIPPED  gcc: plain skip: no moon"* ]]
}

@test "a whole stream that skips is a skip with its reason" {
  printf '1..0 # SKIP no driver\n' >"$results/gpu.tap"
  printf '1..1\nok 1 - a\n' >"$results/one.tap"
  run -1 "$tally" "$results" "$allowed"
  [ "$(last)" = "1 passed, 0 failed, 1 skipped" ]
  [[ $output == *"SKIPPED  gpu: all: no driver"* ]]
}

@test "a skip of cmocka has its name, which stands where the reason belongs" {
  printf '1..2\nok 1 - a\nok 2 # SKIP test_moon\n' >"$results/runc.tap"
  run -1 "$tally" "$results" "$allowed"
  [[ $output == *"SKIPPED  runc: test_moon: no reason given"* ]]
}

@test "the list of allowed skips has a reason in each row" {
  echo 'runc: other' >>"$allowed"
  printf '1..1\nok 1 - a\n' >"$results/one.tap"
  run -1 "$tally" "$results" "$allowed"
  [[ $output == *"gives no reason"* ]]
}
