// Dates and times in the V6 encoding: year, month, day of the week (0: Sunday), day, hour, minute,
// second and millisecond in UTC, each an Int16.
#ifndef LIBNETTRACE_WRITER_CORE_DATE_TIME_H_
#define LIBNETTRACE_WRITER_CORE_DATE_TIME_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "libnettrace-writer/core/byte_reader.h"

namespace nettrace::internal {

using DateTime = std::array<std::int16_t, 8>;

DateTime ReadDateTime(ByteReader* reader);

// Returns whether all values are in their ranges. Years are 1 to 9999, as in .NET. The day of the
// week is ignored.
bool IsValid(const DateTime& value);

// Converts to a time. Values out of range carry over: the 32nd of a month is a day of the next
// month.
absl::Time ToTime(const DateTime& value);

// Converts a time, rounded down to milliseconds. If its year is out of range, IsValid returns false
// for the result.
DateTime FromTime(absl::Time time);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_DATE_TIME_H_
