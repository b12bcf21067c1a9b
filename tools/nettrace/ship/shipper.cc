#include "tools/nettrace/ship/shipper.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "nettrace/format.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/export/export_feed.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/ship/metrics.h"
#include "tools/nettrace/ship/wait.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/event_filter.h"

namespace tools::ship {
namespace {

// Time after which directories are listed again, even if no change was noticed.
constexpr absl::Duration kListAgain = absl::Seconds(10);

void Print(const std::string& message) { absl::FPrintF(stderr, "nettrace ship: %s\n", message); }

std::string HostName() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return base::ValidUtf8(name.data());
}

// Returns whether the file was deleted: it does not exist, but its directory does. If both are
// missing, their file system may only be unmounted.
bool IsDeleted(const std::string& path) {
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) == 0 || errno != ENOENT) return false;
  return stat(path.substr(0, path.rfind('/') + 1).c_str(), &facts) == 0;
}

}  // namespace

// Passes events to LogRequests, and reads the account of the file.
class Shipper::ShipExporter : public exporting::Exporter {
 public:
  // Adds records after the records of the file's events.
  using AddLast = std::function<absl::Status(const ShipExporter&)>;

  ShipExporter(otlp::LogRequests* requests, AddLast add_last)
      : requests_(requests), add_last_(std::move(add_last)) {}

  absl::Status OnEvent(const exporting::ExportedEvent& event) override {
    if (!first_time_) first_time_ = event.time;
    return requests_->OnEvent(event);
  }
  void OnOtherEvent(const nettrace::Event& event) override {
    requests_->OnOtherEvent(event);
    const std::optional<trace::AccountEvent> parsed = trace::ParseAccount(event);
    if (!parsed || parsed->kind != trace::AccountEvent::Kind::kSectionBegan) return;
    account_.Add(*parsed);
    last_section_ = std::max(last_section_, parsed->section);
  }
  absl::Status OnLoss(const trace::Loss& loss) override { return requests_->OnLoss(loss); }
  void OnRowsEnd(bool /*threads_too*/) override { requests_->OnRowsEnd(); }
  absl::Status Finish() override {
    RETURN_IF_ERROR(add_last_(*this));
    return requests_->Finish();
  }

  // Returns the number of the file's first section, with the events and losses before it.
  trace::AccountSummary::Section section() const {
    return account_.section().value_or(trace::AccountSummary::Section());
  }
  std::uint64_t last_section() const { return last_section_; }
  const std::optional<absl::Time>& first_time() const { return first_time_; }

 private:
  otlp::LogRequests* const requests_;
  const AddLast add_last_;
  trace::AccountSummary account_;  // receives only the events SectionBegan
  std::uint64_t last_section_ = 0;
  std::optional<absl::Time> first_time_;  // time of the first event
};

// The sections, events and losses that ShipFile has found in a file.
struct Shipper::FileResult {
  trace::AccountSummary::Section section;  // first section of the file, and the totals before it
  Missing missing;                         // sections and events missing before `section`
  std::uint64_t last_section = 0;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
};

Shipper::Shipper(const ShipOptions& options, const Destination& logs, const Destination& spans,
                 PositionFile* file, Spool* spool)
    : options_(options),
      file_(file),
      spool_(spool),
      logs_(logs.options, ActionsFor(logs, /*are_spans=*/false)),
      spans_(spans.options, ActionsFor(spans, /*are_spans=*/true)) {}

Delivery::Actions Shipper::ActionsFor(const Destination& destination, bool are_spans) {
  HttpClient* const client = destination.client;
  return {.post = [client](std::string_view body) { return client->Post(body); },
          .renew = [client] { return client->ReadHeadersAgain(); },
          .wait =
              [this](absl::Duration duration) {
                PutMetrics(/*now=*/true);
                return Sleep(duration);
              },
          .done =
              [this, are_spans](std::size_t records, std::uint64_t events) {
                return are_spans ? OnSpansDelivered(records) : OnDelivered(records, events);
              },
          .report = Print,
          .now = base::MonotonicNow};
}

