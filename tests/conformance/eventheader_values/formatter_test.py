#!/usr/bin/python3
"""Tests that libeventheader's JSON of the events that are packed by hand has the values of the table."""

import json
import subprocess

from support import script

import events
import values_test


def main():
    args = script.parser(__doc__, "formatter").parse_args()
    everything = list(events.all_events())
    lines = subprocess.run([args.formatter], input="".join(f"{data.hex()}\n" for _, data, _, _ in everything),
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    shown = {event["name"]: event["fields"] for event in map(json.loads, lines)}
    return values_test.report(
        values_test.check_shown("FormatEventJson", {name: wanted for name, _, wanted, _ in everything}, shown))


if __name__ == "__main__":
    script.main(main)
