#include "tools/nettrace/report/report_page.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/base/quantities.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/text_output.h"
#include "tools/base/values.h"
#include "tools/nettrace/report/html.h"
#include "tools/nettrace/report/page.h"
#include "tools/nettrace/report/stack_page.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/levels.h"
#include "tools/trace/unknown_end.h"

namespace tools::report {
namespace {

using Column = HtmlTable::Column;

constexpr std::size_t kTableRows = 200;     // maximum rows of a table; see Caption
constexpr std::size_t kTimeRows = 24;       // rows of the table of events over time
constexpr std::size_t kLanes = 100;         // threads that the timeline shows
constexpr std::size_t kColours = 8;         // series in the chart; the last may be "(others)"
constexpr std::size_t kMaxKeys = 100;       // key-value pairs of the file that are shown
constexpr std::uint64_t kFewEvents = 1000;  // events that are needed to judge rates and durations
constexpr std::size_t kMaxBars = 256;       // buckets of each histogram of durations
constexpr std::size_t kMaxNotices = 5;      // damaged files that the notices name one by one

// Maximum bytes by which single events enlarge the rest of the page, because sentences become
// longer and tables get counts. kTextBytes is for the whole page, and kBytesOfRow for each kind,
// process and thread.
constexpr std::size_t kTextBytes = 16384;
constexpr std::size_t kBytesOfRow = 128;
// Maximum bytes of an activity of a tree in the JSON of the page.
constexpr std::size_t kBytesOfNode = 192;

// A sink that counts the bytes of a page and discards them.
class CountingSink : public nettrace::Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    bytes_ += * taken = bytes.size();
    return absl::OkStatus();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

// Returns the indices of `rows`, in descending order of the result of `size`.
template <typename Row, typename Size>
std::vector<std::size_t> Largest(const std::vector<Row>& rows, const Size& size) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&rows, &size](std::size_t a, std::size_t b) {
    return size(rows[a]) > size(rows[b]);
  });
  return order;
}

template <typename Row>
std::vector<std::size_t> ByEvents(const std::vector<Row>& rows) {
  return Largest(rows, [](const Row& row) { return row.events; });
}

std::string Id(const std::optional<std::uint64_t>& id) { return id ? absl::StrCat(*id) : "?"; }

class Page {
 public:
  Page(const nettrace::Reader& reader, const ReportModel& model, const ReportFacts& facts,
       nettrace::Sink* sink)
      : reader_(reader), model_(model), facts_(facts), output_(sink) {
    CountKept();
  }

  absl::Status Write();

 private:
  absl::Status WriteSlot(std::string_view slot);
  std::string Time(std::uint64_t ticks) const { return base::FormatUtc(reader_.TimeOf(ticks)); }
  std::uint64_t Nanoseconds(std::uint64_t from, std::uint64_t to) const;
  std::uint64_t TicksPerSecond() const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, reader_.trace().ticks_per_second));
  }
  // Returns the ticks from the start of the file to `time`. A time outside of the file is limited
  // to its start or end.
  std::uint64_t TicksSinceStart(absl::Time time) const;
  // Counts the events that the page shows one by one, by kind, process and thread.
  void CountKept();
  std::string ShownText() const;
  // Returns sentences that state how many notable events, such as errors, the page shows.
  std::string NotableText() const;
  // Returns a sentence that states which activities the page shows; "" if it shows all activities.
  std::string ActivitiesText() const;
  // Returns the activities of the page besides those with a tree.
  std::vector<Activity> OtherActivities() const;
  // Returns a table's caption. It states the number of rows, `all`, if the table does not show all
  // rows.
  std::string Caption(std::string_view what, std::size_t all) const;
  // Returns the file or the files as the object of a sentence.
  const char* Whole() const { return facts_.files.empty() ? "the file" : "the files"; }
  // Returns the beginning of a sentence about the file or the files.
  const char* FileHas() const { return facts_.files.empty() ? "The file has" : "The files have"; }

  std::string HostName(std::size_t host) const { return ShortName(model_.hosts().TextOf(host)); }
  // Returns the pid of a process, with its host if that is stated.
  std::string ProcessId(const Process& process) const;

  // The following functions return HTML.
  std::string Notices() const;
  // Returns sentences that state the number of events and their time.
  std::string Extent() const;
  std::string Findings() const;
  std::string Summary() const;
  std::string FileTable() const;
  std::string OverTime() const;
  std::string Losses() const;
  std::string AccountTables() const;
  std::string DurationTable() const;
  std::string KindTable() const;
  std::string ProcessTable() const;
  std::string ThreadTable() const;

  // The following functions write JSON, one member at a time, so that only one member is in memory.
  absl::Status WriteData();
  absl::Status WriteMember(const char* key, const std::function<void(base::JsonWriter*)>& put);
  absl::Status WriteSingleEvents();
  void PutTimes(base::JsonWriter* json, const EventSums& sums) const;
  void PutCounts(base::JsonWriter* json, std::span<const std::uint64_t> counts) const;
  void PutBuckets(base::JsonWriter* json, const TimeBuckets& buckets) const;
  // Writes the time that the page shows first; null if it is the whole time.
  void PutWindow(base::JsonWriter* json) const;
  // Counts over time with a name, and their sum.
  struct Series {
    std::string name;
    std::vector<std::uint64_t> counts;
    std::uint64_t events = 0;
  };
  void PutSeries(base::JsonWriter* json, std::vector<Series> all) const;
  void PutOverTime(base::JsonWriter* json) const;
  void PutKindsOverTime(base::JsonWriter* json) const;
  void PutLanes(base::JsonWriter* json) const;
  void PutKinds(base::JsonWriter* json) const;
  void PutHosts(base::JsonWriter* json) const;
  void PutProcesses(base::JsonWriter* json) const;
  void PutThreads(base::JsonWriter* json) const;
  void PutActivities(base::JsonWriter* json) const;
  void PutTrees(base::JsonWriter* json) const;
  void PutDurations(base::JsonWriter* json) const;

  const nettrace::Reader& reader_;
  const ReportModel& model_;
  const ReportFacts& facts_;
  base::TextOutput output_;
  bool first_member_ = true;
  std::vector<const SingleEvent*> kept_;  // single events, in order of time
  // Numbers of single events, by the rows of the model.
  std::vector<std::uint64_t> kept_of_kind_;
  std::vector<std::uint64_t> kept_of_process_;
  std::vector<std::uint64_t> kept_of_thread_;
};

