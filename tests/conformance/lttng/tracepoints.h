// Tracepoints of LTTng with fields of every type of lttng-ust(3). LTTng's headers include this file
// several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER conformance

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/conformance/lttng/tracepoints.h"

#if !defined(TESTS_CONFORMANCE_LTTNG_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TESTS_CONFORMANCE_LTTNG_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

// clang-format cannot format lists without commas.
// clang-format off

LTTNG_UST_TRACEPOINT_EVENT(conformance, integers,
  LTTNG_UST_TP_ARGS(uint64_t, value),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int8_t, i8, (int8_t)value)
    lttng_ust_field_integer(uint8_t, u8, (uint8_t)value)
    lttng_ust_field_integer(int16_t, i16, (int16_t)value)
    lttng_ust_field_integer(uint16_t, u16, (uint16_t)value)
    lttng_ust_field_integer(int32_t, i32, (int32_t)value)
    lttng_ust_field_integer(uint32_t, u32, (uint32_t)value)
    lttng_ust_field_integer(int64_t, i64, (int64_t)value)
    lttng_ust_field_integer(uint64_t, u64, value)
    lttng_ust_field_integer_hex(uint32_t, hex, (uint32_t)value)
    lttng_ust_field_integer_network(uint16_t, port, (uint16_t)value)
    lttng_ust_field_integer_network_hex(uint32_t, address, (uint32_t)value)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(conformance, integers, LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT)

LTTNG_UST_TRACEPOINT_EVENT(conformance, floats,
  LTTNG_UST_TP_ARGS(double, value),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_float(float, single, (float)value)
    lttng_ust_field_float(double, twice, value)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(conformance, floats, LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR)

LTTNG_UST_TRACEPOINT_EVENT(conformance, texts,
  LTTNG_UST_TP_ARGS(const char*, text, const char*, padded, size_t, length),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_string(text, text)
    lttng_ust_field_array_text(char, padded, padded, 16)
    lttng_ust_field_sequence_text(char, part, text, size_t, length)
    lttng_ust_field_string(_underscore, text)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(conformance, texts, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)

LTTNG_UST_TRACEPOINT_EVENT(conformance, arrays,
  LTTNG_UST_TP_ARGS(const int8_t*, bytes, const int32_t*, words, const uint64_t*, longs, size_t, count),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_array(int8_t, three, bytes, 3)
    lttng_ust_field_array_hex(uint64_t, two, longs, 2)
    lttng_ust_field_array_network(int32_t, network, words, 2)
    lttng_ust_field_sequence(int8_t, bytes, bytes, uint8_t, count)
    lttng_ust_field_sequence(int32_t, words, words, uint16_t, count)
    lttng_ust_field_sequence_hex(uint64_t, longs, longs, size_t, count)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(conformance, arrays, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)

LTTNG_UST_TRACEPOINT_ENUM(conformance, state,
  LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_value("BROKEN", -1)
    lttng_ust_field_enum_value("idle", 0)
    lttng_ust_field_enum_value("has space", 1)
    lttng_ust_field_enum_range("MANY", 2, 90)))

LTTNG_UST_TRACEPOINT_EVENT(conformance, states,
  LTTNG_UST_TP_ARGS(int, value),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_enum(conformance, state, int8_t, small, (int8_t)value)
    lttng_ust_field_enum(conformance, state, int64_t, large, value)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(conformance, states, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)

LTTNG_UST_TRACEPOINT_EVENT(conformance, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(conformance, flood,
  LTTNG_UST_TP_ARGS(uint32_t, number),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, number, number)))

LTTNG_UST_TRACEPOINT_EVENT(conformance, large,
  LTTNG_UST_TP_ARGS(const int8_t*, bytes, size_t, count),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_sequence(int8_t, bytes, bytes, size_t, count)))

// Defines more kinds of events than an id of 5 bits can distinguish, so that LTTng uses longer ids.
LTTNG_UST_TRACEPOINT_EVENT_CLASS(conformance, numbered,
  LTTNG_UST_TP_ARGS(int, value),
  LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, value, value)))

#define CONFORMANCE_NUMBERED(X)                                                                   \
  X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) \
  X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) X(40) X(41)

#define CONFORMANCE_INSTANCE(number)                                                         \
  LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(conformance, numbered, conformance, numbered_##number, \
                                      LTTNG_UST_TP_ARGS(int, value))
CONFORMANCE_NUMBERED(CONFORMANCE_INSTANCE)

// clang-format on

#endif

#include <lttng/tracepoint-event.h>
