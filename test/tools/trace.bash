# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Before each command, bats records where it is, in case it fails; that takes 0.4 ms, half the time of many suites. bash 5 still knows it when a command has
# failed, and is asked then. No line is shown for a teardown, or for a test that ends by exit, a signal or a timeout; for a function that returns a failure, the
# line of its call is. "bats --trace" records every command.

declare -F noting_bats_setup_tracing >/dev/null || eval "noting_$(declare -f bats_setup_tracing)"

bats_setup_tracing() {
  noting_bats_setup_tracing
  note_failures_alone
}

note_failures_alone() {
  [ "${BATS_TRACE_LEVEL:-0}" -eq 0 ] || return 0
  trap - DEBUG
  # shellcheck disable=SC2034 # for bats
  BATS_DEBUG_LAST_STACK_TRACE=() BATS_DEBUG_LASTLAST_STACK_TRACE=()
}

bats_error_trap() {
  bats_check_status_from_trap
  bats_capture_stack_trace
  # shellcheck disable=SC2034 # for bats
  BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
}

# For setup_file, which runs in the shell that is reading this.
note_failures_alone