// Adds a cell that states how many of a row's events are on the page.
void PutKept(HtmlTable* table, std::uint64_t kept, std::uint64_t events) {
  table->Number(kept, kept == events ? "all" : base::FormatGrouped(kept));
}

absl::Status Page::Write() {
  for (const PagePart& part : kPageParts) {
    RETURN_IF_ERROR(output_.Write(part.text));
    RETURN_IF_ERROR(WriteSlot(part.slot));
  }
  return output_.Flush();
}

absl::Status Page::WriteSlot(std::string_view slot) {
  if (slot == "name") return output_.Write(HtmlText(facts_.name));
  if (slot == "notices") return output_.Write(Notices());
  if (slot == "findings") return output_.Write(Findings());
  if (slot == "summary") return output_.Write(Summary());
  if (slot == "over-time") return output_.Write(OverTime());
  if (slot == "losses") return output_.Write(Losses());
  if (slot == "shown") return output_.Write(HtmlText(ShownText()));
  if (slot == "stacks-hidden") return output_.Write(facts_.stacks.views.empty() ? "hidden" : "");
  if (slot == "stack-notes") return output_.Write(StackNotes(facts_.stacks));
  if (slot == "stack-tables") return output_.Write(StackTables(facts_.stacks, model_.kinds()));
  if (slot == "durations") return output_.Write(DurationTable());
  if (slot == "kinds") return output_.Write(KindTable());
  if (slot == "processes") return output_.Write(ProcessTable());
  if (slot == "threads") return output_.Write(ThreadTable());
  if (slot == "data") return WriteData();
  return absl::OkStatus();  // the last part of the page has no slot after its text
}

std::uint64_t Page::Nanoseconds(std::uint64_t from, std::uint64_t to) const {
  const absl::Duration duration = reader_.TimeOf(to) - reader_.TimeOf(from);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, absl::ToInt64Nanoseconds(duration)));
}

void Page::CountKept() {
  kept_ = model_.single_events().InOrder();
  kept_of_kind_.resize(model_.kinds().size());
  kept_of_thread_.resize(model_.threads().size());
  kept_of_process_.resize(model_.processes().size());
  for (const SingleEvent* event : kept_) {
    ++kept_of_kind_[event->kind];
    ++kept_of_thread_[event->thread];
    if (const auto& process = model_.threads()[event->thread].process) ++kept_of_process_[*process];
  }
}

std::string Page::ShownText() const {
  const Window& window = model_.window();
  const std::uint64_t all = model_.all().events;
  const bool has_window = window.from || window.until;
  if (!has_window && kept_.size() == all) {
    return all == 0   ? absl::StrCat(FileHas(), " no selected events.")
           : all == 1 ? "The only event is in this page."
                      : absl::StrCat("All ", base::FormatGrouped(all), " events are in this page.");
  }
  std::string span;
  if (window.from) absl::StrAppend(&span, " from ", base::FormatUtc(*window.from));
  if (window.until) absl::StrAppend(&span, " until ", base::FormatUtc(*window.until));
  const std::uint64_t offered = has_window ? model_.in_window() : all;
  if (has_window && kept_.size() == offered) {
    return absl::StrCat("All ", base::FormatGrouped(offered), " events", span,
                        " are in this page. ", FileHas(), " ", base::FormatGrouped(all),
                        ", and all totals include them.");
  }
  std::string text =
      absl::StrCat(base::FormatGrouped(kept_.size()), " of ", base::FormatGrouped(offered),
                   " events", span, " are in this page. ");
  if (has_window) {
    absl::StrAppend(&text, base::FormatGrouped(offered - kept_.size()),
                    " are left out, because the page would be too large. ");
  }
  absl::StrAppend(&text, NotableText());
  std::size_t complete = 0;
  for (std::size_t i = 0; i < kept_of_kind_.size(); ++i) {
    if (kept_of_kind_[i] == model_.kinds()[i].events) ++complete;
  }
  if (complete != 0) {
    absl::StrAppend(&text, base::Counted(complete, "kind"), complete == 1 ? " is" : " are",
                    " complete. ");
  }
  absl::StrAppend(&text,
                  "Each other kind has an even sample. The tables below state the numbers. "
                  "All totals include all events. The options --size, --since, --until and the "
                  "filters of nettrace report show more.");
  return text;
}

std::uint64_t Page::TicksSinceStart(absl::Time time) const {
  const std::uint64_t last = model_.end() - model_.start();
  const double ticks = absl::ToDoubleSeconds(time - reader_.TimeOf(model_.start())) *
                       static_cast<double>(TicksPerSecond());
  if (!(ticks > 0)) return 0;
  return ticks < static_cast<double>(last) ? static_cast<std::uint64_t>(ticks) : last;
}

