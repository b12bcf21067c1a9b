#!/usr/bin/python3
"""Tests that `nettrace import --from fxt` reads what `nettrace export` writes. `nettrace dump` must show the original
events, except for what the Fuchsia trace format cannot hold (nettrace-import(1))."""

import subprocess

from support import commands
from support import script

FILES = ("types", "quirks", "labels", "activities", "names", "intervals", "lost", "account", "empty", "sections")
SEEDS = range(1, 4)
SAME = ("time", "provider", "name", "cpu", "level", "keywords", "opcode", "activityId", "relatedActivityId")
CUT = "…"


def leaves(value, name):
    """Yields the values of a payload, each with the name of its argument in the Fuchsia trace."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from leaves(member, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for index, element in enumerate(value):
            yield from leaves(element, f"{name}[{index}]")
    else:
        yield name, value


def same(one, other):
    """Returns whether the file has the value that was exported."""
    if one is None or one == {} or one == []:
        return other == {None: "", str({}): "{}", str([]): "[]"}[one if one is None else str(one)]
    if isinstance(one, str) and isinstance(other, str):
        return one == other or other.endswith(CUT)
    # dump shows large integers as text, and floats without a fraction as integers.
    try:
        return type(one) is type(other) is bool and one == other or float(one) == float(other)
    except ValueError:
        return False


def order(event):
    return event["time"], -1 if event["cpu"] is None else event["cpu"], event["provider"]


def check(args, file):
    trace, result = args.out / f"{file.stem}.fxt", args.out / f"{file.stem}.imported.nettrace"
    for command in (["export", "--to", "fxt", "--processes", "--account", file, "-o", trace],
                    ["import", "--from", "fxt", trace, "-o", result], ["verify", result]):
        subprocess.run([args.nettrace, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours, theirs = ([event for event in commands.dump(args.nettrace, each, "--processes", "--account")] for each in (file, result))
    if not any(event["provider"] == "Universal.System" for event in ours):
        theirs = [event for event in theirs if event["provider"] != "Universal.System"]
    found = [f"{len(ours)} events became {len(theirs)}"] if len(ours) != len(theirs) else []
    lost = [commands.info(args.nettrace, each)["lost"] for each in (file, result)]
    if lost[0] != lost[1]:
        found.append(f"{lost[0]} lost events became {lost[1]}")
    for number, (one, other) in enumerate(zip(sorted(ours, key=order), sorted(theirs, key=order)), 1):
        found += [f"event {number}: {text}" for text in differences(one, other)]
    print(f"{file.name}: {len(ours)} events, {len(found)} differences")
    for text in found[:20]:
        print(f"  {text[:400]}")
    return not found


def differences(one, other):
    for key in SAME:
        if one[key] != other[key]:
            yield f"{key}: {one[key]} became {other[key]}"
    for key in ("pid", "tid"):
        if (one[key] or None) != other[key]:
            yield f"{key}: {one[key]} became {other[key]}"
    # A Fuchsia trace has names only for thread ids, so the name of a thread without an id is lost.
    if one["tid"] and one["thread"] != other["thread"]:
        yield f"thread: {one['thread']} became {other['thread']}"
    payload = dict(other["payload"])
    if "error" in one:
        if payload.pop("error", None) != one["error"]:
            yield f"error: {one['error']} became another one, or is missing"
    wanted = list(leaves(one["payload"], "")) if one["payload"] else []
    # If JSON has a field twice, Python keeps its last value. Fields for which a record has no room are in the text `more`.
    if "more" not in payload and len(dict(wanted)) != len(payload):
        yield f"{one['payload']} became {payload}"
    for name, value in dict(wanted).items():
        if name in payload and not same(value, payload[name]):
            yield f"{name}: {value!r} became {payload[name]!r}"


def main():
    args = script.parser(__doc__, "nettrace", "generate", "random", "out").parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    usage = subprocess.run([args.nettrace, "export", "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    if "fxt" not in usage:
        raise script.Skipped("nettrace export does not write fxt")
    subprocess.run([args.generate, args.out], check=True)
    subprocess.run([args.random, args.out, "100", *map(str, SEEDS)], check=True)
    return all([check(args, args.out / f"{name}.nettrace") for name in (*FILES, *(f"random-{seed}" for seed in SEEDS))])


if __name__ == "__main__":
    script.main(main)