absl::Status Shipper::Run() {
  // Sends nothing if the position cannot be saved.
  RETURN_IF_ERROR(file_->Save());
  for (;;) {
    spool_->Watch();
    const absl::StatusOr<bool> shipped = ShipListed();
    if (absl::IsCancelled(shipped.status())) return absl::OkStatus();
    RETURN_IF_ERROR(shipped.status());
    PutMetrics(/*now=*/!*shipped);
    if (*shipped) continue;
    if (options_.once) return absl::OkStatus();
    spool_->Wait(kListAgain);
    if (cli::IsStopRequested()) return absl::OkStatus();
  }
}

absl::StatusOr<bool> Shipper::ShipListed() {
  const Spool::Listing listing = spool_->List();
  ReportProblems(listing);
  RETURN_IF_ERROR(Compare(listing));
  RETURN_IF_ERROR(ShipDeleted());
  bool shipped = false;
  for (const SpoolFile& file : listing.files) {
    if (cli::IsStopRequested()) return absl::CancelledError("stopped by a signal");
    ShippedFile& state = file_->position.files[file.path];
    if (state.is_complete) continue;
    current_ = &state;
    RETURN_IF_ERROR(ShipFile(file));
    shipped |= state.is_complete;
  }
  return shipped;
}

void Shipper::ReportProblems(const Spool::Listing& listing) {
  for (const absl::Status& problem : listing.problems) {
    // Counts the problem only with --once. Without it, the problem may end: for example, a
    // session's directory may appear later.
    if (options_.once) ++counts_.unreadable;
    ReportOnce(std::string(problem.message()));
  }
}

absl::Status Shipper::Compare(const Spool::Listing& listing) {
  std::map<std::string, ShippedFile>& files = file_->position.files;
  const std::map<std::string, ShippedFile> before = files;
  std::set<std::string> listed;
  for (const SpoolFile& file : listing.files) {
    listed.insert(file.path);
    const auto [entry, added] = files.try_emplace(file.path);
    if (!added && entry->second.changed != file.changed) entry->second = {};
    entry->second.changed = file.changed;
  }
  for (auto entry = files.begin(); entry != files.end();) {
    if (listed.contains(entry->first) || !IsDeleted(entry->first)) {
      ++entry;
      continue;
    }
    if (entry->second.is_complete) {
      entry = files.erase(entry);
      continue;
    }
    ++counts_.lost_files;
    Print(absl::StrCat(base::Printable(entry->first),
                       ": was deleted before it was sent; raise the limits of the session "
                       "(keep_files, keep_bytes, keep_age)"));
    const std::string path = (entry++)->first;
    file_->position.Delete(path, FindNameTime(path).series);
  }
  return files == before ? absl::OkStatus() : file_->Save();
}

