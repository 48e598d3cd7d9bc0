# SPDX-License-Identifier: Apache-2.0
# files: disk
# The tests run what the README tells people to type.

bats_require_minimum_version 1.5.0
load ../tools/trace.bash

setup() {
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  cd "$top"
}

@test "the README is one screen, says which version it is, and names both commands of this folder" {
  [ "$(wc -l <README.md)" -le 60 ]
  grep -qF "Version $(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build) is compatible with NVIDIA Container Toolkit $(sed -n "s/^compatible = '\(.*\)'/\1/p" meson.build)." README.md
  run -0 grep -oE 'sudo \./[a-z]+' README.md
  [ "$output" = $'sudo ./quickstart\nsudo ./check' ]
  [ -x quickstart ]
  [ -x check ]
}

@test "the commands of the README are understood: packages have these names, programs these options" {
  local command words ctk=${GRAFT_BUILD:-build-debug}/src/cli/ctk/nvidia-ctk n=0
  run -0 sed -n 's/^    \(sudo \)\{0,1\}\([a-z].*\)/\2/p' README.md
  while read -r command; do
    case $command in
    'apt-get install '*)
      for words in ${command#apt-get install }; do grep -qx "Package: $words" debian/control; done
      ;;
    'dnf install '*)
      for words in ${command#dnf install }; do grep -qx "%package -n $words" packaging/graft.spec; done
      ;;
    'nvidia-ctk doctor') "$ctk" doctor --help >/dev/null ;;
    'nvidia-ctk '*)
      command=${command%% &&*}
      # shellcheck disable=SC2086 # words
      "$ctk" ${command#nvidia-ctk } --dry-run >/dev/null 2>&1
      ;;
    'systemctl restart docker' | 'docker run --rm --gpus all ubuntu nvidia-smi' | 'podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi' | apptainer*) ;;
    *) echo "no test knows '$command'" && return 1 ;;
    esac
    n=$((n + 1))
  done < <(grep -v '^sudo \./' <<<"$output")
  [ "$n" -eq 9 ]
}

@test "the README has three lines for Docker, one for each other way, and what to do when it fails" {
  run -0 sed -n '/^## Use/,/^## More/p' README.md
  [[ $output == *$'\nDocker'*$':\n\n    sudo nvidia-ctk runtime configure --runtime=docker\n    sudo systemctl restart docker\n    docker run --rm --gpus all ubuntu nvidia-smi\n'* ]]
  [[ $output == *$'\nPodman'*$':\n\n    podman run '* ]]
  [[ $output == *$'\nKubernetes'*$':\n\n    sudo nvidia-ctk runtime configure --runtime=containerd '* ]]
  [[ $output == *$'\nApptainer:\n\n    apptainer exec --nvccli '* ]]
  [[ $output == *$'\nIf a container has no GPU'*$'\n\n    sudo nvidia-ctk doctor\n'* ]]
}

@test "docs/README.md leads to a page for each kind of reader, and the packages install it" {
  local page
  for page in docker podman kubernetes hpc lxc leases leases-admin jetson wsl2 coming-from-nvidia troubleshooting faq glossary removal packages doctor; do
    grep -qF "]($page.md)" docs/README.md || { echo "no link to $page.md"; return 1; }
    [ -s "docs/$page.md" ]
  done
  # The whole folder is installed, in a place that a package of each kind has.
  grep -qF "install_subdir('docs', install_dir: get_option('datadir') / 'doc' / 'graft'" meson.build
  grep -q '^usr/share/doc/graft ' debian/*.install
  grep -qx '%{_docdir}/graft' packaging/graft.spec
}

@test "no example has a placeholder instead of an image" {
  run ! grep -nE '\bIMAGE\b|(docker|podman) (run|create) .* \.\.\.( |$)' "$top"/README.md "$top"/docs/*.md
}

@test "CI runs the test command of the README and nothing else" {
  run -0 grep -vE '^(#|$)' .ci/run
  # shellcheck disable=SC2016
  [ "$output" = 'exec "$(dirname "$0")/../check"' ]
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

@test "check needs root" {
  run -1 setpriv --reuid=65534 --regid=65534 --clear-groups ./check static
  [[ $output == *"run this as root"* ]]
}
