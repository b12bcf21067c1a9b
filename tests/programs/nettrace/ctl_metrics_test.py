#!/usr/bin/python3
"""Tests that Prometheus' own OpenMetrics parser reads the metrics."""

from support import control
from support import script

ARGS = script.options(__doc__, "nettrace", "server")


def check():
    try:
        from prometheus_client.openmetrics import parser  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise script.Skipped("python3-prometheus-client is not installed") from error
    with control.serving(ARGS.server) as path:
        text = control.Control(ARGS.nettrace, path)("metrics")
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}

    def values(name, **labels):
        return {tuple(v for k, v in sample.labels.items() if k not in labels): sample.value
                for sample in families["nettraced_session_" + name].samples if labels.items() <= sample.labels.items()}

    assert values("events") == {("box",): 0, ("web",): 1234567}
    assert families["nettraced_session_events"].type == "counter"
    assert families["nettraced_session_written_bytes"].unit == "bytes"
    assert values("state", session="web") == {("running",): 0, ("suspended",): 1, ("failed",): 0, ("stopped",): 0}
    losses = values("largest_losses", session="web")
    assert len(losses) == 21 and sum(losses.values()) == 5000, f"expected 21 rows with a sum of 5000: {losses}"
    # The name of the tracepoint has control characters. It is escaped as in the other outputs of `nettrace ctl`.
    assert losses[("39", '\\u001b[2J\\u202e\ufffd\\u000a"x\\')] == 40, losses
    assert losses[("7", "")] == 1000, losses

    def of_services(name):
        return {sample.labels.get("reason"): sample.value for sample in families["nettraced_services_" + name].samples}

    assert of_services("connected") == {None: 2}
    assert of_services("events") == {None: 1234567}
    assert of_services("lost_events") == {"ringFull": 4999, "signalHandler": 1}
    assert of_services("refused_connections") == {"badRegion": 12}
    assert of_services("corrupt_records") == {None: 0}
    assert families["nettraced_services_lost_events"].type == "counter"
    assert families["nettraced_services_ring_bytes"].unit == "bytes"
    assert all(family.documentation for family in families.values())
    return True


if __name__ == "__main__":
    script.main(check)