absl::Status Shipper::ShipFile(const SpoolFile& file) {
  series_ = FindNameTime(file.path).series;
  Progress progress("ship", /*wanted=*/false);
  struct stat facts = {};
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      OpenInput(file.path, &progress, &facts, /*skip_damage=*/true);
  if (absl::IsNotFound(reader.status())) return absl::OkStatus();  // Compare() counts the file
  const bool is_trace =
      !absl::IsInvalidArgument(reader.status()) && !absl::IsUnimplemented(reader.status());
  if (!reader.ok()) {
    ReportOnce(absl::StrCat(base::Printable(file.path), ": ", reader.status().message()));
    if (is_trace) {
      if (options_.once) ++counts_.unreadable;
      return absl::OkStatus();
    }
    ++counts_.damaged_files;
    series_.clear();  // no section of the file is known
    return FinishFile({});
  }
  otlp::LogRequests requests(options_.encoding, (*reader)->trace(), options_.limits,
                             [this](const auto& batch, std::string_view request) {
                               return logs_.Deliver(batch, request);
                             });
  requests.logs().SkipRecords(current_->records);
  MakeSpans(&requests);
  ShipExporter exporter(&requests, [&](const ShipExporter& whole) {
    const absl::Time time = whole.first_time().value_or(absl::FromUnixNanos(file.changed));
    return AddMissing(whole, time, &requests);
  });
  exporter_ = &exporter;
  const absl::Cleanup no_exporter = [this] { exporter_ = nullptr; };
  trace::EventFilter filter;
  filter.processes = filter.account = trace::EventFilter::Added::kHidden;
  ExportFeed feed(filter, trace::PayloadStyle::kForPrograms, *std::move(reader));
  RETURN_IF_ERROR(feed.Run(&exporter));
  FileResult result;
  result.section = exporter.section();
  result.missing = FindMissing(result.section);
  result.last_section = exporter.last_section();
  result.events = feed.events();
  result.lost = feed.lost();
  counts_.incomplete_spans += requests.incomplete_spans();
  const bool is_damaged = !feed.reader().status().ok() || !feed.reader().skipped().empty();
  if (is_damaged) {
    ++counts_.damaged_files;
    Print(absl::StrCat(base::Printable(file.path),
                       ": is truncated or damaged; all readable events were sent"));
  }
  return FinishFile(result);
}

absl::Status Shipper::FinishFile(const FileResult& result) {
  if (!series_.empty()) {
    CountMissing(result.missing);
    file_->position.sections[series_] = {
        result.last_section,
        result.section.events_before + result.section.lost_before + result.events + result.lost};
  }
  current_->is_complete = true;
  ++counts_.files;
  counts_.events += result.events;
  counts_.lost += result.lost;
  return file_->Save();
}

Shipper::Missing Shipper::FindMissing(const trace::AccountSummary::Section& section) const {
  const auto before = file_->position.sections.find(series_);
  // A recording that was started again begins with section 0.
  if (before == file_->position.sections.end() || section.number <= before->second.number + 1) {
    return {};
  }
  const std::uint64_t total = section.events_before + section.lost_before;
  return {section.number - before->second.number - 1,
          total - std::min(total, before->second.events)};
}

absl::Status Shipper::AddMissing(const ShipExporter& file, absl::Time time,
                                 otlp::LogRequests* requests) const {
  const Missing missing = FindMissing(file.section());
  if (missing.sections == 0) return absl::OkStatus();
  return requests->OnDeletedEvents(
      {.time = time,
       .text = absl::StrCat(base::Counted(missing.sections, "section"), " with ",
                            base::Counted(missing.events, "event"),
                            missing.sections == 1 ? " was deleted before it was sent"
                                                  : " were deleted before they were sent"),
       .name = series_,
       .count = missing.events,
       .sections = missing.sections,
       .id = absl::StrCat(file.section().number)});
}

void Shipper::CountMissing(const Missing& missing) {
  if (missing.sections == 0) return;
  counts_.missing_sections += missing.sections;
  counts_.missing_events += missing.events;
  file_->position.totals.missing_sections += missing.sections;
  file_->position.totals.missing_events += missing.events;
  Print(absl::StrCat(base::Printable(series_), ": ", base::Counted(missing.sections, "section"),
                     " with ", base::Counted(missing.events, "event"),
                     missing.sections == 1 ? " was deleted before it was sent"
                                           : " were deleted before they were sent",
                     ", according to the next file; raise the limits of the session (keep_files, "
                     "keep_bytes, keep_age)"));
}

