#!/bin/sh
# Starts and stops the nodes of this example, each a process of its own.
#
#   ./three.sh start [NODE...]   formats what is new, starts, waits until it serves
#   ./three.sh stop [NODE...]    asks to stop, waits until it did
#   ./three.sh kill [NODE...]    kill -9: they get no chance to do anything
#   ./three.sh pid NODE          the process, for other signals
#   ./three.sh until-isr TOPIC-PARTITION 1,2,3
#                                waits until these replicas are in sync
#
# NODE is controller, broker-1, broker-2 or broker-3; without one: all of them.
# HIGHWATER names the program, if it is not in the PATH.
set -eu
cd "$(dirname "$0")"
highwater=${HIGHWATER:-highwater}
nodes="controller broker-1 broker-2 broker-3"

pid() {
    cat "data/$1.pid"
}

# A process that ended and that nobody asked about yet (Z) does not run.
runs() {
    [ -f "data/$1.pid" ] || return 1
    state=$(ps -o stat= -p "$(pid "$1")") || return 1
    case $state in Z*) return 1 ;; esac
}

format() {
    [ -f "data/$1/meta.properties" ] && return
    [ -f data/cluster-id ] || "$highwater" format random-uuid >data/cluster-id
    voters=""
    [ "$1" = controller ] && voters=--standalone
    "$highwater" format --config "$1.properties" --cluster-id "$(cat data/cluster-id)" $voters
}

start() {
    if runs "$1"; then
        echo "$1 runs already"
        return
    fi
    format "$1"
    : >"data/$1.out"
    "$highwater" start --config "$1.properties" >>"data/$1.out" 2>>"data/$1.log" &
    echo $! >"data/$1.pid"
    until grep '^highwater ready ' "data/$1.out"; do
        runs "$1" || { tail -n 3 "data/$1.log" >&2; exit 1; }
        sleep 0.1
    done
}

end() {
    runs "$2" || return 0
    kill "$1" "$(pid "$2")"
    while runs "$2"; do sleep 0.1; done
    echo "$2 ended"
}

# The ISR as the leader has it, ids in order.
isr() {
    "$highwater" topic describe "${1%-*}" |
        awk -v name="$1" '$1 == name && $3 == "leader" { print $8 }' |
        tr ',' '\n' | sort -n | paste -s -d , -
}

command=${1:-help}
[ $# -gt 0 ] && shift
case $command in
start)
    mkdir -p data
    for node in ${*:-$nodes}; do start "$node"; done
    ;;
stop)
    # The controller last: brokers hand over to each other what they lead.
    for node in ${*:-broker-1 broker-2 broker-3 controller}; do end -TERM "$node"; done
    ;;
kill)
    for node in ${*:-$nodes}; do end -KILL "$node"; done
    ;;
pid)
    pid "$1"
    ;;
until-isr)
    until [ "$(isr "$1")" = "$2" ]; do sleep 0.2; done
    ;;
*)
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
