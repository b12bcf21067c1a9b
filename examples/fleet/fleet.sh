#!/bin/sh
# Runs a fleet of three hosts on one machine: a nettraced and a service for each, one receiver of OTLP, one query over the
# files of all hosts, and a data set of Parquet files. Needs no root: the services pass their events through rings in user
# space. The programs nettrace and nettraced must be in PATH, and the module eventheader (package python3-eventheader)
# must be installed.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: fleet.sh NEW_FOLDER" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
cd "$1"
# The services pass events through rings even if the kernel has user_events. EVENTHEADER_SOCKET below connects each service to
# the collector of its host.
export EVENTHEADER_TRANSPORT=ring
hosts="payment stock front"
running=
trap 'kill $running 2>/dev/null || :; wait' EXIT
trap 'exit 1' HUP INT TERM

# Waits until a command succeeds.
until_true() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 400 ]; then
      echo "fleet.sh: did not succeed within 20 s: $*; see $PWD/*/nettraced.log" >&2
      exit 1
    fi
    sleep 0.05
  done
}

# Starts the collectors. On separate machines, systemd starts nettraced, which then uses its default directories.
for host in $hosts; do
  mkdir -p "$host/state" "$host/run"
  EVENTHEADER_SOCKET=$PWD/$host/events nettraced --config "$here/shop.toml" --state-directory "$PWD/$host/state" \
    --runtime-directory "$PWD/$host/run" 2>"$host/nettraced.log" &
  eval "collector_$host=$!"
  running="$running $!"
done
for host in $hosts; do
  until_true nettrace ctl --socket "$host/run/control" wait shop
done

# Starts the services: front calls stock, and stock calls payment.
next=
services=
for host in $hosts; do
  EVENTHEADER_SOCKET=$PWD/$host/events "$here/service.py" "$host" --port-file "$host/port" ${next:+--next "$next"} &
  services="$services $!"
  running="$running $!"
  until_true test -e "$host/port"
  next=$host/port
done
"$here/service.py" --ask front/port --requests 20

# Writes the metrics that Prometheus scrapes. Then ends the services and collectors, which completes the files.
for host in $hosts; do
  nettrace ctl --socket "$host/run/control" metrics >"$host/metrics"
done
# shellcheck disable=SC2086 # a list of process ids
kill $services
for host in $hosts; do
  eval "kill \$collector_$host && wait \$collector_$host"
done

# Sends the events of all hosts to one receiver.
"$here/receiver.py" --port-file receiver.port --output records.jsonl &
running="$running $!"
until_true test -e receiver.port
for host in $hosts; do
  nettrace ship --once --encoding json --to "http://127.0.0.1:$(cat receiver.port)" --state "$host/ship.json" \
    "$host/state/shop"
done
echo "$(wc -l <records.jsonl) records received"

# Makes one data set for DuckDB, ClickHouse or Spark, with a partition for each host.
for host in $hosts; do
  mkdir -p "dataset/machine=$host"
  nettrace export --to parquet "$host"/state/shop/*.nettrace.zst -o "dataset/machine=$host/events.parquet"
done

# Prints the slowest request on its way through the hosts.
nettrace query front/state/shop stock/state/shop payment/state/shop "$(cat "$here/request.sql")"