void Page::PutWindow(base::JsonWriter* json) const {
  const Window& window = model_.window();
  if (!window.from && !window.until) {
    json->Null();
    return;
  }
  json->StartObject();
  base::PutNumber(json, "from", window.from ? TicksSinceStart(*window.from) : 0);
  base::PutNumber(json, "until",
                  window.until ? TicksSinceStart(*window.until) : model_.end() - model_.start());
  json->EndObject();
}

std::string Page::NotableText() const {
  const SingleEvents& singles = model_.single_events();
  std::uint64_t errors = 0;
  for (const Kind& kind : model_.kinds()) errors += kind.errors();
  std::uint64_t offered = 0;
  for (const auto& [kind, group] : singles.groups(Reason::kError)) offered += group.offered;
  // Counts all errors in the page, because some are there for another reason than Reason::kError.
  const auto kept = static_cast<std::uint64_t>(std::count_if(
      kept_.begin(), kept_.end(), [](const SingleEvent* event) { return event->is_error; }));
  std::string text;
  if (errors == 0) {
    text = "No event has level 1 or 2 (critical, error). ";
  } else {
    absl::StrAppend(&text, "Level 1 and 2 (critical, error): ",
                    kept == offered ? "all " : base::FormatGrouped(kept) + " of ",
                    base::FormatGrouped(offered), kept == offered ? "" : ", evenly by kind", ". ");
  }
  std::size_t complete = 0;
  for (const auto& [rank, group] : singles.groups(Reason::kActivity)) complete += group.every == 1;
  if (complete != 0) {
    absl::StrAppend(&text, "All events inside of ", base::FormatGrouped(complete),
                    complete == 1 ? " slow or typical activity. "
                                  : " activities: the slowest and a typical one of each kind. ");
  }
  if (!model_.places().empty()) {
    absl::StrAppend(&text, "The ", kNeighbors, " events on each side of ",
                    base::Counted(model_.places().size(), "place"), " with losses. ");
  }
  if (model_.ends() != 0) {
    absl::StrAppend(&text, "The ", kNeighbors, " events on each side of ",
                    base::Counted(model_.ends(), "time"), " at which a finding begins or ends. ");
  }
  if (model_.interests() != 0) {
    absl::StrAppend(&text, "A sample of ", base::Counted(model_.interests(), "time"),
                    model_.interests() == 1 ? " that stands out. " : " that stand out. ");
  }
  return text;
}

std::string Page::ActivitiesText() const {
  std::uint64_t all = model_.activities().offered();
  for (const Durations& row : model_.durations()) all += row.slowest.size();
  const std::size_t shown = model_.complete().size() + OtherActivities().size();
  if (shown == all) return "";
  return absl::StrCat(base::FormatGrouped(shown), " of ", base::FormatGrouped(all),
                      " activities are shown: the ", kSlowest,
                      " slowest and a typical one of each kind, and one in ",
                      base::FormatGrouped(model_.activities().every()), " of the others.");
}

std::vector<Activity> Page::OtherActivities() const {
  std::vector<Activity> others;
  model_.activities().ForEach([&](const Activity& activity) {
    const bool is_complete = std::any_of(
        model_.complete().begin(), model_.complete().end(), [&](const CompleteActivity& complete) {
          return complete.is_typical && complete.activity.begin == activity.begin &&
                 complete.activity.end == activity.end && complete.activity.id == activity.id;
        });
    if (!is_complete) others.push_back(activity);
  });
  return others;
}

std::string Page::Caption(std::string_view what, std::size_t all) const {
  if (all <= kTableRows) return std::string(what);
  return absl::StrCat(std::string(what), ": the largest ", kTableRows, " of ",
                      base::FormatGrouped(all));
}

std::string Page::Notices() const {
  std::string html;
  const auto add = [&html](std::string_view text) {
    absl::StrAppend(&html, "<p class=\"notice\">", HtmlText(text), "</p>\n");
  };
  if (!facts_.damage.empty()) {
    add(absl::StrCat("The file is truncated or damaged: ", facts_.damage,
                     ". This page shows everything before the damage."));
  }
  std::size_t damaged = 0;
  for (const ReportFacts::File& file : facts_.files) {
    if (file.damage.empty() || ++damaged > kMaxNotices) continue;
    add(absl::StrCat(ShortName(file.name), " is truncated or damaged: ", file.damage,
                     ". This page shows everything before the damage."));
  }
  if (damaged > kMaxNotices) {
    add(absl::StrCat(base::Counted(damaged - kMaxNotices, "more file"),
                     damaged - kMaxNotices == 1 ? " is" : " are",
                     " truncated or damaged: see Files."));
  }
  if (model_.lost() != 0) {
    add(absl::StrCat(base::FormatGrouped(model_.lost()),
                     model_.lost() == 1 ? " event was" : " events were", " lost: see Losses."));
  }
  if (const auto& unknown = facts_.account.unknown()) {
    add(absl::StrCat("Losses are unknown ", trace::UnknownText(*unknown), "."));
  }
  if (const std::size_t services = facts_.account.unknown_services().size(); services != 0) {
    add(absl::StrCat(
        "Losses of ",
        base::Counted(services + facts_.account.unknown_services_left_out(), "service"),
        " are unknown, the first: ",
        trace::UnknownServiceText(facts_.account.unknown_services().front()), "."));
  }
  if (!facts_.chosen.empty()) {
    add(absl::StrCat("Only some events were selected by the options: ", facts_.chosen,
                     ". Losses are not filtered; they are those of ",
                     facts_.files.empty() ? "the whole file." : "all files."));
  }
  return html;
}

