# SPDX-License-Identifier: Apache-2.0
# What the README tells people to type is what the tests run.

bats_require_minimum_version 1.5.0

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

@test "the README has two commands, and both exist" {
  run -0 sed -n 's/^    \([a-z].*\)/\1/p' README.md
  [ "$output" = $'sudo ./quickstart\nsudo ./check' ]
  [ -x quickstart ]
  [ -x check ]
}

@test "CI runs the test command of the README and nothing else" {
  run -0 grep -vE '^(#|$)' .ci/run
  # shellcheck disable=SC2016
  [ "$output" = 'exec "$(dirname "$0")/../check"' ]
}

@test "every relative link in the documents leads to a file" {
  local file link status=0
  for file in $(git ls-files --cached --others --exclude-standard '*.md'); do
    while read -r link; do
      if [ ! -e "$(dirname "$file")/$link" ]; then
        echo "$file: $link"
        status=1
      fi
    done < <(grep -oE '\]\([^)#]+' "$file" | sed 's/^](//' | grep -v '^http')
  done
  [ $status -eq 0 ]
}

@test "every file that a document names in code exists" {
  local file name status=0
  for file in README.md CONTRIBUTING.md SECURITY.md docs/*.md; do
    while read -r name; do
      if [ ! -e "$name" ] && [ ! -e "$name.c" ]; then
        echo "$file: $name"
        status=1
      fi
    done < <(tr -c 'A-Za-z0-9_./\n-' ' ' <"$file" | tr ' ' '\n' | grep -E '^(src|test|tools|docs|sim|bench)/' | grep -v NAME | sed 's/\.$//' | sort -u)
  done
  [ $status -eq 0 ]
}

@test "no two decisions have the same number" {
  run -0 sh -c 'ls docs/decisions | grep -o "^[0-9]*" | sort | uniq -d'
  [ "$output" = "" ]
}

@test "every program that is installed has its line in the architecture, with a page that is about it" {
  local name line page pages programs=()
  # One file of that name is the main of each; the runtime's variants share its line.
  mapfile -t programs < <(find src/cli -name 'nvidia-*.c' | sed 's|.*/||; s|\..*||' | sort -u)
  [ ${#programs[@]} -ge 5 ]
  for name in "${programs[@]}"; do
    line=$(grep "^| \`$name\`" docs/ARCHITECTURE.md) || { echo "$name has no line"; return 1; }
    mapfile -t pages < <(grep -oE '\([a-z-]+\.md\)' <<<"$line" | tr -d '()')
    for page in "${pages[@]}"; do
      grep -q "$name" "docs/$page" || { echo "docs/$page says nothing of $name"; return 1; }
    done
    [ ${#pages[@]} -gt 0 ]
  done
}

@test "every variable that is read is documented" {
  local name
  while read -r name; do
    grep -qF "\`$name\`" docs/ENVIRONMENT.md || { echo "$name is not in docs/ENVIRONMENT.md"; return 1; }
  done < <(grep -rhoE 'getenv\("[A-Z_]+"' src sim --include='*.c' | cut -d '"' -f 2 | sort -u)
}

@test "check refuses what it does not know, and needs root" {
  run -64 ./check nonsense
  [[ $output == *"no stage 'nonsense'"* ]]
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups ./check static
  [[ $output == *"run this as root"* ]]
}
