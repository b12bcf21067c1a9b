"""The rows of benchmarks: a table for people, or JSON lines for `./run bench --json`. The floor of a value is the value
that it is compared with, from the same run: what a simpler program needs, such as a memcpy."""

import json


def head(as_json, text):
    """Prints the head of the table, whose first column has `text`."""
    if not as_json:
        print(f"{text:56} {'value':>10} {'floor':>10} {'ratio':>8}")


def row(bench, as_json, case, unit, value, floor):
    """Prints a measured value of the benchmark `bench` beside its floor."""
    if as_json:
        print(json.dumps({"bench": bench, "case": case, "unit": unit, "value": round(value, 1), "floor": round(floor, 1),
                          "ratio": round(value / floor, 3)}))
    else:
        print(f"{case + ', ' + unit:56} {value:10.1f} {floor:10.1f} {value / floor:8.3f}")