std::string Page::Extent() const {
  const EventSums& all = model_.all();
  if (all.events == 0) return "There are no events. Times are in UTC.";
  return absl::StrCat(
      base::FormatGrouped(all.events), all.events == 1 ? " event" : " events", " in ",
      base::FormatDuration(Nanoseconds(all.first, all.last)), ", from ",
      absl::FormatTime("%E4Y-%m-%d %H:%M:%S", reader_.TimeOf(all.first), absl::UTCTimeZone()),
      " on. Times are in UTC.");
}

std::string Page::Findings() const {
  if (facts_.findings.empty()) {
    std::string text =
        model_.all().events == 0
            ? "There are no events."
            : "Nothing stands out: no event has level 1 or 2 (critical, error), none is known to "
              "be lost, no process of these events is known to have ended, and no duration, rate "
              "or silence is beyond what chance explains.";
    if (model_.all().events != 0 && model_.all().events < kFewEvents) {
      text += " There are too few events to judge rates and durations.";
    }
    return absl::StrCat("<p>", HtmlText(text), "</p>\n",
                        model_.all().events == 0
                            ? ""
                            : absl::StrCat("<p class=\"note\">", HtmlText(Extent()), "</p>\n"));
  }
  const bool has_share = std::any_of(
      facts_.findings.begin(), facts_.findings.end(),
      [](const Finding& finding) { return finding.topic == Finding::Topic::kErrorShare; });
  std::string html = absl::StrCat(
      "<p class=\"note\">", HtmlText(Extent()), " Each line opens the events behind it.",
      has_share
          ? " An error is an event of level 1 or 2; an activity has an error if such an event "
            "between its start and stop has its id."
          : "",
      "</p>\n<ul class=\"findings\">\n");
  for (const Finding& finding : facts_.findings) {
    std::string address = absl::StrCat("#from=", finding.from - model_.start(),
                                       "&until=", finding.until - model_.start());
    if (finding.kind) absl::StrAppend(&address, "&kind=", *finding.kind);
    if (finding.process) absl::StrAppend(&address, "&process=", *finding.process);
    if (finding.provider) {
      // In the fragment of the page's URL, the index of a provider's first kind of events stands
      // for the provider.
      const auto first = std::find_if(
          model_.kinds().begin(), model_.kinds().end(),
          [&](const Kind& kind) { return kind.provider == model_.providers()[*finding.provider]; });
      if (first != model_.kinds().end()) {
        absl::StrAppend(&address, "&provider=", first - model_.kinds().begin());
      }
    }
    if (finding.activity) absl::StrAppend(&address, "&activity=", *finding.activity);
    if (finding.only_errors) absl::StrAppend(&address, "&level=", int{trace::kLeastError});
    absl::StrAppend(&html, "<li><strong>", HtmlText(TopicName(finding.topic)),
                    "</strong> <a href=\"", HtmlText(address), "\">", HtmlText(finding.text),
                    "</a></li>\n");
  }
  return html + "</ul>\n";
}

std::string Page::Summary() const {
  HtmlTable table("summary-table",
                  absl::StrCat("What ", Whole(), facts_.files.empty() ? " holds" : " hold"),
                  {{"Fact"}, {"Value"}});
  const auto number = [&table](std::string_view name, std::uint64_t value) {
    table.Text(name);
    table.Number(value);
  };
  const auto text = [&table](std::string_view name, std::string_view value) {
    table.Text(name);
    table.Text(value);
  };
  const nettrace::Reader::Stats& stats = reader_.stats();
  const EventSums& all = model_.all();
  number("Events", all.events);
  number("Lost events", model_.lost());
  text("First event", all.events == 0 ? "-" : Time(all.first));
  text("Last event", all.events == 0 ? "-" : Time(all.last));
  table.Text("Time between first and last event");
  table.Duration(Nanoseconds(all.first, all.last));
  number("Providers", model_.providers().size());
  number("Kinds of events", model_.kinds().size());
  number("Processes with events", model_.processes().size());
  number("Threads with events", model_.threads().size());
  number("Bytes of payloads", model_.payload_bytes());
  if (facts_.files.empty()) {
    number("Bytes of the file, unpacked", stats.bytes);
  } else {
    number("Files", facts_.files.size());
  }
  number("Events that describe processes", facts_.process_events);
  number("Events of the recording's account", facts_.account_events);
  if (const auto& section = facts_.account.section()) {
    text(
        "Continues",
        absl::StrCat("earlier sections with ", base::FormatGrouped(section->events_before),
                     " events and ", base::FormatGrouped(section->lost_before),
                     " lost; this file begins with section ", section->number, ", counted from 0"));
  }
  if (facts_.files.empty()) {
    text("Format",
         absl::StrCat("NetTrace ", reader_.major_version(), ".", reader_.minor_version()));
  }
  text("Clock", absl::StrCat(base::FormatGrouped(static_cast<std::uint64_t>(
                                 std::max<std::int64_t>(0, reader_.trace().ticks_per_second))),
                             " ticks a second"));
  text("Complete", facts_.is_complete     ? "yes"
                   : facts_.files.empty() ? "no: the end is missing"
                                          : "no: the end of a file is missing");
  std::size_t keys = 0;
  for (const auto& [key, value] : reader_.trace().key_values) {
    if (++keys > kMaxKeys) break;
    text(ShortName(key), ShortName(value));
  }
  return std::move(table).Finish() + FileTable();
}

