# SPDX-License-Identifier: Apache-2.0
# A real kubelet, containerd, our runtime and our device plugin, on a simulated host of eight GPUs (./check kubelet).
# With GRAFT_CONTAINERD=trixie or forky on containerd of that release of Debian.

load ../integration/lib.bash
load ../integration/engines.bash
load kubelet.bash

setup_file() { start_node; }
teardown_file() { stop_machine; }
setup() {
  need_engines
  engine_setup
}
teardown() { [ -e "$machine/why" ] || clear_node; }

@test "the kubelet finds the plugin by itself, and has eight GPUs" {
  diff <(host_uuids | sort) <(registered)
  on_host test -S /var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock
  grep -q "nvidia.com/gpu: registered with the kubelet" "$machine/plugin.log"
}

@test "pods of none, one, two and three GPUs see those that they were given, and no two the same" {
  add_pod none 0
  add_pod one 1
  add_pod two 2
  add_pod three 3
  expect_pod none 0
  all=()
  for name in one:1 two:2 three:3; do
    expect_pod "${name%:*}" "${name#*:}"
    all+=("${gpus[@]}")
  done
  [ "$(printf '%s\n' "${all[@]}" | sort -u | wc -l)" -eq 6 ]
}

@test "two containers of a pod have GPUs of their own" {
  add_pod pair 2 side=1
  expect_pod pair 2
  first=("${gpus[@]}")
  expect_pod pair 1 side
  [[ " ${first[*]} " != *" ${gpus[0]} "* ]]
}

@test "the kubelet asks for the plugin's preference" {
  add_pod preferred 2
  expect_pod preferred 2
  on_host /usr/bin/python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:9400/metrics", timeout=10).read().decode())' >"$work/metrics"
  grep -qE '^graft_device_plugin_calls_total\{resource="nvidia.com/gpu",method="GetPreferredAllocation",result="answered"\} [1-9]' "$work/metrics"
  grep -qE '^graft_device_plugin_calls_total\{resource="nvidia.com/gpu",method="Allocate",result="refused"\} 0$' "$work/metrics"
}

@test "a pod that asks for more than is left is refused; what a pod releases, the next one gets" {
  add_pod most 6
  expect_pod most 6
  add_pod too-many 3
  await_refused too-many
  add_pod rest 2
  expect_pod rest 2
  add_pod one-more 1
  await_refused one-more
  remove_pod most
  add_pod again 6
  expect_pod again 6
}

@test "a container that dies is started again with its GPUs" {
  add_pod mortal 2
  expect_pod mortal 2
  before=("${gpus[@]}")
  id=$(container_id mortal)
  CTR_NAMESPACE=k8s.io ctr task kill --signal KILL "$id"
  is_another() { [ "$(container_id mortal)" != "$id" ] && is_running mortal; }
  within 60 is_another
  expect_pod mortal 2
  [ "${gpus[*]}" = "${before[*]}" ]
}

@test "kill -9 of the kubelet: containers live on with their GPUs, and the next one finds the plugin by itself" {
  add_pod early 3
  expect_pod early 3
  before=("${gpus[@]}")
  id=$(container_id early)
  n=$(watched)
  end KILL kubelet
  run_kubelet
  await_watched "$n"
  expect_registered 8
  expect_pod early 3
  [ "${gpus[*]}" = "${before[*]}" ]
  [ "$(container_id early)" = "$id" ]
  add_pod late 5
  expect_pod late 5
  add_pod too-late 1
  await_refused too-late
  # The plugin is the one that it was, and has registered nowhere itself.
  [[ $(cat "$machine/plugin.log") != *"registering again"* ]]
}

@test "five kubelets one after the other: each has all devices" {
  for _ in 1 2 3 4 5; do
    n=$(watched)
    end KILL kubelet
    run_kubelet
    await_watched "$n"
  done
  expect_registered 8
  add_pod after-five 8
  expect_pod after-five 8
}

@test "a container that dies while no kubelet is there is started again with its GPUs by the next one" {
  add_pod orphan 2
  expect_pod orphan 2
  before=("${gpus[@]}")
  id=$(container_id orphan)
  end KILL kubelet
  CTR_NAMESPACE=k8s.io ctr task kill --signal KILL "$id"
  run_kubelet
  is_another() { [ "$(container_id orphan)" != "$id" ] && is_running orphan; }
  within 60 is_another
  expect_pod orphan 2
  [ "${gpus[*]}" = "${before[*]}" ]
}

@test "an Xid takes a GPU away: no pod gets it, until a reset brings it back" {
  xid 7 "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
  expect_registered 7
  [[ $(registered) != *"$(uuid_of 7)"* ]]
  add_pod all-of-them 8
  await_refused all-of-them
  add_pod without-it 7
  expect_pod without-it 7
  [ "${gpus[*]}" = "0 1 2 3 4 5 6" ]
  reset_gpu 7
  expect_registered 8
  add_pod with-it 1
  expect_pod with-it 1
  [ "${gpus[*]}" = 7 ]
}

@test "an Xid of a GPU in use: its pod is left alone, and nobody else gets the GPU until it was reset" {
  add_pod sick 1
  expect_pod sick 1
  sick=${gpus[0]}
  id=$(container_id sick)
  xid "$sick" "48, pid=1, name=app, Double Bit ECC Error"
  expect_registered 7
  expect_pod sick 1
  [ "$(container_id sick)" = "$id" ]
  remove_pod sick
  add_pod others 7
  expect_pod others 7
  [[ " ${gpus[*]} " != *" $sick "* ]]
  add_pod that-one 1
  await_refused that-one
  reset_gpu "$sick"
  expect_registered 8
  add_pod that-one-again 1
  expect_pod that-one-again 1
  [ "${gpus[*]}" = "$sick" ]
}