absl::Status Shipper::ShipDeleted() {
  const std::vector<DeletedFile> deleted = file_->position.deleted;
  if (deleted.empty()) return absl::OkStatus();
  nettrace::TraceInfo trace;
  trace.key_values.emplace_back(nettrace::kKeyHostName, HostName());
  otlp::LogRequests requests(options_.encoding, trace, options_.limits,
                             [this](const auto& batch, std::string_view request) {
                               return logs_.Deliver(batch, request);
                             });
  current_ = nullptr;
  for (const DeletedFile& file : deleted) {
    const std::string more =
        file.files == 1 ? " was deleted before it was sent"
                        : absl::StrCat(" and ", base::Counted(file.files - 1, "other file"),
                                       " were deleted before they were sent");
    RETURN_IF_ERROR(requests.OnDeletedEvents({.time = absl::FromUnixNanos(file.changed),
                                              .text = base::ValidUtf8(file.path) + more,
                                              .name = base::ValidUtf8(file.path),
                                              .files = file.files}));
  }
  return requests.Flush();
}

absl::Status Shipper::OnDelivered(std::size_t records, std::uint64_t events) {
  Position& position = file_->position;
  if (current_ == nullptr) {
    const auto end = position.deleted.begin() +
                     static_cast<std::ptrdiff_t>(std::min(records, position.deleted.size()));
    position.deleted.erase(position.deleted.begin(), end);
  } else {
    current_->records += records;
    current_->events += events;
    // Stores where this file begins. If the file is deleted before its other events are sent, these
    // events are missing. FindMissing counts them by means of this entry when the next file of the
    // series is sent.
    if (!series_.empty() && !position.sections.contains(series_)) {
      const trace::AccountSummary::Section section = exporter_->section();
      position.sections[series_] = {section.number - 1,  // FindMissing adds 1 to it
                                    section.events_before + section.lost_before};
    }
  }
  const DeliveryCounts& counts = logs_.counts();
  ShipTotals& totals = position.totals;
  totals.accepted += counts.accepted - saved_.accepted;
  totals.rejected += counts.rejected - saved_.rejected;
  totals.refused += counts.refused - saved_.refused;
  saved_ = counts;
  PutMetrics(/*now=*/false);
  return file_->Save();
}

void Shipper::MakeSpans(otlp::LogRequests* requests) {
  if (options_.span_providers.empty()) return;
  otlp::SpanOptions options;
  options.providers = options_.span_providers;
  options.send = [this](const auto& batch, std::string_view request) {
    return spans_.Deliver(batch, request);
  };
  requests->MakeSpans(std::move(options), options_.limits);
  requests->spans()->SkipRecords(current_->spans);
}

absl::Status Shipper::OnSpansDelivered(std::size_t spans) {
  current_->spans += spans;
  const DeliveryCounts& counts = spans_.counts();
  ShipTotals& totals = file_->position.totals;
  totals.spans += counts.accepted - saved_spans_.accepted;
  totals.refused_spans +=
      counts.rejected + counts.refused - saved_spans_.rejected - saved_spans_.refused;
  saved_spans_ = counts;
  return file_->Save();
}

void Shipper::PutMetrics(bool now) {
  if (options_.metrics.empty()) return;
  const absl::Duration time = base::MonotonicNow();
  if (!now && time - last_metrics_ < absl::Seconds(1)) return;
  last_metrics_ = time;
  ShipMetrics metrics;
  metrics.totals = file_->position.totals;
  metrics.sent = logs_.counts();
  metrics.sent.requests += spans_.counts().requests;
  metrics.sent.retries += spans_.counts().retries;
  metrics.sent.bytes += spans_.counts().bytes;
  metrics.is_failing = logs_.is_failing() || spans_.is_failing();
  const std::int64_t unix_time = absl::ToUnixNanos(absl::Now());
  for (const auto& [path, file] : file_->position.files) {
    if (file.is_complete) continue;
    ++metrics.waiting_files;
    metrics.behind = std::max(metrics.behind, absl::Nanoseconds(unix_time - file.changed));
  }
  if (const absl::Status status = WriteMetrics(metrics, options_.metrics); !status.ok()) {
    ReportOnce(std::string(status.message()));
  }
}

void Shipper::ReportOnce(const std::string& message) {
  constexpr std::size_t kMaxReported = 1000;
  if (reported_.size() >= kMaxReported) reported_.clear();
  if (reported_.insert(message).second) Print(message);
}

}  // namespace tools::ship
