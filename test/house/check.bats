# SPDX-License-Identifier: Apache-2.0
# ./check itself: its options, the order and results of its jobs (test/tools/lanes), and that a
# build must include its tests.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
  results=$BATS_TEST_TMPDIR/results
  mkdir "$results"
}

# lanes STAGE...: the jobs that come on standard input; in $output without times and without the table.
lanes() {
  run test/tools/lanes "$results" "$BATS_TEST_TMPDIR/durations" "$@"
  output=$(sed -E '/^$/,$d; s/^(ok|FAIL|skip) +[0-9]+ s  /\1 /; s/^--- +/--- /' <<<"$output")
}

@test "check: --help names every option; no other is known, and no other stage" {
  local option
  run -0 ./check --help
  for option in --quick --durations --list --help; do
    [[ $output == *"./check $option "* ]] || { echo "$option: $output" && return 1; }
  done
  [[ $output != *"set -"* ]]
  run -64 ./check --nonsense
  [ "$output" = "check: no option '--nonsense'; see ./check --help" ]
  run -64 ./check --durations house
  [ "$output" = "check: --durations is for everything, not for some stages" ]
  run -64 ./check --quick house
  [ "$output" = "check: --quick is a choice of its own; it takes no stage" ]
  run -64 ./check nonsense
  [ "$output" = "check: no stage 'nonsense'; there are: static gcc asan clang arm64 oldest house integration enosys late-mounts gpu bench arm64-system kubelet cluster" ]
}

@test "check: --list names each stage with its seconds, and what is installed; it needs no root" {
  local stage
  run -0 setpriv --reuid=65534 --regid=65534 --clear-groups ./check --list
  for stage in static gcc asan clang arm64 oldest house integration enosys late-mounts gpu bench arm64-system kubelet cluster; do
    grep -qE "^$stage +[0-9]+ s  [a-z]" <<<"$output" || { echo "$stage: $output" && return 1; }
  done
  grep -qE '^together [0-9]+ s on [0-9]+ processors, [0-9]+ s of their time$' <<<"$output"
  grep -qE '^packages: [0-9]+ \(tools/deps --list test\).* MB ' <<<"$output"
  [[ $output == *"deps: "* ]]
}

