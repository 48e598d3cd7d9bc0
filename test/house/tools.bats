# SPDX-License-Identifier: Apache-2.0
# files: disk
# The tools work: each is given a fault and must find it.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

# A small tree of its own, with the tools in it.
make_tree() {
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/src/plan" "$tree/src/host" "$tree/src/doctor" "$tree/src/base" "$tree/src/apply" "$tree/sim" "$tree/tools"
  cp tools/lint tools/layers "$tree/tools/"
  cd "$tree"
  git init -q .
}

# make_copy [PATTERN...]: this checkout without its test scripts. Of the files that are there already, the checks see those of the patterns alone, and new ones: ./check
# has them see everything, which takes its time.
make_copy() {
  copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy"
  git ls-files --cached --others --exclude-standard -z | grep -zvE '^test/.*\.bats$' | cat - <(printf 'test/integration/%s.bats\0' docs slurm) | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
  cd "$copy"
  git init -q .
  find . -type f -not -path './.git/*' -printf '/%P\n' >>.git/info/exclude
  [ $# -eq 0 ] || git add --force -- "$@"
}

source_file() {
  printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* x: a file. */\n%b\n' "$2" >"$1"
}

@test "deps: with everything installed it does nothing, and needs no root" {
  run -0 setpriv --reuid=65534 --regid=65534 --clear-groups tools/deps test
  [ "$output" = "deps: nothing to install for test" ]
}

@test "deps: it lists what is missing, and only root installs it" {
  # Not below the test's own folder, which the user nobody cannot read.
  local bin
  bin=$(mktemp -d)
  printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
  chmod a+rx "$bin" "$bin/dpkg-query"
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups env "PATH=$bin:$PATH" tools/deps run
  rm -r "$bin"
  [[ $output == *"not installed:"*runc*"run this as root"* ]]
}

@test "deps: --size says what would be installed and how much that is, and installs nothing" {
  run -0 tools/deps --size test
  [ "$output" = "deps: nothing to install for test" ]
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
  # As it answers where the answer to its question is no.
  printf '#!/bin/sh\ncase " $* " in\n*" --assume-no "*) printf "Need to get 3 MB of archives.\\nAfter this operation, 9 MB of additional disk space will be used.\\nAbort.\\n" ;;\nesac\nexit 1\n' >"$bin/apt-get"
  chmod +x "$bin/dpkg-query" "$bin/apt-get"
  run -0 env "PATH=$bin:$PATH" tools/deps --size run
  [ "$output" = "deps: to install: libyaml-0-2 runc busybox-static libsystemd0
deps: Need to get 3 MB of archives.
deps: After this operation, 9 MB of additional disk space will be used." ]
}

@test "deps: every row has a mode and a reason, and no package twice" {
  run -0 tools/deps --list test
  while IFS='|' read -r package mode reason; do
    [[ $mode =~ ^(run|build|package|test|arm64)$ ]]
    [ -n "$package" ] && [ ${#reason} -gt 5 ]
  done <<<"$output"
  [ -z "$(cut -d '|' -f 1 <<<"$output" | sort | uniq -d)" ]
}

@test "deps: a package that is there for another architecture alone is missing" {
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  # gcc is there, scdoc and musl-dev are for arm64 alone, and meson is for all; of crun only the configuration is left.
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nnative=$(dpkg --print-architecture)\necho "gcc $native installed\nscdoc arm64 installed\nmusl-dev arm64 installed\nmeson all installed\ncrun $native config-files"\n' \
    >"$bin/dpkg-query"
  # Whether the others are installed depends on the machine.
  chmod +x "$bin/dpkg-query"
  PATH=$bin:$PATH run -0 tools/deps --missing test
  grep -qx crun <<<"$output"
  PATH=$bin:$PATH run -0 tools/deps --missing build arm64
  local missing=$output
  [ "$(dpkg --print-architecture)" = arm64 ] || { grep -qx scdoc <<<"$missing" && grep -qx musl-dev <<<"$missing"; }
  run -1 grep -xE 'gcc|meson|musl-dev:arm64' <<<"$missing"
}

@test "deps: arm64's packages are those of Debian on another machine than arm64" {
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
  printf '#!/bin/sh\ncase "$1" in\n--print-architecture) echo "$MACHINE" ;;\nesac\n' >"$bin/dpkg"
  chmod +x "$bin/dpkg-query" "$bin/dpkg"
  PATH=$bin:$PATH MACHINE=arm64 run -0 tools/deps --missing arm64
  [ -z "$output" ]
  PATH=$bin:$PATH MACHINE=arm64 run -0 tools/deps arm64
  [ "$output" = "deps: nothing to install for arm64" ]
  # shellcheck source=/dev/null
  [ "$(. /etc/os-release && echo "$ID")" = debian ] || return 0
  PATH=$bin:$PATH MACHINE=amd64 run -0 tools/deps --missing arm64
  [ "$output" = "gcc-aarch64-linux-gnu
libc6-dev-arm64-cross
libyaml-dev:arm64
libnghttp2-dev:arm64
libprotobuf-c-dev:arm64
libcurl4-openssl-dev:arm64
musl-dev:arm64
libcmocka-dev:arm64
qemu-user" ]
  # What apt-get cannot know before the architecture was added is named, and not counted.
  PATH=$bin:$PATH MACHINE=amd64 run -0 tools/deps --size arm64
  [[ $output == *"deps: not counted, as apt-get does not know arm64 yet: libyaml-dev:arm64 libnghttp2-dev:arm64 libprotobuf-c-dev:arm64 libcurl4-openssl-dev:arm64 musl-dev:arm64 libcmocka-dev:arm64"* ]]
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
  mkdir src/start src/image
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
src/base/x.c|banned|void f(void) { (void)fputs("x", stderr); }
src/base/x.c|cloexec|int f(void) { return open("/", O_RDONLY); }
src/base/x.c|cloexec|FILE *f(void) { return fopen("/x", "r"); }
src/base/x.c|cloexec|int f(int *p) { return pipe(p); }
src/plan/x.c|pure|int f(void) { return open("/", O_CLOEXEC); }
src/doctor/judge_x.c|pure|int f(void) { return open("/", O_CLOEXEC); }
src/doctor/look_x.c|read-only|int f(void) { return mkdir("/x", 0755); }
src/host/x.c|read-only|int f(void) { return mkdir("/x", 0755); }
src/host/x.c|read-only|int f(void) { return open("/x", O_WRONLY | O_CLOEXEC); }
src/start/x.c|roots|int f(struct graft_root *r) { return graft_root_take(r, 1); }
src/start/x.c|roots|int f(void) { return graft_openat2(1, "x", O_CLOEXEC, 0, 0); }
src/image/x.c|roots|int f(void) { return openat(1, "x", O_RDONLY | O_CLOEXEC); }
src/start/x.c|roots|#include "base/image_root.h"\nint f(void) { return open("/x", O_RDONLY | O_CLOEXEC); }
src/start/x.c|roots|#include "apply/namespace/target.h"\nint f(struct graft_root *r) { return graft_root_open(r, "/x", NULL); }
src/start/x.c|roots|#include "image/inspect.h"\nint f(struct graft_root *r) { return graft_root_read(r, "/x"); }
src/base/x.h|undocumented|#ifndef X\n#define X\n\nint f(void);\n#endif
src/base/x.c|columns|/* $(printf '%095d' 0) */
src/base/x.c|columns|/*\n * $(printf '%098d' 0)\n */
src/base/x.c|turn|/* The caller is told. */
src/base/x.c|turn|/* What the user wishes. */
src/base/x.c|turn|/* It shall be closed. */
src/base/x.c|turn|/* Takes the place of the old file. */
src/base/x.c|turn|/* It is the very file. */
src/base/x.c|turn|/* An image of ill will. */
src/base/x.c|turn|/* The old one stays for ever. */
src/base/x.c|turn|/* Names with commas between. */
src/base/x.c|turn|/* Returns -1 without memory. */
src/base/x.c|turn|/* It is not used any more. */
src/base/x.c|turn|/* Returns 0 to go on. */
src/base/x.c|turn|/* It could not be read, as the log says. */
src/base/x.c|turn|const char *f(void) { return "the caller is told"; }
src/base/x.c|turn|const char *f(void) { return "it is made anew"; }
src/base/x.c|turn|const char *f(void) { return "it takes the " "place of the old file"; }
src/host/x.c|turn|/* It belongs here. */
src/host/x.c|turn|const char *f(void) { return "this is no file"; }
src/base/x.c|word|/* $fixme: later */
TABLE
}

@test "differences: a row without a test, a line without a row, a test that is gone" {
  local page=docs/coming-from-nvidia.md
  mkdir -p "$BATS_TEST_TMPDIR"/tree/{docs,test,tools}
  cp tools/differences "$BATS_TEST_TMPDIR/tree/tools"
  cd "$BATS_TEST_TMPDIR/tree"
  printf '%s\n' '## All differences' '' '| where | what | NVIDIA | Graft |' '|---|---|---|---|' '| **`a`** | one | x | y |' '| | `two \| three` | | |' '| **b** | one | x | y |' >$page
  printf '@test "it works, always" {\n}\n' >test/x.bats
  printf 'static void test_it(void **state)\n{\n}\n' >test/x.c
  list() { printf '%s\n' '# rows' '' '[a]' 'one => test/x.bats: it works' '`two \| three` => test/x.c: test_it' '' '[b]' "$@" >test/differences; }
  finds() {
    run -1 tools/differences
    [ "$output" = "$1" ] || { echo "$output" && return 1; }
  }
  list 'one => untested: it is not there'
  run -0 tools/differences
  list
  finds "$page: b: one: test/differences names no test"
  list 'one => test/x.bats: it fails'
  finds "test/differences:8: b: one: test/x.bats has not a test 'it fails'"
  list 'one => test/x.c: test_other'
  finds 'test/differences:8: b: one: test/x.c has not a function test_other()'
  list 'one => $page: x | y' 'one => test/x.bats: it works' 'one => test/x.bats: it works'
  finds "test/differences:8: b: one: no file and test: '\$page: x | y'
test/differences:10: b: one: this line is there already"
  list "one => $page: x | y" 'gone => test/x.bats: it works'
  finds "test/differences:9: b: gone: $page has no such row"
  list "one => $page: of no text"
  finds "test/differences:8: b: one: $page has not 'of no text'"
  list 'one => untested'
  finds "test/differences:8: b: one: no file and test: 'untested'"
  echo >$page
  run -1 tools/differences
  [ "${lines[-1]}" = "$page: there is no table of differences" ]
}

@test "lint: texts for people outside docs/ are read as well: documents, man pages, descriptions of packages" {
  make_tree
  mkdir debian packaging sim/pages
  local file
  for file in README.md sim/pages/x.1.scd packaging/x.spec debian/control; do
    printf 'Description: x\n It takes the place of another.\n' >"$file"
    run -1 tools/lint
    [ "$output" = "$file:2: turn: 'takes the place of': replace, instead of" ] || { echo "$output" && return 1; }
    rm "$file"
  done
  printf '%s\n' 'The caller is told.' 'A file that is none.' 'There is none, and two cannot be told apart.' >README.md
  run -1 tools/lint
  [ "$output" = "README.md:1: turn: 'told': reported, said
README.md:2: turn: 'is none': does not exist, there is none" ] || { echo "$output" && return 1; }
}

@test "lint: no two functions of src, and no two files, share a name" {
  make_tree
  source_file src/base/x.c 'static int parse_size(int a,\n\t\t      int b)\n{\n\treturn a;\n}'
  source_file src/host/y.c 'int parse_size(void)\n{\n\treturn 1;\n}'
  run tools/lint
  [ "$status" -eq 1 ]
  [[ $output == "src/host/y.c:"*": name: parse_size(): src/base/x.c has a function of this name; say whose it is" ]]
  source_file src/host/y.c 'static int parse_sizes(void)\n{\n\treturn parse_size(1);\n}'
  source_file src/host/x.c 'static int main(void)\n{\n\treturn 1;\n}'
  run tools/lint
  [ "$status" -eq 1 ]
  [ "$output" = "src/host/x.c:1: name: src/base/x.c has this name, too" ]
}

@test "lint: the tables of calls in docs are followed" {
  make_tree
  mkdir -p docs
  source_file src/base/x.c 'int last(void)\n{\n\treturn 1;\n}\n\nint first(int a)\n{\n\treturn last(); /* other() */\n}'
  table() { printf '<!-- calls: %s -->\n| function | file | what |\n|---|---|---|\n' "$1"; printf '| `%s` | `src/base/x.c` | x |\n' "${@:2}"; }
  table 1 first last >docs/x.md
  run -0 tools/lint
  table 0 first last >docs/x.md
  run -1 tools/lint
  [ "$output" = "docs/x.md:1: calls: 1 calls, not 0" ]
  table 2 last first >docs/x.md
  run -1 tools/lint
  [ "$output" = "docs/x.md:4: calls: last() does not call first()" ]
  table 2 first other >docs/x.md
  run -1 tools/lint
  [ "$output" = "docs/x.md:4: calls: first() does not call other()
docs/x.md:5: calls: other() is not in src/base/x.c" ]
}

@test "lint: comments and strings are no code" {
  make_tree
  source_file src/base/x.c '/* never call system() or open(x) */ const char *s = "sprintf(x)"; // exit(1)'
  run -0 tools/lint
  # Rows of a table and comments behind code may be wider than others.
  source_file src/base/x.c "/*\n *   row  $(printf '%095d' 0)\n * $(printf '%097d' 0)\n */\nint x; /* $(printf '%095d' 0) */"
  run -0 tools/lint
}

# A specification of two documents: sections 1 and 1.2 and a quirk in the first, section 4 in the second.
make_spec() {
  mkdir -p docs/spec test
  printf '# 1. One\n\n## 1.2 Two\n\n| Id | Quirk |\n|---|---|\n| Q3 | odd |\n' >docs/spec/some-stack.md
  printf '# 4. Four\n' >docs/spec/other.md
  printf '# 7. Cited by nobody\n' >docs/spec/README.md
}

@test "lint: what cites the specification by document and section passes" {
  make_tree
  make_spec
  while IFS='|' read -r file text; do
    rm -f src/base/x.c test/x.bats docs/x.md
    case "$file" in
    *.c) source_file "$file" "$text" ;;
    *) printf '# SPDX-License-Identifier: Apache-2.0\n%b\n' "$text" >"$file" ;;
    esac
    run tools/lint
    [ "$status" -eq 0 ] || { echo "'$text' in $file gave: $output"; false; }
  done <<'TABLE'
src/base/x.c|/* SPEC some-stack 1.2: a rule. SPEC other 4. */
src/base/x.c|/* Rules (SPEC some-stack 1, 1.2, Q3, SPEC other 4), and what follows. */
src/base/x.c|/* SPEC some-stack 1 to 1.2 */
src/base/x.c|/* SPEC some-stack 1 step 9, 1.2 items 7 and 8, 1 (5), 1.2 "A 6", Q3 */
src/base/x.c|/*\n * broken (SPEC\n * some-stack 1,\n * 1.2).\n */
src/base/x.c|const char *s = "SPEC 9.9, Q9"; int SPEC_MODE; int Q8;
test/x.bats|# SPEC other 4, as text\nrun echo "SPEC 9.9"
docs/x.md|It says SPEC some-stack Q3, and how: SPEC document section. Q9 is a quarter.
TABLE
}

@test "lint: what cites no document, or no section of one, is found" {
  make_tree
  make_spec
  while IFS='|' read -r file text found; do
    rm -f src/base/x.c test/x.bats docs/x.md
    case "$file" in
    *.c) source_file "$file" "$text" ;;
    *) printf '# SPDX-License-Identifier: Apache-2.0\n%b\n' "$text" >"$file" ;;
    esac
    run -1 tools/lint
    [[ $output == "$file:"*": spec: $found"* && $(wc -l <<<"$output") -eq 1 ]] || {
      echo "'$text' in $file gave: $output"
      false
    }
  done <<'TABLE'
src/base/x.c|/* SPEC 1.2: a rule */|SPEC: names no document
src/base/x.c|/* as the SPEC. */|SPEC: names no document
src/base/x.c|/* SPEC no-stack 1 */|SPEC: there is no docs/spec/no-stack.md
src/base/x.c|/* SPEC README 7 */|SPEC: names no document
src/base/x.c|/* SPEC some-stack.md 1 */|SPEC some-stack: names no section
src/base/x.c|/* SPEC some-stack says so */|SPEC some-stack: names no section
src/base/x.c|/* SPEC some-stack 2 */|SPEC some-stack 2: docs/spec/some-stack.md has no such section
src/base/x.c|/* SPEC some-stack 1.2, 1.3 */|SPEC some-stack 1.3: docs/spec/some-stack.md has no such section
src/base/x.c|/* SPEC some-stack 1 step 2, 1.3 */|SPEC some-stack 1.3: docs/spec/some-stack.md has no such section
src/base/x.c|/* SPEC some-stack 1 to 5 */|SPEC some-stack 5: docs/spec/some-stack.md has no such section
src/base/x.c|/* SPEC some-stack Q4 */|SPEC some-stack Q4: docs/spec/some-stack.md has no such section
src/base/x.c|/* SPEC other 4; Q3 */|Q3: say whose it is
src/base/x.c|int x; // Q3|Q3: say whose it is
test/x.bats|run true \0043 SPEC other 5|SPEC other 5: docs/spec/other.md has no such section
docs/x.md|SPEC other 5|SPEC other 5: docs/spec/other.md has no such section
TABLE
}

@test "lint: a file without licence or opening comment is found" {
  make_tree
  echo 'int x;' >src/base/x.c
  run -1 tools/lint
  [[ $output == *": licence:"* ]]
  [[ $output == *": opening:"* ]]
}

@test "check: whitespace, format and spelling faults are found" {
  local which="whitespace,sources listed,format,shell scripts,spelling"
  make_copy src/base tools test/integration/slurm.bats
  run -0 tools/check --only "$which"
  printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* x: a file. */\nint  x_ ; \n' >src/base/planted.c
  # shellcheck disable=SC2016
  printf '#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n# it recie''ves\nrm $1\n' >tools/planted
  chmod +x tools/planted
  run -1 tools/check --only "$which"
  [[ $output == *"FAIL  whitespace"* ]]
  [[ $output == *"planted.c is in no meson.build"* ]]
  # Where the checker is one whose findings count.
  local name
  for name in format "shell scripts" spelling; do
    [[ $output == *"FAIL  $name"* || $output == *"SKIP  $name: "*[0-9]* ]] || { echo "$name: $output"; false; }
  done
  sed -i 's/no such device/no device/' src/base/error.h
  run -1 tools/check --only "generated documents"
  [[ $output == *"docs/ERRORS.md is not current"* ]]
}

@test "check: --only makes the checks of these names; a name that there is not is an error" {
  run -0 tools/check --tap --only layers,whitespace
  [ "$output" = $'ok 1 - layers\nok 2 - whitespace\n1..2' ]
  run -64 tools/check --only nonsense
  [ "$output" = "tools/check: no check 'nonsense'" ]
  run -64 tools/check --only
  [ "$output" = "usage: tools/check [--full] [--tap] [--only NAME[,NAME...]]" ]
}

@test "new-module: its three files compile, pass and satisfy the checks" {
  make_copy src/plan/meson.build test/unit/plan/meson.build src/apply/oci/meson.build test/unit/apply/meson.build
  tools/new-module plan/trial "a trial"
  tools/new-module apply/oci/trial2 "another trial"
  # All but what reads no source.
  run -0 tools/check --only "layers,lint,whitespace,sources listed,generated documents,format,headers stand alone,spelling"
  # All else has been compiled by ./check.
  "$top/test/tools/cached" "${results:-$BATS_TEST_TMPDIR}/ccache" --ignore "${alike-}" tools/build debug test/unit/test_trial >/dev/null
  run -0 build-debug/test/unit/test_trial
  run -1 tools/new-module plan/trial "again"
  run -1 tools/new-module nowhere/trial "a folder that is not there"
  run -64 tools/new-module Plan "bad name"
  run -1 tools/new-module daemon/trial "a folder that is a library of its own"
  [ "$output" = "tools/new-module: src/daemon is not part of the library: add a module by hand, as its neighbours are" ]
}

# links_tree: pages that are linked well.
links_tree() {
  make_tree
  cp "$top/tools/links" tools/
  mkdir -p docs/spec
  printf '# Program\n\n[documents](docs/README.md), [here](#program), [elsewhere](https://localhost/x)\n' >README.md
  printf '# Documents\n\n[page](page.md#a-heading-with-code), [spec](spec/)\n' >docs/README.md
  printf '# Page\n\n## A heading, with `code`\n\n## Twice\n\n## Twice\n\n[the second](#twice-1)\n' >docs/page.md
  printf '# Spec\n' >docs/spec/README.md
}

@test "links: a dead link, a lost heading, a way out of docs/ and a page that nothing links to are found" {
  local file line text
  while IFS='|' read -r file line text; do
    links_tree
    run -0 tools/links
    # shellcheck disable=SC2059 # the text has line ends
    printf "\n$line\n" >>"$file"
    run -1 tools/links
    [ "$output" = "$text" ] || { echo "$output" && return 1; }
    cd "$top" && rm -r "$tree"
  done <<'ROWS'
docs/page.md|[gone](gone.md)|docs/page.md:11: gone.md does not exist
docs/page.md|[gone](page.md#nothing)|docs/page.md:11: docs/page.md has no heading #nothing
docs/page.md|[third](#twice-2)|docs/page.md:11: docs/page.md has no heading #twice-2
docs/page.md|[program](../README.md)|docs/page.md:11: ../README.md is not in docs/, which packages install alone
README.md|[source](src/none.c)|README.md:5: src/none.c does not exist
docs/lonely.md|# Lonely|docs/lonely.md:1: no page links to it
ROWS
}

@test "commit-msg: each fault of a message is found; a good one, a merge and a revert pass" {
  local message=$BATS_TEST_TMPDIR/message long
  printf -v long 'apply: %065d' 0
  while IFS='|' read -r text expected; do
    # shellcheck disable=SC2059 # the text has line ends
    printf "$text" >"$message"
    run tools/hooks/commit-msg "$message"
    [ "$status $output" = "${expected:+1 commit-msg: $expected}" ] || [ "$status$output$expected" = 0 ] || { echo "$text: $status $output" && return 1; }
  done <<ROWS
apply: refuse a link to /dev\n\nAn image could lead there.\n|
c interface, docs: say so\n\nWhy.\n|
Merge branch 'work'\n|
Revert "apply: refuse a link"\n|
$long\n\nWhy.\n|
${long}0\n\nWhy.\n|the subject has 73 characters; at most 72
Refuse a link to /dev\n\nWhy.\n|the subject is 'area: imperative', like 'apply: refuse a link to /dev'
apply: refuse a link\nto /dev\n|the second line is empty
apply: refuse a link\n|the body says why
apply: refuse a link\n\n# Please enter the commit message.\n|the body says why
ROWS
}

@test "measure: functions, names, comments, blank and wide lines are counted" {
  make_tree
  cp "$top/tools/measure" tools/
  run -1 tools/measure
  [ "$output" = "tools/measure: no function in src" ]
  source_file src/base/x.c 'static int one(void)\n{\n\treturn 1; /* "one" */\n}\n\nint two(void)\n{\n\tint a = one();\n\n\treturn a;\n}'
  source_file src/plan/y.c "/* comment */\nstatic int one(void)\n{\n\treturn $(printf '%0120d' 0);\n}"
  printf '/* no code */\n' >src/plan/y.h
  run -0 tools/measure
  [ "$output" = ".c / .h files: 2 / 1
median lines of a .c: 10
functions: 3
lines of a function, p50 / p90 / p99 / max: 1 / 3 / 3 / 3
functions whose name another has too: 66.7 %
lines over 120 columns: 1, 4.76 %
lines of all: 21: code 13, comments 6, blank 2
lines of src/base: 13: code 9, comments 2, blank 2
lines of src/plan: 8: code 4, comments 4, blank 0" ]
}
