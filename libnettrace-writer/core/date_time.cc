#include "libnettrace-writer/core/date_time.h"

#include <algorithm>

#include "absl/time/civil_time.h"

namespace nettrace::internal {
namespace {

constexpr int kMinYear = 1;
constexpr int kMaxYear = 9999;

absl::CivilSecond CivilSecondOf(const DateTime& value) {
  return absl::CivilSecond(value[0], value[1], value[3], value[4], value[5], value[6]);
}

}  // namespace

DateTime ReadDateTime(ByteReader* reader) {
  DateTime value;
  for (std::int16_t& part : value) part = reader->Number<std::int16_t>();
  return value;
}

bool IsValid(const DateTime& value) {
  const absl::CivilSecond civil = CivilSecondOf(value);
  return value[0] >= kMinYear && value[0] <= kMaxYear && civil.year() == value[0] &&
         civil.month() == value[1] && civil.day() == value[3] && civil.hour() == value[4] &&
         civil.minute() == value[5] && civil.second() == value[6] && value[7] >= 0 &&
         value[7] < 1000;
}

absl::Time ToTime(const DateTime& value) {
  return absl::FromCivil(CivilSecondOf(value), absl::UTCTimeZone()) + absl::Milliseconds(value[7]);
}

DateTime FromTime(absl::Time time) {
  const auto [civil, subsecond, offset, is_dst, name] = absl::UTCTimeZone().At(time);
  const auto part = [](auto value) { return static_cast<std::int16_t>(value); };
  const auto year = std::clamp<absl::civil_year_t>(civil.year(), kMinYear - 1, kMaxYear + 1);
  const int weekday = (static_cast<int>(absl::GetWeekday(civil)) + 1) % 7;  // absl: Monday is 0
  return {part(year),           part(civil.month()),
          part(weekday),        part(civil.day()),
          part(civil.hour()),   part(civil.minute()),
          part(civil.second()), part(absl::ToInt64Milliseconds(subsecond))};
}

}  // namespace nettrace::internal
