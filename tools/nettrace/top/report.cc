#include "tools/nettrace/top/report.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"
#include "tools/trace/levels.h"

namespace tools::top {
namespace {

void PutMinute(const char* key, const MinuteNumbers& minute, base::JsonWriter* json) {
  const auto time = [&minute](std::uint64_t nanoseconds) {
    return minute.durations == 0 ? std::nullopt : std::optional(nanoseconds);
  };
  json->Key(key);
  json->StartObject();
  base::PutNumber(json, "count", minute.durations);
  base::PutNumber(json, "p50", time(minute.p50));
  base::PutNumber(json, "p99", time(minute.p99));
  json->EndObject();
}

void PutNumbers(const RowNumbers& numbers, base::JsonWriter* json) {
  base::PutNumber(json, "events", numbers.events);
  base::PutNumber(json, "bytes", numbers.bytes);
  base::PutNumber(json, "lost", numbers.lost);
  json->Key("eventsPerSecond");
  base::PutFloat(json, numbers.rate);
  base::PutNumber(json, "errors", numbers.errors);
  json->Key("errorsPerSecond");
  base::PutFloat(json, numbers.error_rate);
  base::PutNumber(json, "level", numbers.level);
  json->Key("durations");
  json->StartObject();
  base::PutNumber(json, "count", numbers.durations);
  const auto time = [&numbers](std::uint64_t nanoseconds) {
    return numbers.durations == 0 ? std::nullopt : std::optional(nanoseconds);
  };
  base::PutNumber(json, "p50", time(numbers.p50));
  base::PutNumber(json, "p99", time(numbers.p99));
  base::PutNumber(json, "max", time(numbers.max));
  PutMinute("lastMinute", numbers.minute, json);
  PutMinute("minuteBefore", numbers.minute_before, json);
  json->Key("p99Ratio");
  if (const std::optional<double> ratio = P99Ratio(numbers)) {
    base::PutFloat(json, *ratio);
  } else {
    json->Null();
  }
  json->EndObject();
}

void PutNames(View view, const RowName& name, base::JsonWriter* json) {
  const auto put_known = [json](const char* key, const std::string& text) {
    json->Key(key);
    if (text.empty()) {
      json->Null();
    } else {
      base::PutString(json, text);
    }
  };
  if (!name.host.empty()) base::PutText(json, "host", name.host);
  switch (view) {
    case View::kProvider:
      base::PutText(json, "provider", name.provider);
      break;
    case View::kEvent:
      base::PutText(json, "provider", name.provider);
      base::PutText(json, "name", name.name);
      break;
    case View::kProcess:
      base::PutNumber(json, "pid", name.pid);
      put_known("process", name.name);
      break;
    case View::kThread:
      base::PutNumber(json, "pid", name.pid);
      base::PutNumber(json, "tid", name.tid);
      put_known("process", name.process);
      put_known("thread", name.name);
      break;
    case View::kCpu:
      base::PutNumber(json, "pid", name.pid);
      base::PutNumber(json, "tid", name.tid);
      put_known("cpu", name.name);
      break;
    case View::kLevel:
      break;  // PutNumbers writes the level
    case View::kFunction:
      base::PutText(json, "function", name.name);
      break;
  }
}

void PutView(const Snapshot& snapshot, View view, base::JsonWriter* json) {
  static constexpr std::array kKeys = {"byProvider", "byEvent", "byProcess", "byThread",
                                       "byCpu",      "byLevel", "byFunction"};
  const SnapshotView& shown = snapshot.of(view);
  json->Key(kKeys[static_cast<std::size_t>(view)]);
  json->StartObject();
  json->Key("rows");
  json->StartArray();
  for (const std::size_t i : CalmOrder().Sort(shown.rows, Column::kEvents, false, true)) {
    json->StartObject();
    PutNames(view, shown.rows[i].name, json);
    PutNumbers(shown.rows[i].numbers, json);
    if (view == View::kFunction) base::PutNumber(json, "self", shown.rows[i].numbers.self);
    json->EndObject();
  }
  json->EndArray();
  json->Key("others");
  if (shown.other_rows == 0) {
    json->Null();
  } else {
    json->StartObject();
    base::PutNumber(json, "rows", shown.other_rows);
    PutNumbers(shown.others, json);
    json->EndObject();
  }
  base::PutNumber(json, "lostUnknown", shown.lost_unknown);
  json->EndObject();
}

}  // namespace

std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse,
                       const TableStyle& style) {
  const SnapshotView& shown = snapshot.of(view);
  const std::string others = OthersTitle(shown);
  const std::string head = absl::AsciiStrToUpper(NameOf(view));
  std::vector<std::string> titles;
  std::size_t width = std::max(head.size(), others.size());
  for (const SnapshotRow& row : shown.rows) {
    titles.push_back(Title(view, row.name, /*with_paths=*/true));
    width = std::max(width, base::WidthOf(titles.back()));
  }
  const std::vector<ColumnFacts> columns = FittingColumns(style.width, column, view);
  width = std::min(width, TitleWidth(style.width, columns));
  std::string text =
      absl::StrCat(TotalsText(snapshot, style.width), "\n", ActivitiesText(snapshot, style.width),
                   "\n", HeadText(head, width, columns, column, ""), "\n");
  const auto append = [&](const std::string& title, const RowNumbers& numbers) {
    const Line line = RowLine(title, width, numbers, columns);
    absl::StrAppend(&text, style.has_colors ? ColoredText(line, trace::kPlainText) : line.text,
                    "\n");
  };
  for (const std::size_t i : CalmOrder().Sort(shown.rows, column, reverse, /*is_exact=*/true)) {
    append(titles[i], shown.rows[i].numbers);
  }
  if (shown.other_rows != 0) append(others, shown.others);
  if (shown.lost_unknown != 0) {
    absl::StrAppendFormat(&text, "lost events that belong to no known row: %d\n",
                          shown.lost_unknown);
  }
  return text;
}

std::string ReportJson(const Snapshot& snapshot, bool is_complete) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  PutNumbers(snapshot.total, &json);
  json.Key("seconds");
  base::PutFloat(&json,
                 snapshot.first ? absl::ToDoubleSeconds(*snapshot.last - *snapshot.first) : 0.0);
  json.Key("firstTime");
  const auto put_time = [&json](const std::optional<absl::Time>& time) {
    if (time) {
      base::PutString(&json, base::FormatUtc(*time));
    } else {
      json.Null();
    }
  };
  put_time(snapshot.first);
  json.Key("lastTime");
  put_time(snapshot.last);
  base::PutNumber(&json, "open", snapshot.open);
  base::PutNumber(&json, "unmatched", snapshot.unmatched);
  base::PutNumber(&json, "forgotten", snapshot.forgotten);
  json.Key("complete");
  json.Bool(is_complete);
  for (const View view : kViews) PutView(snapshot, view, &json);
  json.EndObject();
  return base::Printable(std::string_view(buffer.GetString(), buffer.GetSize()));
}

}  // namespace tools::top
