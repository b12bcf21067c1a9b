#include "tools/nettrace/query/functions.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/nettrace/query/sql_values.h"
#include "tools/trace/duration_histogram.h"

namespace tools::query {
namespace {

constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;

// Calls `function`. SQLite is written in C, so no exception may pass through it.
template <typename Function>
void WithoutThrowing(sqlite3_context* context, const Function& function) {
  try {
    function();
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

void Utc(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  WithoutThrowing(context, [&] {
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
    PutText(context, base::FormatUtc(absl::FromUnixNanos(sqlite3_value_int64(values[0]))));
  });
}

void Nanoseconds(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  WithoutThrowing(context, [&] {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
    if (text == nullptr) return sqlite3_result_null(context);
    const absl::StatusOr<absl::Time> time = base::ParseTime(text);
    if (time.ok()) return PutTime(context, *time);
    const std::string message(time.status().message());
    sqlite3_result_error(context, message.c_str(), static_cast<int>(message.size()));
  });
}

// The state of percentile() for one group.
struct Percentile {
  trace::DurationHistogram values;
  unsigned percent = 0;
};

// The memory that SQLite keeps for the group. SQLite fills it with zeros, so `state` is null at the
// beginning.
struct PercentileSlot {
  Percentile* state;
};

// Returns the slot of the group; null if there is not enough memory. With a size of 0, returns null
// if no row was added.
PercentileSlot* SlotOf(sqlite3_context* context, int size) {
  return static_cast<PercentileSlot*>(sqlite3_aggregate_context(context, size));
}

void AddToPercentile(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  WithoutThrowing(context, [&] {
    const std::int64_t percent = sqlite3_value_int64(values[1]);
    if (sqlite3_value_type(values[1]) != SQLITE_INTEGER || percent < 0 || percent > 100) {
      return sqlite3_result_error(context, "percentile: use a whole number from 0 to 100", -1);
    }
    PercentileSlot* const slot = SlotOf(context, sizeof(PercentileSlot));
    if (slot == nullptr) return sqlite3_result_error_nomem(context);
    if (slot->state == nullptr) slot->state = new Percentile();
    slot->state->percent = static_cast<unsigned>(percent);
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
    const std::int64_t value = sqlite3_value_int64(values[0]);
    slot->state->values.Add(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
  });
}

void FinishPercentile(sqlite3_context* context) {
  PercentileSlot* const slot = SlotOf(context, 0);
  if (slot == nullptr || slot->state == nullptr) return sqlite3_result_null(context);
  const std::unique_ptr<Percentile> percentile(std::exchange(slot->state, nullptr));
  if (percentile->values.count() == 0) return sqlite3_result_null(context);
  PutInteger(context, percentile->values.Percentile(percentile->percent));
}

}  // namespace

int AddFunctions(sqlite3* database) {
  for (const int result :
       {sqlite3_create_function_v2(database, "utc", 1, kFlags, nullptr, Utc, nullptr, nullptr,
                                   nullptr),
        sqlite3_create_function_v2(database, "ns", 1, kFlags, nullptr, Nanoseconds, nullptr,
                                   nullptr, nullptr),
        sqlite3_create_function_v2(database, "percentile", 2, kFlags, nullptr, nullptr,
                                   AddToPercentile, FinishPercentile, nullptr)}) {
    if (result != SQLITE_OK) return result;
  }
  return SQLITE_OK;
}

}  // namespace tools::query
