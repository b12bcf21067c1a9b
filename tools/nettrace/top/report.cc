#include "tools/nettrace/top/report.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/base/quantities.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"

namespace tools::top {
namespace {

void AppendLine(std::string* text, const std::string& title, std::size_t width,
                const RowNumbers& numbers) {
  absl::StrAppend(text, base::Fit(title, width));
  for (const ColumnFacts& facts : kColumns) {
    absl::StrAppendFormat(text, " %*s", facts.width, Cell(numbers, facts));
  }
  *text += '\n';
}

void PutNumbers(const RowNumbers& numbers, base::JsonWriter* json) {
  base::PutNumber(json, "events", numbers.events);
  base::PutNumber(json, "bytes", numbers.bytes);
  base::PutNumber(json, "lost", numbers.lost);
  json->Key("eventsPerSecond");
  base::PutFloat(json, numbers.rate);
  json->Key("durations");
  json->StartObject();
  base::PutNumber(json, "count", numbers.durations);
  const auto time = [&numbers](std::uint64_t nanoseconds) {
    return numbers.durations == 0 ? std::nullopt : std::optional(nanoseconds);
  };
  base::PutNumber(json, "p50", time(numbers.p50));
  base::PutNumber(json, "p99", time(numbers.p99));
  base::PutNumber(json, "max", time(numbers.max));
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
  }
}

void PutView(const Snapshot& snapshot, View view, base::JsonWriter* json) {
  static constexpr std::array kKeys = {"byProvider", "byEvent", "byProcess", "byThread", "byCpu"};
  const SnapshotView& shown = snapshot.of(view);
  json->Key(kKeys[static_cast<std::size_t>(view)]);
  json->StartObject();
  json->Key("rows");
  json->StartArray();
  for (const std::size_t i : CalmOrder().Sort(shown.rows, Column::kEvents, false, true)) {
    json->StartObject();
    PutNames(view, shown.rows[i].name, json);
    PutNumbers(shown.rows[i].numbers, json);
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

std::string TotalsText(const Snapshot& snapshot) {
  const RowNumbers& total = snapshot.total;
  return absl::StrFormat(
      "events %d (%s/s)  bytes %s (%s/s)  lost %d", total.events, FormatRate(total.rate),
      base::FormatNarrowBytes(total.bytes),
      base::FormatNarrowBytes(static_cast<std::uint64_t>(std::llround(snapshot.byte_rate))),
      total.lost);
}

std::string ActivitiesText(const Snapshot& snapshot) {
  const RowNumbers& total = snapshot.total;
  std::string text = absl::StrFormat("activities %d stopped", total.durations);
  if (total.durations != 0) {
    absl::StrAppendFormat(&text, " (p50 %s, p99 %s, max %s)", base::FormatNarrowDuration(total.p50),
                          base::FormatNarrowDuration(total.p99),
                          base::FormatNarrowDuration(total.max));
  }
  absl::StrAppendFormat(&text, ", %d open", snapshot.open);
  if (snapshot.unmatched != 0) {
    absl::StrAppendFormat(&text, ", %d without a start", snapshot.unmatched);
  }
  if (snapshot.forgotten != 0) absl::StrAppendFormat(&text, ", %d forgotten", snapshot.forgotten);
  return text;
}

std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse) {
  const SnapshotView& shown = snapshot.of(view);
  const std::string others = OthersTitle(shown);
  const std::string head = absl::AsciiStrToUpper(NameOf(view));
  std::vector<std::string> titles;
  std::size_t width = std::max(head.size(), others.size());
  for (const SnapshotRow& row : shown.rows) {
    titles.push_back(Title(view, row.name, /*with_paths=*/true));
    width = std::max(width, base::WidthOf(titles.back()));
  }
  std::string text = absl::StrCat(TotalsText(snapshot), "\n", ActivitiesText(snapshot), "\n",
                                  base::Fit(head, width));
  for (const ColumnFacts& facts : kColumns) {
    absl::StrAppendFormat(&text, " %*s", facts.width, facts.head);
  }
  text += '\n';
  for (const std::size_t i : CalmOrder().Sort(shown.rows, column, reverse, /*is_exact=*/true)) {
    AppendLine(&text, titles[i], width, shown.rows[i].numbers);
  }
  if (shown.other_rows != 0) AppendLine(&text, others, width, shown.others);
  if (shown.lost_unknown != 0) {
    absl::StrAppendFormat(&text, "lost of unknown rows: %d\n", shown.lost_unknown);
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