@test "lanes: a job runs after what it needs, and not at all where that failed; what failed is shown" {
  lanes one two <<JOBS
one|step|first|work||echo first >>$BATS_TEST_TMPDIR/order
one|step|second|suite|third|echo second >>$BATS_TEST_TMPDIR/order
one|step|third|suite|first|sleep 0.2; echo third >>$BATS_TEST_TMPDIR/order
two|step|fails|suite|second|echo why; exit 3
two|step|needs it|suite|fails|echo never >>$BATS_TEST_TMPDIR/order
two|step|cannot be|alone|first|echo no moon; exit 77
three|step|not asked for|suite||echo never >>$BATS_TEST_TMPDIR/order
JOBS
  [ "$output" = "ok one: first
ok one: third
ok one: second
FAIL two: fails
      why
--- two: needs it: not run, as what it needs is not there
skip two: cannot be
      no moon" ]
  [ "$(cat "$BATS_TEST_TMPDIR/order")" = $'first\nthird\nsecond' ]
  [ "$(cat "$results/one-steps.tap")" = $'ok 1 - first\nok 2 - third\nok 3 - second\n1..3' ]
  [ "$(cat "$results/two-steps.tap")" = $'not ok 1 - fails\n# why\nok 2 - cannot be # SKIP no moon\n1..2' ]
}

@test "lanes: a stage brings the jobs that it needs, of whatever stage" {
  lanes two <<JOBS
one|step|first|work||true
one|step|not needed|work||true
two|step|second|suite|first|true
JOBS
  [ "$output" = $'ok one: first\nok two: second' ]
}

@test "lanes: temporary files lie in memory, but for a job that measures time and a suite that asks for a disk" {
  printf '# files: disk\n' >"$BATS_TEST_TMPDIR/disk.bats"
  : >"$BATS_TEST_TMPDIR/memory.bats"
  GRAFT_MEMORY=/memory TMPDIR=/disk lanes s <<JOBS
s|step|work|work||[ "\$TMPDIR" = /memory ]
s|step|suite|suite|work|[ "\$TMPDIR" = /memory ] && : $BATS_TEST_TMPDIR/memory.bats
s|step|disk|suite|suite|[ "\$TMPDIR" = /disk ] && : $BATS_TEST_TMPDIR/disk.bats
s|step|time|quiet|disk|[ "\$TMPDIR" = /disk ]
s|step|alone|alone|time|[ "\$TMPDIR" = /disk ]
JOBS
  [ "$output" = $'ok s: work\nok s: suite\nok s: disk\nok s: time\nok s: alone' ]
  unset GRAFT_MEMORY
  TMPDIR=/disk lanes s <<<'s|step|work|work||[ "$TMPDIR" = /disk ]'
  [ "$output" = 'ok s: work' ]
}

@test "in-memory: a tmpfs for a command, gone after it; none where little memory is free" {
  run -3 test/tools/in-memory sh -c 'echo "${GRAFT_MEMORY:-none}"; findmnt --noheadings --output FSTYPE,SOURCE "${GRAFT_MEMORY:-/proc}"; exit 3'
  # This machine may have little.
  [ "${lines[0]}" = none ] || [[ ${lines[1]} =~ ^tmpfs\ +graft-check$ ]]
  [ ! -e "${lines[0]}" ]
  printf 'MemAvailable:    8388607 kB\n' >"$BATS_TEST_TMPDIR/meminfo"
  run -0 unshare --mount --propagation private sh -c 'mount --bind "$0" /proc/meminfo && GRAFT_MEMORY=/old test/tools/in-memory sh -c "echo \${GRAFT_MEMORY:-none}"' \
    "$BATS_TEST_TMPDIR/meminfo"
  [ "$output" = none ]
}

@test "lanes: a stream of TAP is a file of its own; one that dies is a failure" {
  lanes s <<'JOBS'
s|tap|test/some.tests|suite||printf '1..2\nok 1 - a\nnot ok 2 - b\n# because\n'; exit 1
s|tap|dies|suite||printf '1..2\nok 1 - a\n'; kill -SEGV $$
s|tap|silent|suite||exit 1
JOBS
  grep -qx 'FAIL s: test/some.tests' <<<"$output"
  grep -A 1 -x '      not ok 2 - b' <<<"$output" | grep -qx '      # because'
  [ "$(cat "$results/s-some.tests.tap")" = $'1..2\nok 1 - a\nnot ok 2 - b\n# because' ]
  grep -qE "^not ok 9999 - dies: ended with status -11 after [0-9]+ s$" "$results/s-dies.tap"
  grep -qE "^not ok 9999 - silent: ended with status 1 after [0-9]+ s$" "$results/s-silent.tap"
}

@test "lanes: what the last command of a test said is shown where it fails, and is no result itself" {
  {
    printf '@test "fails" {\n  run printf "ok 7 - x\\nnot ok 8 - y\\n1..9\\nwhy"\n  [ "$output" = "" ]\n}\n'
    printf '@test "passes" { run echo "not ok 1 - z"; }\n'
  } >"$BATS_TEST_TMPDIR/x.bats"
  # As ./check calls it.
  lanes s <<<"s|tap|test/x.bats|suite||$(sed -n 's/^bats="\(.*\)"$/\1/p' check) $BATS_TEST_TMPDIR/x.bats"
  [ "$(grep -E '(ok [0-9]|why)' <<<"$output")" = "      not ok 1 fails
      # ok 7 - x
      # not ok 8 - y
      # why" ] || { echo "$output" && return 1; }
  run -1 tools/tally "$results"
  [[ ${lines[0]} == "FAILED   s-x: fails" && $output == *$'\n         # why\n'* && ${lines[-1]} == "1 passed, 1 failed, 0 skipped" ]] || { echo "$output" && return 1; }
}

@test "lanes: alone is alone, work is two at a time, the second behind the first, and of suites that name the same one is" {
  local name there=$BATS_TEST_TMPDIR/there
  # Each job says who else was there when it came and when it went.
  for name in one two; do printf '# lane: suite engine\n' >"$BATS_TEST_TMPDIR/$name.bats"; done
  mkdir "$BATS_TEST_TMPDIR/there"
  job() { printf 's|step|%s|%s||cd %s/there; touch %s; ls >>../seen; sleep 0.3; ls >>../seen; rm %s; : %s\n' "$1" "$2" "$BATS_TEST_TMPDIR" "$1" "$1" "${3-}"; }
  meet() { awk -v a="$1" -v b="$2" '{ n[$0]++ } END { exit !(n[a] && n[b]) }' "$BATS_TEST_TMPDIR/seen"; }
  lanes s <<<"$(job time alone; job one suite "$BATS_TEST_TMPDIR/one.bats"; job two suite "$BATS_TEST_TMPDIR/two.bats")"
  [ "$(tr '\n' ' ' <"$BATS_TEST_TMPDIR/seen")" = "one one two two time time " ]
  # The third comes when the first is gone, and the second is still there.
  lanes s <<JOBS
s|step|one|work||touch $there/one; until [ -e $there/two ] && [ -e $there/suite ]; do sleep 0.02; done; sleep 0.5; nice >>$there/seen; rm $there/one
s|step|two|work||touch $there/two; until grep -q three $results/s-steps.tap; do sleep 0.02; done; nice >>$there/seen
s|step|three|work||[ ! -e $there/one ] && nice >>$there/seen; touch $there/three
s|step|suite|suite||nice >>$there/suite
JOBS
  [ "$(cat "$there/suite")" = 0 ]
  [ "$output" = $'ok s: suite\nok s: one\nok s: three\nok s: two' ] || { echo "$output" && return 1; }
  [ "$(tr '\n' ' ' <"$there/seen")" = "10 19 19 " ] || { cat "$there/seen" && return 1; }
}

@test "lanes: suites wait for what is quiet, but for what that needs; work does not" {
  local order=$BATS_TEST_TMPDIR/order
  lanes s <<JOBS
s|step|root|suite||sleep 0.2; echo root >>$order
s|step|other|suite||echo other >>$order
s|step|needs what fails|quiet|fails|echo never >>$order
s|step|fails|suite|root|exit 1
s|step|time|quiet|root,build|echo time >>$order; until grep -q work $order; do sleep 0.02; done; sleep 0.2; echo over >>$order
s|step|build|work||true
s|step|work|work||until grep -q time $order; do sleep 0.02; done; echo work >>$order
JOBS
  [ "$(tr '\n' ' ' <"$order")" = "root time work over other " ] || { cat "$order" && return 1; }
}

@test "lanes: the time of each job is written on request, and shown in a table" {
  run -0 test/tools/lanes --write "$results" "$BATS_TEST_TMPDIR/durations" s <<<'s|step|sleeps|suite||sleep 1.2'
  grep -qE '^stage +jobs +seconds +processor +the longest$' <<<"$output"
  grep -qE '^s +1 +[1-9][0-9]* +0 +[1-9][0-9]* s sleeps$' <<<"$output"
  grep -qE '^all +1 +[1-9][0-9]* +0 +on [0-9]+ processors$' <<<"$output"
  [[ $(cat "$BATS_TEST_TMPDIR/durations") =~ ^#\ together\ [1-9][0-9]*\ s\ on\ [0-9]+\ processors,\ 0\ s\ of\ their\ time.[1-9][0-9]*\ 0\ s:\ sleeps$ ]]
  # What is known of another stage stays, for as long as there is such a job.
  printf '%s\n' '90 80 s: sleeps' '7 6 other: slow' '5 4 other: gone' >"$BATS_TEST_TMPDIR/durations"
  run -0 test/tools/lanes --write "$results" "$BATS_TEST_TMPDIR/durations" s <<<$'s|step|sleeps|suite||true\nother|step|slow|suite||false\nother|step|new|suite||false'
  [ "$(sed '1d; s/^. . s: /S P s: /' "$BATS_TEST_TMPDIR/durations")" = $'S P s: sleeps\n7 6 other: slow' ]
}

@test "lanes: there is a limit for everything, which a busy machine may exceed by a quarter" {
  run -0 test/tools/lanes --limit 60 "$results" "$BATS_TEST_TMPDIR/durations" s <<<'s|step|passes|suite||true'
  [[ $(cat "$results/limit.tap") =~ ^1..1.ok\ 1\ -\ all\ stages\ together\ take\ at\ most\ 60\ s,\ and\ a\ quarter\ more\ on\ a\ busy\ machine.#\ [0-9]+\ s$ ]]
  run -0 test/tools/lanes --limit 1 "$results" "$BATS_TEST_TMPDIR/durations" s <<<'s|step|sleeps|suite||sleep 2'
  [[ $(cat "$results/limit.tap") =~ ^1..1.not\ ok\ 1\ -\ all\ stages\ together\ take\ at\ most\ 1\ s,\ and\ a\ quarter\ more\ on\ a\ busy\ machine.#\ [0-9]+\ s$ ]]
  # A slow machine is known by its builds.
  printf '1 0.1 s: builds\n' >"$BATS_TEST_TMPDIR/durations"
  run -0 test/tools/lanes --limit 1 "$results" "$BATS_TEST_TMPDIR/durations" s <<<'s|step|builds|work||while [ $SECONDS -lt 2 ]; do :; done'
  [[ $(cat "$results/limit.tap") =~ ^1..1.ok\ 1\ .*\ s\;\ builds\ took\ [1-9][0-9.]+\ times\ as\ much\ processor\ time\ as\ expected$ ]]
}

@test "lanes: --again runs what failed a second time, alone, and says so; no more than asked for, and nothing that failed alone" {
  local name
  for name in once always other; do
    printf 'n=$(cat %s/%s 2>/dev/null || echo 0); echo $((n + 1)) >%s/%s; echo 1..1\n' "$BATS_TEST_TMPDIR" "n-$name" "$BATS_TEST_TMPDIR" "n-$name" >"$BATS_TEST_TMPDIR/$name"
  done
  echo '[ $n -gt 0 ] && ! [ -e there ] && echo ok 1 - a || { echo not ok 1 - a; exit 1; }' >>"$BATS_TEST_TMPDIR/once"
  echo 'echo not ok 1 - a; exit 1' | tee -a "$BATS_TEST_TMPDIR/always" >>"$BATS_TEST_TMPDIR/other"
  run -0 test/tools/lanes --again 1 --limit 60 "$results" "$BATS_TEST_TMPDIR/durations" s <<JOBS
s|tap|once|suite||cd $BATS_TEST_TMPDIR && . ./once
s|step|beside|suite||cd $BATS_TEST_TMPDIR && touch there && sleep 0.5 && rm there
s|tap|always|suite|beside|cd $BATS_TEST_TMPDIR && . ./always
s|tap|other|alone||cd $BATS_TEST_TMPDIR && . ./other
JOBS
  [ "$(cat "$BATS_TEST_TMPDIR"/n-*)" = $'1\n2\n1' ]
  [[ $output == *$'\n           s: once: to be run again, alone\n'* ]]
  [ "$(cat "$results/s-once.tap")" = $'1..1\nok 1 - a' ]
  [ "$(cat "$results/s-once.tap.first")" = $'1..1\nnot ok 1 - a' ]
  [ "$(cat "$results/unsteady")" = "s: once" ]
  run -1 tools/tally "$results"
  [[ $output == *"UNSTEADY s: once: failed beside other tests, and passed alone; mend the test, or what it found"* ]]
  [ "${lines[-1]}" = "3 passed, 2 failed, 0 skipped" ]
}

@test "build: a preset has tests or has none; if it has them and libcmocka is missing, it cannot be configured" {
  local line
  run -0 tools/build --list
  while read -r line; do
    [[ $line == *-Dtests=enabled* || $line == *-Dtests=disabled* ]] || { echo "$line" && return 1; }
  done < <(grep -e ' -D' <<<"$output")
  copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy" "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/packages"
  git ls-files --cached --others --exclude-standard -z | grep -zv '\.bats$' | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
  # Meson asks cmake as well.
  ln -s /bin/false "$BATS_TEST_TMPDIR/bin/cmake"
  cp "$(pkg-config --variable=pcfiledir yaml-0.1)/yaml-0.1.pc" "$BATS_TEST_TMPDIR/packages"
  run -1 env PATH="$BATS_TEST_TMPDIR/bin:$PATH" PKG_CONFIG_LIBDIR="$BATS_TEST_TMPDIR/packages" "$copy/tools/build" debug
  [[ $output == *"ERROR: "*"ependency \"cmocka\" not found"* ]] || { echo "$output" && return 1; }
  [ ! -e "$copy/build-debug/build.ninja" ]
}

@test "trace: of a test that fails, of its setup and of setup_file the lines are shown, through all functions" {
  local at=$BATS_TEST_TMPDIR/trace
  mkdir -p "$at/tests" "$at/tools"
  cp test/tools/trace.bash "$at/tools"
  cat >"$at/tests/helper.bash" <<'HELPER'
load ../tools/trace.bash
deep() {
  true
  [[ $1 == 2 ]]
}
helper() {
  true
  deep "$1"
}
HELPER
  # bats reads "@test" in this file, too.
  sed "s/^example/@test/" >"$at/tests/one.bats" <<'BATS'
load helper.bash
example "deep" {
  true
  helper 1
}
example "piped" {
  true
  echo a | grep -q b
}
example "several" {
  [ 1 = 1 ] &&
    [ 1 = 2 ]
}
example "passes" {
  run helper 1
  [ "$status" -eq 1 ]
}
BATS
  printf 'load helper.bash\nsetup_file() {\n  helper 1\n}\n@test "one" { true; }\n' >"$at/tests/two.bats"
  printf 'load helper.bash\nsetup() {\n  helper 1\n}\n@test "one" { true; }\n' >"$at/tests/three.bats"
  # Nothing is noted before a command, except by --trace.
  sed "s/^example/@test/" >"$at/tests/four.bats" <<'BATS'
load ../tools/trace.bash
setup_file() { [ "$(trap -p DEBUG)" = "" ]; }
example "one" { [ "$(trap -p DEBUG)" = "" ]; }
BATS
  cd "$at/tests"
  run -1 env -i PATH=/usr/local/bin:/usr/bin:/bin bats --tap one.bats two.bats three.bats four.bats
  diff - <(echo "$output") <<'TAP'
1..7
not ok 1 deep
# (from function `deep' in file helper.bash, line 4,
#  from function `helper' in file helper.bash, line 8,
#  in test file one.bats, line 4)
#   `helper 1' failed
not ok 2 piped
# (in test file one.bats, line 8)
#   `echo a | grep -q b' failed
not ok 3 several
# (in test file one.bats, line 12)
#   `[ 1 = 2 ]' failed
ok 4 passes
not ok 5 setup_file failed
# (from function `deep' in file helper.bash, line 4,
#  from function `helper' in file helper.bash, line 8,
#  from function `setup_file' in test file two.bats, line 3)
#   `helper 1' failed
not ok 6 one
# (from function `deep' in file helper.bash, line 4,
#  from function `helper' in file helper.bash, line 8,
#  from function `setup' in test file three.bats, line 3)
#   `helper 1' failed
ok 7 one
TAP
  run -1 env -i PATH=/usr/local/bin:/usr/bin:/bin bats --tap --trace one.bats
  [[ $output == *'$ [one.bats:'*'$ true'* ]]
}
