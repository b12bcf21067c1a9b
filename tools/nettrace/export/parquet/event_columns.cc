#include "tools/nettrace/export/parquet/event_columns.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"
#include "tools/trace/key_values.h"
#include "tools/trace/thread_keys.h"

namespace tools::parquet {
namespace {

// Indices of the columns.
enum : std::size_t {
  kTime,
  kProvider,
  kEvent,
  kLevel,
  kKeyword,
  kOpcode,
  kId,
  kVersion,
  kPid,
  kTid,
  kCpu,
  kProcess,
  kThread,
  kUnit,
  kContainer,
  kActivityId,
  kRelatedId,
  kTraceId,
  kSpanId,
  kHost,
};

constexpr std::uint8_t kLossLevel = 3;  // warning
constexpr char kLossProvider[] = "nettrace";
constexpr char kLossEvent[] = "LostEvents";

// Clears the cache if it is full, to bound its memory.
template <typename Cache>
void LimitCache(Cache* cache) {
  constexpr std::size_t kMaxEntries = 16384;
  if (cache->size() >= kMaxEntries) cache->clear();
}

// Add a value, or null if there is none.
void PutText(std::string_view text, ColumnWriter* column) {
  if (text.empty()) return column->Null();
  column->Bytes(text);
}
void PutNumber(std::optional<std::uint64_t> number, ColumnWriter* column) {
  if (!number) return column->Null();
  column->Whole(*number);
}
void PutUuid(const std::optional<nettrace::Guid>& guid, ColumnWriter* column) {
  if (!guid) return column->Null();
  const nettrace::Guid uuid = nettrace::GuidFromUuid(*guid);
  column->Bytes({reinterpret_cast<const char*>(uuid.data()), uuid.size()});
}

void PutNumbers(const nettrace::Event& event, std::uint32_t id, TableWriter* table) {
  table->column(kLevel).Whole(event.level());
  table->column(kKeyword).Whole(event.keywords());
  table->column(kOpcode).Whole(event.opcode());
  table->column(kId).Whole(id);
  table->column(kVersion).Whole(event.version());
}

void PutCpu(const nettrace::Event* event, TableWriter* table) {
  const bool has_cpu = event != nullptr && event->processor != nettrace::kNoProcessor;
  PutNumber(has_cpu ? std::optional<std::uint64_t>(event->processor) : std::nullopt,
            &table->column(kCpu));
}

void PutLabels(const nettrace::Labels& labels, TableWriter* table) {
  PutUuid(labels.activity_id, &table->column(kActivityId));
  PutUuid(labels.related_activity_id, &table->column(kRelatedId));
  PutText(labels.trace_id ? base::FormatHex(*labels.trace_id) : "", &table->column(kTraceId));
  PutText(labels.span_id ? absl::StrCat(absl::Hex(*labels.span_id, absl::kZeroPad16)) : "",
          &table->column(kSpanId));
}

}  // namespace

std::vector<Column> EventColumns::Columns(bool has_host) {
  using Type = ColumnType;
  const auto always = [](const char* name, Type type) {
    return Column{.name = name, .type = type, .is_optional = false, .has_dictionary = true};
  };
  const auto maybe = [](const char* name, Type type) {
    return Column{.name = name, .type = type, .has_dictionary = true};
  };
  // The bounds of random ids would not let readers skip a row group.
  const auto id = [](const char* name, Type type) {
    return Column{.name = name, .type = type, .has_bounds = false};
  };
  std::vector<Column> columns = {
      {.name = "time", .type = Type::kTimestamp, .is_optional = false},
      always("provider", Type::kString),
      always("event", Type::kString),
      always("level", Type::kUint8),
      always("keyword", Type::kUint64),
      always("opcode", Type::kUint8),
      always("id", Type::kUint32),
      always("version", Type::kUint8),
      maybe("pid", Type::kUint64),
      maybe("tid", Type::kUint64),
      maybe("cpu", Type::kUint32),
      maybe("process", Type::kString),
      maybe("thread", Type::kString),
      maybe("unit", Type::kString),
      maybe("container", Type::kString),
      id("activity_id", Type::kUuid),
      id("related_id", Type::kUuid),
      id("trace_id", Type::kString),
      id("span_id", Type::kString),
      maybe("host", Type::kString),
  };
  if (!has_host) columns.pop_back();
  return columns;
}

void EventColumns::PutEvent(const exporting::ExportedEvent& exported, bool has_host,
                            TableWriter* table) {
  const nettrace::Event& event = *exported.event;
  const Row& row = RowOf(*event.metadata);
  PutTime(exported.time, table);
  table->column(kProvider).Bytes(row.provider);
  table->column(kEvent).Bytes(row.name);
  PutNumbers(event, exported.payloads->NotesOf(*event.metadata).id, table);
  PutSource(*event.thread, exported.process, table);
  PutCpu(&event, table);
  PutLabels(*event.labels, table);
  if (has_host) PutText(HostOf(*event.thread), &table->column(kHost));
}

void EventColumns::PutLoss(const trace::Loss& loss, bool has_host, TableWriter* table) {
  PutTime(loss.time, table);
  table->column(kProvider).Bytes(kLossProvider);
  table->column(kEvent).Bytes(kLossEvent);
  table->column(kLevel).Whole(kLossLevel);
  for (const std::size_t column : {kKeyword, kOpcode, kId, kVersion}) {
    table->column(column).Whole(0);
  }
  PutCpu(loss.next, table);
  PutText(SourceOf(*loss.capture_thread).thread, &table->column(kThread));
  // The loss belongs to the host, and not to a process.
  for (const std::size_t column :
       {kPid, kTid, kProcess, kUnit, kContainer, kActivityId, kRelatedId, kTraceId, kSpanId}) {
    table->column(column).Null();
  }
  if (has_host) PutText(HostOf(*loss.capture_thread), &table->column(kHost));
}

void EventColumns::OnRowsEnd() {
  rows_.clear();
  sources_.clear();
}

std::string EventColumns::Remark() const {
  if (clamped_ == 0) return "";
  return absl::StrCat(base::Counted(clamped_, "row"),
                      " with a time before 1677-09-21 or after 2262-04-11, which Parquet cannot "
                      "represent: the nearer limit was written instead");
}

const EventColumns::Row& EventColumns::RowOf(const nettrace::EventMetadata& metadata) {
  LimitCache(&rows_);
  const auto [entry, added] = rows_.try_emplace(&metadata);
  if (added) {
    entry->second = {base::ValidUtf8(metadata.provider),
                     base::ValidUtf8(trace::EventName(metadata))};
  }
  return entry->second;
}

const EventColumns::Source& EventColumns::SourceOf(const nettrace::ThreadInfo& thread) {
  LimitCache(&sources_);
  const auto [entry, added] = sources_.try_emplace(&thread);
  if (!added) return entry->second;
  const auto first = [](std::string_view one, std::string_view other) {
    return base::ValidUtf8(one.empty() ? other : one);
  };
  const nettrace::KeyValues& keys = thread.key_values;
  entry->second = {
      base::ValidUtf8(thread.name.value_or("")),
      first(trace::FindValue(keys, trace::kUserUnitKey), trace::FindValue(keys, trace::kUnitKey)),
      base::ValidUtf8(trace::FindValue(keys, trace::kContainerKey)),
      first(trace::FindValue(keys, nettrace::kKeyHostName),
            trace::FindValue(trace_.key_values, nettrace::kKeyHostName)),
  };
  return entry->second;
}

void EventColumns::PutTime(absl::Time time, TableWriter* table) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t nanoseconds = absl::ToUnixNanos(time);
  if (nanoseconds == Limits::min() || nanoseconds == Limits::max()) ++clamped_;
  table->column(kTime).Whole(static_cast<std::uint64_t>(nanoseconds));
}

void EventColumns::PutSource(const nettrace::ThreadInfo& thread, std::string_view process,
                             TableWriter* table) {
  const Source& source = SourceOf(thread);
  PutNumber(thread.process_id, &table->column(kPid));
  PutNumber(thread.thread_id, &table->column(kTid));
  if (base::IsPrintableAscii(process)) {
    PutText(process, &table->column(kProcess));
  } else {
    PutText(base::ValidUtf8(process), &table->column(kProcess));
  }
  PutText(source.thread, &table->column(kThread));
  PutText(source.unit, &table->column(kUnit));
  PutText(source.container, &table->column(kContainer));
}

}  // namespace tools::parquet
