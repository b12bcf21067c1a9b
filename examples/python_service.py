#!/usr/bin/python3
"""A service in Python, whose requests and log lines are events.

  nettrace record -o log.nettrace -e ExamplePython_L4K1 -e ExamplePython_L2K1 -- examples/python_service.py --requests 6
  nettrace dump log.nettrace

Needs the package python3-eventheader.
"""

import argparse
import logging

import eventheader

provider = eventheader.Provider("ExamplePython")
request_start = provider.event("Request", opcode=eventheader.Opcode.START)
request_stop = provider.event("Request", opcode=eventheader.Opcode.STOP)

logger = logging.getLogger("shop")


def handle(number):
    """Answers a request. Its events, and the lines that it logs, belong to one activity."""
    with eventheader.Activity():
        request_start(path=f"/items/{number}", number=number)
        status = 200 if number % 3 else 404
        if status == 404:
            logger.error("no item %d", number, extra={"status": status})
        request_stop(status=status, sizes=[100 * number, 7])


def main():
    parser = argparse.ArgumentParser(description="Handles N requests (6), and writes events of provider ExamplePython.")
    parser.add_argument("--requests", type=int, default=6, metavar="N")
    requests = parser.parse_args().requests
    events = eventheader.Handler(provider)
    logger.addHandler(events)
    for number in range(requests):
        # Makes the logger skip records that no collector needs. A service would call this once a second.
        events.update_level(logger)
        handle(number)
    counters = provider.counters
    print(f"{counters.written} events written, {counters.too_big + counters.invalid} refused, {counters.failed} failed; "
          f"{provider.status_text}")


if __name__ == "__main__":
    main()
