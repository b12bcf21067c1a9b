/* The event that writer.cc measures: 8 fields, 3 of them strings, by rings or by LTTng. */
#ifndef TESTS_BENCH_RING_EVENTS_H_
#define TESTS_BENCH_RING_EVENTS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 while a collector records the event, else 0. */
int IsRecorded(void);
/* Writes the event `count` times. */
void WriteEvents(int count);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_BENCH_RING_EVENTS_H_ */
