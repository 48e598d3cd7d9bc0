# SPDX-License-Identifier: Apache-2.0
# The tools hold what they promise: each is shown a fault and has to find it.

bats_require_minimum_version 1.5.0

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

# A small tree of its own, with the tools in it.
make_tree() {
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/src/plan" "$tree/src/host" "$tree/src/base" "$tree/src/apply" "$tree/sim" "$tree/tools"
  cp tools/lint tools/layers "$tree/tools/"
  cd "$tree"
  git init -q .
}

source_file() {
  printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* x: a file. */\n%b\n' "$2" >"$1"
}

@test "deps: with everything installed it does nothing, and needs no root" {
  run -0 setpriv --reuid=65534 --regid=65534 --clear-groups tools/deps test
  [ "$output" = "deps: nothing to install for test" ]
}

@test "deps: what is missing is named, and nobody but root installs it" {
  # Not below the test's own folder: nobody may not look into that.
  local bin
  bin=$(mktemp -d)
  printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
  chmod a+rx "$bin" "$bin/dpkg-query"
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups env "PATH=$bin:$PATH" tools/deps run
  rm -r "$bin"
  [[ $output == *"not installed:"*runc*"run this as root"* ]]
}

@test "deps: every row has a mode and a reason, and no package twice" {
  run -0 tools/deps --list test
  while IFS='|' read -r package mode reason; do
    [[ $mode =~ ^(run|build|test)$ ]]
    [ -n "$package" ] && [ ${#reason} -gt 5 ]
  done <<<"$output"
  [ -z "$(cut -d '|' -f 1 <<<"$output" | sort | uniq -d)" ]
}

@test "deps: an unknown mode is refused" {
  run -1 tools/deps everything
  [[ $output == *"unknown mode 'everything'"* ]]
}

@test "layers: an include of a later folder is found, in every folder" {
  make_tree
  run -0 tools/layers
  source_file src/base/x.c '#include "plan/plan.h"'
  run -1 tools/layers
  [[ $output == *"src/base/x.c:3:"* ]]
  source_file src/base/x.c '#include "../host/discover.h"'
  run -1 tools/layers
  rm src/base/x.c
  source_file src/apply/x.c '#include "host/inventory.h"'
  run -1 tools/layers
  [[ $output == *"a sink sees the plan"* ]]
  rm src/apply/x.c
  source_file sim/x.c '#include "host/inventory.h"'
  run -1 tools/layers
  rm sim/x.c
  mkdir src/misc
  run -1 tools/layers
  [[ $output == *"src/misc has no place"* ]]
}

@test "lint: each rule finds its fault, and says which" {
  make_tree
  run -0 tools/lint
  local fixme
  fixme='FIX''ME'
  while IFS='|' read -r file rule text; do
    rm -f src/*/*.[ch]
    source_file "$file" "$text"
    run -1 tools/lint
    [[ $output == "$file:"*": $rule:"* ]] || {
      echo "'$text' in $file gave: $output"
      false
    }
  done <<TABLE
src/base/x.c|banned|int f(char *a) { return sprintf(a, "x"); }
src/base/x.c|banned|int f(void) { return system("true"); }
src/base/x.c|banned|void f(void) { exit(1); }
src/base/x.c|banned|char *f(void) { return getenv("A"); }
src/base/x.c|banned|char *f(void) { return secure_getenv("A"); }
src/base/x.c|banned|void f(void) { printf("x"); }
src/base/x.c|cloexec|int f(void) { return open("/", O_RDONLY); }
src/base/x.c|cloexec|FILE *f(void) { return fopen("/x", "r"); }
src/base/x.c|cloexec|int f(int *p) { return pipe(p); }
src/plan/x.c|pure|int f(void) { return open("/", O_CLOEXEC); }
src/host/x.c|read-only|int f(void) { return mkdir("/x", 0755); }
src/host/x.c|read-only|int f(void) { return open("/x", O_WRONLY | O_CLOEXEC); }
src/base/x.h|undocumented|#ifndef X\n#define X\n\nint f(void);\n#endif
src/base/x.c|word|/* $fixme: later */
TABLE
}

@test "lint: comments and strings are no code" {
  make_tree
  source_file src/base/x.c '/* never call system() or open(x) */ const char *s = "sprintf(x)"; // exit(1)'
  run -0 tools/lint
}

@test "lint: a file without licence or opening comment is found" {
  make_tree
  echo 'int x;' >src/base/x.c
  run -1 tools/lint
  [[ $output == *": licence:"* ]]
  [[ $output == *": opening:"* ]]
}

@test "check: whitespace, format and spelling faults are found" {
  # In a copy, since the check looks at everything that git knows.
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy"
  git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
  cd "$copy"
  git init -q . && git add -A
  run -0 tools/check
  printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* x: a file. */\nint  x_ ; \n' >src/base/planted.c
  # shellcheck disable=SC2016
  printf '#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n# it recie''ves\nrm $1\n' >tools/planted
  chmod +x tools/planted
  run -1 tools/check
  [[ $output == *"FAIL  whitespace"* ]]
  [[ $output == *"planted.c is in no meson.build"* ]]
  # Where the checker is one whose findings count.
  local name
  for name in format "shell scripts" spelling; do
    [[ $output == *"FAIL  $name"* || $output == *"SKIP  $name: "*[0-9]* ]] || { echo "$name: $output"; false; }
  done
  sed -i 's/no such device/no device/' src/base/error.h
  run -1 tools/check
  [[ $output == *"docs/ERRORS.md is not current"* ]]
}

@test "check: fast enough for a hook (20 s on two processors)" {
  # Processor time, of both: how busy the machine is with other things is not the question.
  local TIMEFORMAT='%U %S' spent
  spent=$({ time tools/check >"$BATS_TEST_TMPDIR/out" 2>&1; } 2>&1 || { cat "$BATS_TEST_TMPDIR/out"; false; })
  awk '{ exit !($1 + $2 < 40) }' <<<"$spent"
}

@test "new-module: its three files compile, pass and satisfy the checks" {
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy"
  git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
  cd "$copy"
  git init -q . && git add -A
  tools/new-module plan/trial "a trial"
  run -0 tools/check
  CC="ccache gcc" meson setup "$BATS_TEST_TMPDIR/build" -Ddeveloper=true >/dev/null ||
    CC=gcc meson setup --wipe "$BATS_TEST_TMPDIR/build" -Ddeveloper=true >/dev/null
  ninja -C "$BATS_TEST_TMPDIR/build" test/unit/test_trial >/dev/null
  run -0 "$BATS_TEST_TMPDIR/build/test/unit/test_trial"
  run -1 tools/new-module plan/trial "again"
  run -1 tools/new-module nowhere/trial "a folder that is not there"
  run -64 tools/new-module Plan "bad name"
}
