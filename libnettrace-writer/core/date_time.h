// Dates and times as V6 has them: year, month, day of the week (Sunday is 0), day, hour, minute,
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

// Years are 1 to 9999, as .NET's; the day of the week is not looked at.
bool IsValid(const DateTime& value);

// Values out of their range are carried over: the 32nd of a month is a day of the next.
absl::Time ToTime(const DateTime& value);

// To the millisecond. Not valid if the year is not.
DateTime FromTime(absl::Time time);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_DATE_TIME_H_