// Returns the table of the files; "" if there is only one.
std::string Page::FileTable() const {
  if (facts_.files.empty()) return "";
  HtmlTable table("files-table",
                  absl::StrCat("Files", facts_.files.size() > kTableRows
                                            ? absl::StrCat(": the first ", kTableRows, " of ",
                                                           base::FormatGrouped(facts_.files.size()))
                                            : ""),
                  {{"File"}, {"Bytes", Column::kNumber}, {"Read"}});
  for (std::size_t i = 0; i < std::min(facts_.files.size(), kTableRows); ++i) {
    const ReportFacts::File& file = facts_.files[i];
    table.Text(ShortName(file.name));
    table.Number(file.bytes);
    table.Text(file.damage.empty() ? "to its end" : ShortName(file.damage));
  }
  return std::move(table).Finish();
}

// Returns the chart's data as a table for users who cannot see the chart. Several buckets are
// combined in each row.
std::string Page::OverTime() const {
  const TimeBuckets& buckets = model_.over_time();
  HtmlTable table(
      "over-time-table", "Events over time",
      {{"From"}, {"Until"}, {"Events", Column::kNumber}, {"Lost events", Column::kNumber}});
  const std::size_t together = (buckets.size() + kTimeRows - 1) / kTimeRows;
  for (std::size_t i = 0; i < buckets.size(); i += together) {
    const std::size_t end = std::min(i + together, buckets.size());
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    for (std::size_t series = 0; series <= model_.providers().size(); ++series) {
      const auto counts = buckets.counts(series).subspan(i, end - i);
      (series == 0 ? lost : events) +=
          std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    }
    const std::uint64_t start = buckets.start() + buckets.width() * i;
    table.Text(Time(std::max(start, model_.start())));
    table.Text(Time(std::min(buckets.start() + buckets.width() * end - 1, model_.end())));
    table.Number(events);
    table.Number(lost);
  }
  return std::move(table).Finish();
}

std::string Page::Losses() const {
  if (model_.lost() == 0 && facts_.account.lost() == 0) {
    return "<p>No event was lost, according to the numbers of the events in the file.</p>\n";
  }
  HtmlTable table("losses-table", Caption("Lost events, by CPU or thread", model_.losses().size()),
                  {{"CPU or thread"}, {"Lost events", Column::kNumber}});
  std::size_t rows = 0;
  for (const std::size_t i : Largest(model_.losses(), [](const auto& row) { return row.count; })) {
    if (++rows > kTableRows) break;
    table.Text(model_.losses()[i].of);
    table.Number(model_.losses()[i].count);
  }
  return std::move(table).Finish() + AccountTables();
}

// Returns tables of the losses that the collector's account reports; "" if it reports none.
std::string Page::AccountTables() const {
  const trace::AccountSummary& account = facts_.account;
  if (account.lost() == 0) return "";
  const std::vector<std::pair<trace::AccountSummary::Key, std::uint64_t>> losses(
      account.losses().begin(), account.losses().end());
  HtmlTable table("account-table",
                  Caption("Lost events, as counted by the collector", losses.size()),
                  {{"Tracepoint"}, {"CPU"}, {"Lost events", Column::kNumber}});
  std::size_t rows = 0;
  for (const std::size_t i : Largest(losses, [](const auto& row) { return row.second; })) {
    if (++rows > kTableRows) break;
    const auto& [key, count] = losses[i];
    table.Text(key.second.empty() ? "not known" : ShortName(key.second));
    table.Text(key.first == trace::kRingCpu ? "none (ring)" : absl::StrCat(key.first));
    table.Number(count);
  }
  HtmlTable when("intervals-table", Caption("When events were lost", account.intervals().size()),
                 {{"From"}, {"Until"}, {"Lost events", Column::kNumber}});
  rows = 0;
  for (const std::size_t i :
       Largest(account.intervals(), [](const auto& row) { return row.count; })) {
    if (++rows > kTableRows) break;
    const trace::AccountSummary::Interval& interval = account.intervals()[i];
    when.Text(trace::AccountTimeText(interval.from));
    when.Text(trace::AccountTimeText(interval.until));
    when.Number(interval.count);
  }
  return std::move(table).Finish() + std::move(when).Finish();
}

std::string Page::DurationTable() const {
  if (model_.durations().empty()) {
    return "<p>No event begins an activity: none has the opcode start and an activity id.</p>\n";
  }
  HtmlTable table("durations-table", "Durations, from start to stop of one activity id",
                  {{"Event that begins it"},
                   {"Provider"},
                   {"Ended", Column::kNumber},
                   {"In this page", Column::kNumber},
                   {"Not ended", Column::kNumber},
                   {"Least", Column::kNumber},
                   {"Half are below", Column::kNumber},
                   {"90 % are below", Column::kNumber},
                   {"99 % are below", Column::kNumber},
                   {"Most", Column::kNumber}});
  const auto count = [](const Durations& row) { return row.begun; };
  // Number of activities in the page by kind. kept_of_others is the number of those whose kind has
  // no row in durations().
  std::vector<std::uint64_t> kept(model_.kinds().size());
  for (const CompleteActivity& complete : model_.complete()) ++kept[complete.activity.kind];
  for (const Activity& activity : OtherActivities()) ++kept[activity.kind];
  std::uint64_t kept_of_others = std::accumulate(kept.begin(), kept.end(), std::uint64_t{0});
  for (const Durations& row : model_.durations()) {
    if (row.kind) kept_of_others -= kept[*row.kind];
  }
  std::size_t rows = 0;
  for (const std::size_t i : Largest(model_.durations(), count)) {
    if (++rows > kTableRows) break;
    const Durations& row = model_.durations()[i];
    table.Text(row.kind ? model_.kinds()[*row.kind].name : "(others)");
    table.Text(row.kind ? model_.kinds()[*row.kind].provider : "");
    table.Number(row.histogram.count());
    PutKept(&table, row.kind ? kept[*row.kind] : kept_of_others, row.histogram.count());
    table.Number(row.begun - row.histogram.count());
    table.Duration(row.histogram.min());
    for (const unsigned percent : {50, 90, 99}) {
      table.Duration(row.histogram.Percentile(percent));
    }
    table.Duration(row.histogram.max());
  }
  std::string html = std::move(table).Finish();
  if (model_.ends_alone() != 0) {
    absl::StrAppend(&html, "<p>Further activities, which ended and did not begin in ", Whole(),
                    ": ", base::FormatGrouped(model_.ends_alone()), ".</p>\n");
  }
  return html;
}

