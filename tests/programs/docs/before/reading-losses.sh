#!/bin/bash
# A Makefile for `make`, and a recording that was killed.
printf 'all:\n\t@dd if=/dev/zero of=/dev/null bs=1 count=50000 2>/dev/null\n' >Makefile
nettrace record -o killed.nettrace -e sched:sched_switch 2>/dev/null &
until [ -s killed.nettrace ]; do sleep 0.1; done
sleep 1.5
kill -KILL $!
wait $! || true