@test "a driver that says that the GPU needs no reset any more has the same effect" {
  xid 3 "95, pid=1, name=app, Uncontained ECC error"
  expect_registered 7
  xid 3 "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
  expect_registered 8
  add_pod after-the-word 8
  expect_pod after-the-word 8
}

@test "the plugin ends: pods keep their GPUs, no new one gets any; it comes back, and all is as before" {
  add_pod kept 2
  expect_pod kept 2
  before=("${gpus[@]}")
  end TERM nvidia-device-plugin
  expect_pod kept 2
  [ "${gpus[*]}" = "${before[*]}" ]
  add_pod without-a-plugin 1
  await_refused without-a-plugin
  run_plugin
  expect_registered 8
  add_pod with-a-plugin 6
  expect_pod with-a-plugin 6
  [[ " ${gpus[*]} " != *" ${before[0]} "* && " ${gpus[*]} " != *" ${before[1]} "* ]]
}

@test "kill -9 of the plugin, which leaves its socket: the next one is found all the same" {
  add_pod survivor 1
  expect_pod survivor 1
  end KILL nvidia-device-plugin
  on_host test -S /var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock
  run_plugin
  expect_registered 8
  expect_pod survivor 1
  add_pod successor 7
  expect_pod successor 7
}

@test "the plugin's socket is removed: it is made again, and the kubelet finds it" {
  add_pod undisturbed 2
  expect_pod undisturbed 2
  for _ in 1 2 3; do
    n=$(watched)
    on_host rm /var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock
    await_watched "$n"
  done
  expect_registered 8
  expect_pod undisturbed 2
  add_pod thereafter 6
  expect_pod thereafter 6
}

@test "SIGHUP of the plugin: every device is there again, and pods keep theirs" {
  add_pod unmoved 3
  expect_pod unmoved 3
  n=$(watched)
  on_host pkill -HUP --exact nvidia-device-p
  await_watched "$n"
  expect_registered 8
  expect_pod unmoved 3
  add_pod moved 5
  expect_pod moved 5
}

@test "a reboot: neither kubelet nor plugin nor containers are there; the plugin is first, and the pods have their GPUs" {
  add_pod rebooted 4
  expect_pod rebooted 4
  id=$(container_id rebooted)
  end KILL kubelet
  end KILL nvidia-device-plugin
  CTR_NAMESPACE=k8s.io ctr task list --quiet | while read -r task; do
    CTR_NAMESPACE=k8s.io ctr task kill --signal KILL "$task" || true
  done
  n=$(watched)
  launch_plugin
  run_kubelet
  await_watched "$n"
  expect_registered 8
  is_another() { [ "$(container_id rebooted)" != "$id" ] && is_running rebooted; }
  within 90 is_another
  expect_pod rebooted 4
  add_pod after-reboot 4
  expect_pod after-reboot 4
}

@test "without the registry the plugin registers, and again with the next kubelet" {
  end TERM nvidia-device-plugin
  run_plugin --plugin-registry ""
  expect_registered 8
  on_host test -S /var/lib/kubelet/device-plugins/nvidia-gpu.sock
  add_pod by-register 2
  expect_pod by-register 2
  for _ in 1 2 3; do
    n=$(watched)
    end KILL kubelet
    run_kubelet
    await_watched "$n"
  done
  expect_registered 8
  expect_pod by-register 2
  add_pod by-register-again 6
  expect_pod by-register-again 6
  end TERM nvidia-device-plugin
}

@test "by mounts: the kubelet passes them on, and the container has its GPUs" {
  config_toml <<TOML
accept-nvidia-visible-devices-as-volume-mounts = true
accept-nvidia-visible-devices-envvar-when-unprivileged = false
TOML
  plugin_with --device-list-strategy volume-mounts
  expect_registered 8
  add_pod by-mounts 2
  expect_pod by-mounts 2
  end TERM nvidia-device-plugin
}

@test "by annotations of CDI devices" {
  config_toml <<TOML
[nvidia-ctk]
path = "$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook"
TOML
  NVIDIA_CDI_HOOK_PATH=$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook plugin_with --device-list-strategy cdi-annotations
  expect_registered 8
  add_pod by-annotations 2
  expect_pod by-annotations 2
  end TERM nvidia-device-plugin
}

@test "by names of CDI devices, from Kubernetes 1.28; an older kubelet drops them, and the container has no GPU" {
  NVIDIA_CDI_HOOK_PATH=$BATS_FILE_TMPDIR/bin/nvidia-cdi-hook plugin_with --device-list-strategy cdi-cri
  expect_registered 8
  add_pod by-names 2
  if [ "$(cat "$machine/minor")" -ge 28 ]; then
    expect_pod by-names 2
  else
    await_running by-names
    [ "$(gpus_of by-names | wc -l)" -eq 2 ]
    probe_pod by-names
    expect_no_gpu
  fi
  end TERM nvidia-device-plugin
}

@test "with the device nodes, as the kubelet's CPU manager needs them" {
  plugin_with --pass-device-specs
  expect_registered 8
  add_pod with-nodes 2
  expect_pod with-nodes 2
  end TERM nvidia-device-plugin
}

@test "by index" {
  plugin_with --device-id-strategy index
  expect_registered 8
  add_pod by-index 3
  expect_pod by-index 3
  end TERM nvidia-device-plugin
}

@test "shared GPUs: each is there twice, and a pod of two shares has two GPUs while there are any" {
  printf 'version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n' >"$machine/shared.yaml"
  plugin_with --config-file "$machine/shared.yaml"
  expect_registered 16
  add_pod shares 8
  expect_pod shares 8
  add_pod other-shares 8
  expect_pod other-shares 8
  add_pod no-share 1
  await_refused no-share
  end TERM nvidia-device-plugin
}