std::string Page::KindTable() const {
  HtmlTable table("kinds-table", Caption("Events by kind", model_.kinds().size()),
                  {{"Event"},
                   {"Provider"},
                   {"Events", Column::kNumber},
                   {"In this page", Column::kNumber},
                   {"Level 1 or 2", Column::kNumber},
                   {"Bytes of payloads", Column::kNumber},
                   {"First", Column::kText},
                   {"Last", Column::kText}});
  std::size_t rows = 0;
  for (const std::size_t i : ByEvents(model_.kinds())) {
    if (++rows > kTableRows) break;
    const Kind& kind = model_.kinds()[i];
    table.Text(kind.name);
    table.Text(kind.provider);
    table.Number(kind.events);
    PutKept(&table, kept_of_kind_[i], kind.events);
    table.Number(kind.errors());
    table.Number(kind.payload_bytes);
    table.Text(Time(kind.first));
    table.Text(Time(kind.last));
  }
  return std::move(table).Finish();
}

std::string Page::ProcessId(const Process& process) const {
  std::string id = Id(process.pid);
  if (process.host == trace::Hosts::kNone) return id;
  return absl::StrCat(id, " on ", HostName(process.host));
}

std::string Page::ProcessTable() const {
  std::vector<HtmlTable::Heading> columns = {
      {"Process"}, {"Name"}, {"Events", Column::kNumber}, {"In this page", Column::kNumber},
      {"First"},   {"Last"}};
  const bool has_hosts = model_.hosts().size() > 1;
  if (has_hosts) columns.push_back({"Host"});
  HtmlTable table("processes-table", Caption("Events by process", model_.processes().size()),
                  columns);
  std::size_t rows = 0;
  for (const std::size_t i : ByEvents(model_.processes())) {
    if (++rows > kTableRows) break;
    const Process& process = model_.processes()[i];
    table.Text(Id(process.pid));
    table.Text(process.name);
    table.Number(process.events);
    PutKept(&table, kept_of_process_[i], process.events);
    table.Text(Time(process.first));
    table.Text(Time(process.last));
    if (has_hosts) table.Text(HostName(process.host));
  }
  return std::move(table).Finish();
}

std::string Page::ThreadTable() const {
  HtmlTable table("threads-table", Caption("Events by thread", model_.threads().size()),
                  {{"Thread"},
                   {"Name"},
                   {"Process"},
                   {"Events", Column::kNumber},
                   {"In this page", Column::kNumber},
                   {"First"},
                   {"Last"}});
  std::size_t rows = 0;
  for (const std::size_t i : ByEvents(model_.threads())) {
    if (++rows > kTableRows) break;
    const Thread& thread = model_.threads()[i];
    table.Text(Id(thread.tid));
    table.Text(thread.name);
    table.Text(thread.process ? ProcessId(model_.processes()[*thread.process]) : "?");
    table.Number(thread.events);
    PutKept(&table, kept_of_thread_[i], thread.events);
    table.Text(Time(thread.first));
    table.Text(Time(thread.last));
  }
  return std::move(table).Finish();
}

absl::Status Page::WriteMember(const char* key, const std::function<void(base::JsonWriter*)>& put) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  put(&json);
  const std::string_view text(buffer.GetString(), buffer.GetSize());
  const char* const before = first_member_ ? "{" : ",\n";
  first_member_ = false;
  return output_.Write(absl::StrCat(before, "\"", key, "\":", ForScript(base::Printable(text))));
}

void Page::PutTimes(base::JsonWriter* json, const EventSums& sums) const {
  base::PutNumber(json, "events", sums.events);
  base::PutNumber(json, "first", sums.first - model_.start());
  base::PutNumber(json, "last", sums.last - model_.start());
}

void Page::PutCounts(base::JsonWriter* json, std::span<const std::uint64_t> counts) const {
  json->StartArray();
  for (const std::uint64_t count : counts) base::PutInteger(json, count);
  json->EndArray();
}

void Page::PutBuckets(base::JsonWriter* json, const TimeBuckets& buckets) const {
  json->Key("start");
  base::PutInteger(json, buckets.size() == 0
                             ? std::int64_t{0}
                             : static_cast<std::int64_t>(buckets.start() - model_.start()));
  base::PutNumber(json, "width", buckets.width());
}

// Writes the counts of the series with the most events. If there are more than kColours, the last
// one is the sum of all other series.
void Page::PutSeries(base::JsonWriter* json, std::vector<Series> all) const {
  std::stable_sort(all.begin(), all.end(),
                   [](const Series& a, const Series& b) { return a.events > b.events; });
  while (all.size() > kColours) {
    Series& others = all[kColours - 1];
    others.name = "(others)";
    for (std::size_t i = 0; i < others.counts.size(); ++i) others.counts[i] += all.back().counts[i];
    all.pop_back();
  }
  json->StartArray();
  for (const Series& series : all) {
    json->StartObject();
    base::PutText(json, "name", series.name);
    json->Key("counts");
    PutCounts(json, series.counts);
    json->EndObject();
  }
  json->EndArray();
}

