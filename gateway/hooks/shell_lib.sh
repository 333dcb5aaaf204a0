#!/bin/bash
#
# The library of shell hooks for shell-operator: `source /shell_lib.sh`, then `hook::run "$@"`. It has the functions, the
# variables and the shell options of shell-operator's own library, so that hooks run unchanged. It needs jq, and bash 4.4
# or newer. A hook defines:
#
#   __config__                      prints the configuration
#   __on_validating::BINDING        answers for a binding of kubernetesValidating
#   __on_mutating::BINDING          answers for a binding of kubernetesMutating
#   __main__                        answers for bindings without a function of their own
#
# The gateway calls hooks for admission only. The library calls the handlers of other bindings too, so that hooks can be
# tested with binding contexts of shell-operator.

set -Eeuo pipefail
shopt -s inherit_errexit failglob

# Print the stack of an error, the innermost call last, as shell-operator's library does.
function backtrace() {
  local status=$? frame file line
  echo "Traceback (most recent call last):" >&2
  for ((frame = ${#FUNCNAME[@]} - 1; frame > 0; frame--)); do
    file="${BASH_SOURCE[frame]}"
    line="${BASH_LINENO[frame - 1]}"
    printf '  File "%s", line %d, in %s\n' "${file}" "${line}" "${FUNCNAME[frame]}" >&2
    if [[ -r "${file}" ]]; then
      sed -n "${line}s/^[[:space:]]*/    /p" "${file}" >&2
    fi
  done
  printf 'Exiting with status %d\n' "${status}" >&2
}

trap backtrace ERR

# ------------------------------------------------------------------------------------------------------------- hook

# Print the configuration, or answer for each binding context in turn. Called last, with the hook's own arguments.
function hook::run() {
  if [[ "${1:-}" == "--config" ]]; then
    __config__
    exit 0
  fi

  local count index
  count="$(context::global::jq -r 'length')"
  for ((index = 0; index < count; index++)); do
    export BINDING_CONTEXT_CURRENT_INDEX="${index}"
    BINDING_CONTEXT_CURRENT_BINDING="$(context::jq -r '.binding // "unknown"')"
    export BINDING_CONTEXT_CURRENT_BINDING
    BINDING_CONTEXT_CURRENT_TYPE="$(context::jq -r '.type // ""')"
    hook::_handle
  done
}

# Run the first handler that is defined, in a subshell: the variables that it sets are discarded.
function hook::_handle() {
  local -a handlers
  mapfile -t handlers < <(hook::_handlers)
  local handler
  for handler in "${handlers[@]}"; do
    if declare -F -- "${handler}" >/dev/null; then
      ("${handler}")
      return $?
    fi
  done
  printf "ERROR: Can't find any handler from the list: %s.\n" "${handlers[*]}" >&2
  return 1
}

# The names of the functions that may handle the current context, the most specific one first.
function hook::_handlers() {
  local binding="${BINDING_CONTEXT_CURRENT_BINDING}"
  case "${BINDING_CONTEXT_CURRENT_TYPE}" in
    Validating) echo "__on_validating::${binding}" ;;
    Mutating) echo "__on_mutating::${binding}" ;;
    Conversion)
      echo "__on_conversion::${binding}::$(context::jq -r '[.fromVersion, .toVersion] | map(sub("/"; ".")) | join("::")')"
      echo "__on_conversion::${binding}"
      ;;
    Schedule) echo "__on_schedule::${binding}" ;;
    Group) echo "__on_group::${binding}" ;;
    Synchronization)
      echo "__on_kubernetes::${binding}::synchronization"
      echo "__on_kubernetes::${binding}"
      ;;
    Event) hook::_event_handlers "${binding}" "$(context::jq -r '.watchEvent')" ;;
    *)
      if [[ "${binding}" == "onStartup" ]]; then
        echo "__on_startup"
      fi
      ;;
  esac
  echo "__main__"
}

function hook::_event_handlers() {
  case "$2" in
    Added) printf '__on_kubernetes::%s::%s\n' "$1" added "$1" added_or_modified ;;
    Modified) printf '__on_kubernetes::%s::%s\n' "$1" modified "$1" added_or_modified ;;
    Deleted) printf '__on_kubernetes::%s::%s\n' "$1" deleted ;;
  esac
  echo "__on_kubernetes::$1"
}

# ---------------------------------------------------------------------------------------------------------- context

# jq over all binding contexts, an array.
function context::global::jq() {
  jq "$@" "${BINDING_CONTEXT_PATH}"
}

# jq over the current one.
function context::jq() {
  context::global::jq ".[${BINDING_CONTEXT_CURRENT_INDEX:-0}]" | jq "$@"
}

# The value at a path such as review.request.object.metadata.labels.'app.kubernetes.io/name' or spec.containers.0.image.
# With --required, a missing value is an error.
function context::get() {
  local required=no
  while [[ "${1:-}" == "--required" ]]; do
    required=yes
    shift
  done
  if [[ "${required}" == "yes" ]] && ! context::has "${1:-}"; then
    echo "Error: Value ${1:-} required, but doesn't exist" >&2
    return 1
  fi
  local filter
  filter="$(context::_filter "${1:-}")"
  context::jq -r "${filter}"
}

# Whether a path exists; its value may be null.
function context::has() {
  local -a segments
  context::_split "${1:-}"
  if ((${#segments[@]} == 0)); then
    return 0
  fi
  local last="${segments[-1]}"
  unset 'segments[-1]'
  local key
  if [[ "${last}" =~ ^[0-9]+$ ]]; then
    key="${last}"
  else
    last="${last#\"}"
    key="\"${last%\"}\""
  fi
  context::jq -e "$(context::_joined) | has(${key})" >/dev/null
}

function context::is_true() {
  context::_is "${1:-}" true
}

function context::is_false() {
  context::_is "${1:-}" false
}

function context::is_null() {
  context::_is "${1:-}" null
}

function context::_is() {
  local filter
  filter="$(context::_filter "$1")"
  context::jq -e "${filter} == $2" >/dev/null
}

# A path as a jq filter.
function context::_filter() {
  local -a segments
  context::_split "$1"
  context::_joined
}

# Split a path at the dots outside of quotes into the caller's array `segments`. Single quotes become double quotes.
function context::_split() {
  local path="${1//\'/\"}" segment='' character quoted=no i
  segments=()
  if [[ -z "${path}" ]]; then
    return 0
  fi
  for ((i = 0; i < ${#path}; i++)); do
    character="${path:i:1}"
    if [[ "${character}" == '"' ]]; then
      if [[ "${quoted}" == "yes" ]]; then quoted=no; else quoted=yes; fi
    fi
    if [[ "${character}" == "." && "${quoted}" == "no" ]]; then
      segments+=("${segment}")
      segment=''
    else
      segment+="${character}"
    fi
  done
  segments+=("${segment}")
}

# The caller's array `segments` as a jq filter: a number is an index, and a segment with a dash is quoted.
function context::_joined() {
  local filter='' segment
  for segment in ${segments[@]+"${segments[@]}"}; do
    if [[ "${segment}" =~ ^[0-9]+$ ]]; then
      filter="${filter:-.}[${segment}]"
    elif [[ "${segment}" == *-* && "${segment}" != *'"'* ]]; then
      filter+=".\"${segment}\""
    elif [[ -n "${segment}" ]]; then
      filter+=".${segment}"
    fi
  done
  echo "${filter:-.}"
}