void Page::PutOverTime(base::JsonWriter* json) const {
  const TimeBuckets& buckets = model_.over_time();
  json->StartObject();
  PutBuckets(json, buckets);
  json->Key("lost");
  PutCounts(json, buckets.counts(0));
  std::vector<Series> providers;
  for (std::size_t i = 0; i < model_.providers().size(); ++i) {
    const auto counts = buckets.counts(1 + i);
    providers.push_back({model_.providers()[i],
                         {counts.begin(), counts.end()},
                         std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})});
  }
  json->Key("providers");
  PutSeries(json, std::move(providers));
  if (model_.providers().size() == 1) PutKindsOverTime(json);
  json->EndObject();
}

// Writes the counts of the kinds with the most events. The order is that of page.js, which gives
// kinds their colours by number of events.
void Page::PutKindsOverTime(base::JsonWriter* json) const {
  const TimeBuckets& buckets = model_.statistics().rates();
  std::vector<Series> kinds;
  for (std::size_t i = 0; i < model_.kinds().size(); ++i) {
    const auto counts = buckets.counts(i);
    kinds.push_back(
        {model_.kinds()[i].name, {counts.begin(), counts.end()}, model_.kinds()[i].events});
  }
  json->Key("kinds");
  json->StartObject();
  PutBuckets(json, buckets);
  json->Key("series");
  PutSeries(json, std::move(kinds));
  json->EndObject();
}

void Page::PutLanes(base::JsonWriter* json) const {
  json->StartObject();
  PutBuckets(json, model_.of_threads());
  json->Key("lanes");
  json->StartArray();
  std::size_t lanes = 0;
  for (const std::size_t i : ByEvents(model_.threads())) {
    if (++lanes > kLanes) break;
    json->StartObject();
    base::PutNumber(json, "thread", i);
    json->Key("counts");
    PutCounts(json, model_.of_threads().counts(i));
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void Page::PutKinds(base::JsonWriter* json) const {
  json->StartArray();
  for (const Kind& kind : model_.kinds()) {
    json->StartObject();
    base::PutText(json, "provider", kind.provider);
    base::PutText(json, "name", kind.name);
    PutTimes(json, kind);
    base::PutNumber(json, "payloadBytes", kind.payload_bytes);
    base::PutNumber(json, "errors", kind.errors());
    json->EndObject();
  }
  json->EndArray();
}

// Writes the names of the hosts, from number 1 on; null if no host is stated. The last name stands
// for all other hosts.
void Page::PutHosts(base::JsonWriter* json) const {
  if (model_.hosts().size() == 1) {
    json->Null();
    return;
  }
  json->StartArray();
  for (std::size_t host = 1; host < model_.hosts().size(); ++host) {
    base::PutString(json, HostName(host));
  }
  base::PutString(json, HostName(trace::Hosts::kOthers));
  json->EndArray();
}

void Page::PutProcesses(base::JsonWriter* json) const {
  json->StartArray();
  for (const Process& process : model_.processes()) {
    json->StartObject();
    base::PutNumber(json, "pid", process.pid);
    if (process.host != trace::Hosts::kNone) {
      base::PutNumber(json, "host", std::min(process.host, model_.hosts().size()) - 1);
    }
    base::PutText(json, "name", process.name);
    PutTimes(json, process);
    json->EndObject();
  }
  json->EndArray();
}

void Page::PutThreads(base::JsonWriter* json) const {
  json->StartArray();
  for (const Thread& thread : model_.threads()) {
    json->StartObject();
    base::PutNumber(json, "process", thread.process);
    base::PutNumber(json, "tid", thread.tid);
    base::PutText(json, "name", thread.name);
    PutTimes(json, thread);
    json->EndObject();
  }
  json->EndArray();
}

void Page::PutActivities(base::JsonWriter* json) const {
  const auto put = [this, json](const Activity& activity) {
    json->StartObject();
    base::PutNumber(json, "begin", activity.begin - model_.start());
    base::PutNumber(json, "end", activity.end - model_.start());
    base::PutNumber(json, "kind", activity.kind);
    base::PutNumber(json, "thread", activity.thread);
    base::PutText(json, "id", base::FormatGuid(activity.id));
    if (activity.related) base::PutText(json, "related", base::FormatGuid(*activity.related));
    json->EndObject();
  };
  json->StartObject();
  std::uint64_t all = model_.activities().offered();
  for (const Durations& row : model_.durations()) all += row.slowest.size();
  base::PutNumber(json, "of", all);
  base::PutText(json, "how", ActivitiesText());
  json->Key("shown");
  json->StartArray();
  for (const CompleteActivity& complete : model_.complete()) put(complete.activity);
  for (const Activity& activity : OtherActivities()) put(activity);
  json->EndArray();
  json->EndObject();
}

// Writes the trees of complete(), which are the first activities that PutActivities writes, in the
// same order. A node is an array instead of an object, to need fewer bytes.
void Page::PutTrees(base::JsonWriter* json) const {
  json->StartArray();
  for (const CompleteActivity& complete : model_.complete()) {
    json->StartObject();
    json->Key("isTypical");
    json->Bool(complete.is_typical);
    base::PutNumber(json, "inside", complete.events);
    base::PutNumber(json, "leftOut", complete.left_out);
    json->Key("nodes");
    json->StartArray();
    for (const TreeNode& node : complete.nodes) {
      const Activity& activity = node.activity;
      json->StartArray();
      for (const std::uint64_t number :
           {activity.begin - model_.start(), activity.end - model_.start(), node.self, node.waiting,
            node.critical, std::uint64_t{activity.kind}, std::uint64_t{activity.thread},
            std::uint64_t{node.parent}, std::uint64_t{node.has_ended},
            std::uint64_t{node.is_critical}}) {
        base::PutInteger(json, number);
      }
      base::PutString(json, base::FormatGuid(activity.id));
      json->EndArray();
    }
    json->EndArray();
    json->EndObject();
  }
  json->EndArray();
}

// Returns the buckets of the histogram. Joins pairs of adjacent buckets until there are at most
// kMaxBars.
std::vector<trace::DurationHistogram::Bucket> BarsOf(const trace::DurationHistogram& histogram) {
  std::vector<trace::DurationHistogram::Bucket> bars = histogram.Buckets();
  while (bars.size() > kMaxBars) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < bars.size(); from += 2, ++to) {
      bars[to] = bars[from];
      if (from + 1 == bars.size()) continue;
      bars[to].to = bars[from + 1].to;
      bars[to].count += bars[from + 1].count;
    }
    bars.resize(to);
  }
  return bars;
}

void Page::PutDurations(base::JsonWriter* json) const {
  json->StartArray();
  for (const Durations& row : model_.durations()) {
    json->StartObject();
    base::PutNumber(json, "kind", row.kind);
    base::PutNumber(json, "ended", row.histogram.count());
    base::PutNumber(json, "notEnded", row.begun - row.histogram.count());
    base::PutNumber(json, "min", row.histogram.min());
    base::PutNumber(json, "p50", row.histogram.Percentile(50));
    base::PutNumber(json, "p90", row.histogram.Percentile(90));
    base::PutNumber(json, "p99", row.histogram.Percentile(99));
    base::PutNumber(json, "max", row.histogram.max());
    json->Key("buckets");
    json->StartArray();
    for (const trace::DurationHistogram::Bucket& bucket : BarsOf(row.histogram)) {
      json->StartArray();
      for (const std::uint64_t number : {bucket.from, bucket.to, bucket.count}) {
        base::PutInteger(json, number);
      }
      json->EndArray();
    }
    json->EndArray();
    json->EndObject();
  }
  json->EndArray();
}

absl::Status Page::WriteSingleEvents() {
  const char* before = "[\n";
  absl::Status status = output_.Write(",\n\"singleEvents\":");
  for (const SingleEvent* event : kept_) {
    if (!status.ok()) return status;
    status = output_.Write(absl::StrFormat("%s{\"at\":%d,\"kind\":%d,\"thread\":%d,\"event\":%s}",
                                           before, event->ticks - model_.start(), event->kind,
                                           event->thread, event->json));
    before = ",\n";
  }
  if (!status.ok()) return status;
  return output_.Write(kept_.empty() ? "[]}\n" : "]}\n");
}

absl::Status Page::WriteData() {
  const auto put = [this](void (Page::*part)(base::JsonWriter*) const) {
    return [this, part](base::JsonWriter* json) { (this->*part)(json); };
  };
  const auto number = [](std::uint64_t value) {
    return [value](base::JsonWriter* json) { base::PutInteger(json, value); };
  };
  const auto text = [](std::string value) {
    return [value = std::move(value)](base::JsonWriter* json) { base::PutString(json, value); };
  };
  const std::pair<const char*, std::function<void(base::JsonWriter*)>> members[] = {
      {"file", text(facts_.name)},
      {"events", number(model_.all().events)},
      {"lost", number(model_.lost())},
      {"ticksPerSecond", number(TicksPerSecond())},
      {"startTime", text(Time(model_.start()))},
      {"ticks", number(model_.end() - model_.start())},
      {"window", put(&Page::PutWindow)},
      {"overTime", put(&Page::PutOverTime)},
      {"threadsOverTime", put(&Page::PutLanes)},
      {"kinds", put(&Page::PutKinds)},
      {"hosts", put(&Page::PutHosts)},
      {"processes", put(&Page::PutProcesses)},
      {"threads", put(&Page::PutThreads)},
      {"activities", put(&Page::PutActivities)},
      {"trees", put(&Page::PutTrees)},
      {"durations", put(&Page::PutDurations)},
      {"stacks", [this](auto* json) { PutStacks(facts_.stacks, model_.kinds(), json); }},
  };
  for (const auto& [key, put_member] : members) {
    RETURN_IF_ERROR(WriteMember(key, put_member));
  }
  return WriteSingleEvents();
}

}  // namespace

absl::StatusOr<std::size_t> BytesForEvents(const nettrace::Reader& reader, const ReportModel& model,
                                           const ReportFacts& facts, std::uint64_t size) {
  CountingSink sink;
  RETURN_IF_ERROR(WriteReportPage(reader, model, facts, &sink));
  const std::size_t rows = model.kinds().size() + model.processes().size() + model.threads().size();
  const std::uint64_t rest =
      sink.bytes() + kTextBytes + kBytesOfRow * rows + kBytesOfNode * model.NodesAtMost();
  if (rest <= size) return static_cast<std::size_t>(size - rest);
  return absl::ResourceExhaustedError(
      absl::StrCat("the totals and tables of this file need a larger page; use --size ",
                   base::FormatSize((rest / (std::uint64_t{1} << 20) + 1) << 20), " or more"));
}

absl::Status WriteReportPage(const nettrace::Reader& reader, const ReportModel& model,
                             const ReportFacts& facts, nettrace::Sink* sink) {
  return Page(reader, model, facts, sink).Write();
}

}  // namespace tools::report
