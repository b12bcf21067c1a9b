#include "tools/nettrace/report/findings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tools/base/quantities.h"
#include "tools/nettrace/report/change_detection.h"

namespace tools::report {
namespace {

constexpr std::size_t kMaxOfTopic = 6;  // maximum number of findings of one call of Finder::Add
constexpr std::uint64_t kLeastDurations = 100;  // durations needed to judge the slowest one
constexpr std::uint64_t kLeastGaps = 50;        // gaps of a kind needed to judge a silence
constexpr double kLeastOfPart = 50;      // durations in a part of the time needed for percentiles
constexpr std::size_t kLeastTimes = 16;  // parts of the time needed to judge a change
// The end of a process has a separate finding if the process lived at least for
// 1 / kPartOfLongLife of the recording.
constexpr std::uint64_t kPartOfLongLife = 10;
constexpr double kTrend = 0.7;  // absolute value of TrendOf that random values do not reach
// FindTail counts the durations above 1.4 times the usual 99th percentile. Their usual fraction is
// the median over all parts of the time, but at least this number.
constexpr double kUsualPartAbove = 0.005;

// Formats the ratio of two numbers, such as "1,600" or "2.5".
std::string Times(double ratio) {
  return ratio >= 10 ? base::FormatGrouped(static_cast<std::uint64_t>(std::llround(ratio)))
                     : absl::StrFormat("%.1f", ratio);
}

std::string PercentText(double part) {
  const double percent = 100 * part;
  return percent >= 9.95    ? absl::StrFormat("%.0f %%", percent)
         : percent >= 0.095 ? absl::StrFormat("%.1f %%", percent)
                            : absl::StrFormat("%.2g %%", percent);
}

// Returns the number and the noun, such as "1,234 events".
std::string Count(std::uint64_t number, std::string_view noun) {
  return absl::StrCat(base::FormatGrouped(number), " ", std::string(noun), number == 1 ? "" : "s");
}

std::string DurationText(double nanoseconds) {
  return base::FormatDuration(static_cast<std::uint64_t>(nanoseconds));
}

// Returns a finding without a text.
Finding NewFinding(Finding::Topic topic, std::uint64_t from, std::uint64_t until,
                   std::optional<std::size_t> kind = std::nullopt,
                   std::optional<std::size_t> process = std::nullopt) {
  Finding finding;
  finding.topic = topic;
  finding.from = from;
  finding.until = until;
  finding.kind = kind;
  finding.process = process;
  return finding;
}

class Finder {
 public:
  Finder(const nettrace::Reader& reader, const ReportModel& model)
      : reader_(reader), model_(model), statistics_(model.statistics()) {}

  std::vector<Finding> Find();

 private:
  // A change of one kind of events. Changes of several kinds at the same time become one finding.
  struct Change {
    Finding finding;  // without text
    bool is_up = false;
    bool from_start = false;
    bool until_end = false;
    std::string what;  // the change, such as "12 a second instead of the usual 3 a second."
    std::vector<std::size_t> others = {};  // other kinds that changed at the same time
    double size = 0;                       // larger for a more unusual change of the same topic
  };

  // A time in which a share of errors was higher (`is_up`) or lower than usual.
  struct ShareFinding {
    Finding finding;
    std::string_view provider;  // provider of the events or activities
    bool is_of_activities = false;
    bool is_up = false;
    double errors = 0;  // difference from the number of errors with the usual share
  };
  // The parts of a sentence about a share of errors.
  struct ShareWords {
    // Subject and verb for a higher share, such as "Errors of A were frequent".
    std::string frequent;
    std::string rare;     // subject and verb for a lower share
    std::string of_what;  // follows the percentage, such as " of its events"
  };

  void AddErrors();
  // Adds times in which errors had an unusual share among the events or activities of a kind, or of
  // a provider. Leaves out a share if AddErrors has reported it (see IsReportedAsErrors). Leaves
  // out the share of a kind that ends activities if the activities have the same share (see
  // IsSame). Leaves out the share of a provider if its activities or one of its kinds have the same
  // share.
  void AddErrorShares();
  void AddSharesOfActivities(std::vector<ShareFinding>* found) const;
  void AddSharesOfKinds(std::vector<ShareFinding>* found) const;
  void AddSharesOfProviders(std::vector<ShareFinding>* found) const;
  // Returns the time with an unusual share of the errors among the events, if there is one.
  std::optional<ShareFinding> FindShare(const TimeBuckets& buckets,
                                        std::span<const std::uint64_t> errors,
                                        std::span<const std::uint64_t> events,
                                        const ShareWords& words) const;
  // Returns whether AddErrors has added a finding that is within the time of `share` (see IsWithin)
  // and for which `is_same` returns true.
  bool IsReportedAsErrors(const ShareFinding& share,
                          const std::function<bool(const Finding&)>& is_same) const;
  // Returns whether `inner` overlaps `outer` and is not much longer.
  static bool IsWithin(const Finding& inner, const Finding& outer) {
    return inner.from <= outer.until && inner.until >= outer.from &&
           inner.until - inner.from <= 2 * (outer.until - outer.from);
  }
  // Returns whether `a` and `b` are about the same change of the same provider.
  static bool IsSame(const ShareFinding& a, const ShareFinding& b) {
    return a.provider == b.provider && a.is_up == b.is_up &&
           (IsWithin(a.finding, b.finding) || IsWithin(b.finding, a.finding));
  }
  void AddSlow();
  void AddDurations();
  // A change of the durations of one kind of activities.
  struct DurationChange {
    Finding finding;
    double factor = 0;  // the longer duration divided by the shorter one
  };
  std::optional<DurationChange> FindDurationChange(const Durations& row) const;
  // Returns a change if the percentile `percent` of the durations rises or falls over the whole
  // time, by a factor of at least `least`. Each of `parts` is the sum of `together` buckets of
  // row.over_time.
  std::optional<DurationChange> FindTrend(const Durations& row,
                                          std::span<const DurationsOverTime::Part> parts,
                                          double percent, double least, std::size_t together) const;
  // Returns a change if one span of time has far more long durations than usual. Each of `parts` is
  // the sum of `together` buckets of row.over_time.
  std::optional<DurationChange> FindTail(const Durations& row,
                                         std::span<const DurationsOverTime::Part> parts,
                                         std::size_t together) const;
  void AddRates();
  void AddProcesses();
  // Returns the minimum length, in ticks, of a life whose end has a separate finding.
  std::uint64_t LongLife() const;
  bool IsLong(const ProcessLife& life) const;
  // Returns the life in which the process of the life `ended` began again, or nullptr. `restarts`
  // are the lives that this function has returned before.
  const ProcessLife* RestartOf(const ProcessLife& ended,
                               const std::set<const ProcessLife*>& restarts) const;
  // Returns the finding for the end of a life, and for its restart `next`, if that is not nullptr.
  Finding EndOf(const ProcessLife& life, const ProcessLife* next) const;
  // Adds one finding for all these lives.
  void AddShortLives(const std::vector<const ProcessLife*>& lives);
  void AddLosses();
  void AddSilence();

  Finding ErrorsOf(std::size_t kind) const;
  // Adds a finding for each change. Several changes at about the same time share one finding.
  // `what_happened` is the verb of the sentence, such as "was rare".
  void AddJoined(std::vector<Change> changes, const char* what_happened);
  // Adds the first kMaxOfTopic findings, and a sentence with the number of the others.
  void Add(std::vector<Finding> findings);

  double Seconds(std::uint64_t ticks) const {
    return static_cast<double>(ticks) / static_cast<double>(TicksPerSecond());
  }
  std::uint64_t TicksPerSecond() const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, reader_.trace().ticks_per_second));
  }
  std::string SpanText(std::uint64_t ticks) const { return DurationText(1e9 * Seconds(ticks)); }
  std::string At(std::uint64_t ticks) const;
  std::string During(std::uint64_t from, std::uint64_t until, bool from_start = false,
                     bool until_end = false) const;
  std::string KindName(std::size_t kind) const;
  std::string ProcessName(std::size_t process) const;
  // Returns " on HOST", or "" if the host is not stated.
  std::string OnHost(std::size_t host) const;
  std::string RateText(double per_tick) const;
  bool IsLossWithin(std::uint64_t from, std::uint64_t until) const;
  // Returns the rank of the activity in ReportModel::complete(); nullopt if it is not there.
  std::optional<std::size_t> RankOf(const Activity& slow) const;
  std::uint64_t Whole() const { return model_.end() - model_.start(); }

  const nettrace::Reader& reader_;
  const ReportModel& model_;
  const Statistics& statistics_;
  std::vector<Finding> findings_;
};

std::vector<Finding> Finder::Find() {
  AddErrors();
  AddErrorShares();
  AddDurations();
  AddSlow();
  AddProcesses();
  AddLosses();
  AddSilence();
  AddRates();
  return std::move(findings_);
}

std::string Finder::At(std::uint64_t ticks) const {
  const char* const format = Seconds(Whole()) < 86400 ? "%H:%M:%E3S" : "%E4Y-%m-%d %H:%M:%S";
  return absl::FormatTime(format, reader_.TimeOf(ticks), absl::UTCTimeZone());
}

std::string Finder::During(std::uint64_t from, std::uint64_t until, bool from_start,
                           bool until_end) const {
  if (from_start && !until_end) return absl::StrCat("until ", At(until));
  if (until_end && !from_start) return absl::StrCat("from ", At(from), " on");
  return absl::StrCat("from ", At(from), " to ", At(until), " (", SpanText(until - from), ")");
}

std::string Finder::KindName(std::size_t kind) const {
  const Kind& row = model_.kinds()[kind];
  return absl::StrCat(row.name.empty() ? "(no name)" : row.name, " (", row.provider, ")");
}

std::string Finder::OnHost(std::size_t host) const {
  if (host == trace::Hosts::kNone) return "";
  return absl::StrCat(" on ", ShortName(model_.hosts().TextOf(host)));
}

std::string Finder::ProcessName(std::size_t process) const {
  const Process& row = model_.processes()[process];
  std::string name = row.pid ? absl::StrCat("process ", *row.pid) : "an unknown process";
  if (!row.name.empty()) absl::StrAppend(&name, " ", row.name);
  return absl::StrCat(name, OnHost(row.host));
}

std::string Finder::RateText(double per_tick) const {
  const double rate = per_tick * static_cast<double>(TicksPerSecond());
  if (rate >= 1) return base::FormatScaled(rate, 1000, {"", "k", "M", "G"}) + " a second";
  return absl::StrFormat("%.3g an hour", rate * 3600);
}

bool Finder::IsLossWithin(std::uint64_t from, std::uint64_t until) const {
  const TimeBuckets& buckets = model_.over_time();
  const auto lost = buckets.counts(0);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const std::uint64_t start = buckets.start() + i * buckets.width();
    if (lost[i] != 0 && start <= until && start + buckets.width() >= from) return true;
  }
  return false;
}

std::optional<std::size_t> Finder::RankOf(const Activity& slow) const {
  const auto found = std::find_if(model_.complete().begin(), model_.complete().end(),
                                  [&slow](const CompleteActivity& complete) {
                                    return complete.activity.begin == slow.begin &&
                                           complete.activity.end == slow.end &&
                                           complete.activity.id == slow.id;
                                  });
  if (found == model_.complete().end()) return std::nullopt;
  return static_cast<std::size_t>(found - model_.complete().begin());
}

void Finder::Add(std::vector<Finding> findings) {
  if (findings.empty()) return;
  const std::size_t others = findings.size() - std::min(findings.size(), kMaxOfTopic);
  if (others != 0) {
    findings.resize(kMaxOfTopic);
    absl::StrAppend(&findings.back().text, " There ", others == 1 ? "is" : "are", " ",
                    base::FormatGrouped(others), " more of this topic.");
  }
  std::move(findings.begin(), findings.end(), std::back_inserter(findings_));
}

void Finder::AddErrors() {
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < statistics_.kinds().size(); ++i) {
    if (statistics_.kinds()[i].errors != 0) kinds.push_back(i);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [this](std::size_t a, std::size_t b) {
    return statistics_.kinds()[a].errors > statistics_.kinds()[b].errors;
  });
  std::vector<Finding> findings;
  findings.reserve(kinds.size());
  for (const std::size_t kind : kinds) findings.push_back(ErrorsOf(kind));
  Add(std::move(findings));
}

Finding Finder::ErrorsOf(std::size_t kind) const {
  const Statistics::OfKind& row = statistics_.kinds()[kind];
  const TimeBuckets& buckets = statistics_.errors();
  const auto errors = buckets.counts(*row.error_series);
  Finding finding = NewFinding(Finding::Topic::kErrors, row.first_error, row.last_error, kind);
  finding.only_errors = true;
  finding.text = absl::StrCat(Count(row.errors, "error"), ": ", KindName(kind));
  if (row.errors != row.events) {
    absl::StrAppend(&finding.text, ", ",
                    PercentText(static_cast<double>(row.errors) / static_cast<double>(row.events)),
                    " of its events");
  }
  std::string others;
  const std::optional<Segment> burst = FindBurst(errors);
  if (burst) {
    std::uint64_t in_burst = 0;
    std::uint64_t all_in_burst = 0;
    for (std::size_t i = burst->from; i < burst->until; ++i) {
      in_burst += errors[i];
      all_in_burst += buckets.counts(0)[i];
    }
    finding.from = std::max(row.first_error, buckets.start() + burst->from * buckets.width());
    finding.until = std::min(row.last_error, buckets.start() + burst->until * buckets.width() - 1);
    absl::StrAppend(&finding.text, in_burst == row.errors ? ", all " : ", ",
                    in_burst == row.errors ? "" : base::FormatGrouped(in_burst) + " of them ",
                    During(finding.from, finding.until));
    others =
        absl::StrCat(" In that time, they are ",
                     PercentText(static_cast<double>(in_burst) / static_cast<double>(all_in_burst)),
                     " of all events.");
    if (in_burst != row.errors) {
      absl::StrAppend(&others, " The others are between ", At(row.first_error), " and ",
                      At(row.last_error), ".");
    }
  } else if (row.errors == 1) {
    absl::StrAppend(&finding.text, ", at ", At(row.first_error));
  } else {
    absl::StrAppend(&finding.text, ", ", During(row.first_error, row.last_error));
  }
  if (const auto most = statistics_.MostErrors(kind)) {
    const std::string in = absl::StrCat("in ", ProcessName(most->first));
    if (most->second == row.errors) {
      absl::StrAppend(&finding.text, ", ", in);
    } else {
      absl::StrAppend(&finding.text, ", most ", in);
    }
  }
  absl::StrAppend(&finding.text, ".", others);
  return finding;
}

void Finder::AddErrorShares() {
  std::vector<ShareFinding> found;
  AddSharesOfActivities(&found);
  AddSharesOfKinds(&found);
  AddSharesOfProviders(&found);
  std::stable_sort(found.begin(), found.end(), [](const ShareFinding& a, const ShareFinding& b) {
    return a.errors > b.errors;
  });
  std::vector<Finding> findings;
  findings.reserve(found.size());
  for (ShareFinding& share : found) findings.push_back(std::move(share.finding));
  Add(std::move(findings));
}

void Finder::AddSharesOfActivities(std::vector<ShareFinding>* found) const {
  for (const Durations& row : model_.durations()) {
    if (!row.kind) continue;
    std::optional<ShareFinding> share =
        FindShare(row.outcomes, row.outcomes.counts(1), row.outcomes.counts(0),
                  {KindName(*row.kind) + " failed often", KindName(*row.kind) + " failed rarely",
                   " of these activities had an error"});
    if (!share) continue;
    share->provider = model_.kinds()[*row.kind].provider;
    share->is_of_activities = true;
    const auto is_same = [&](const Finding& errors) {
      return model_.kinds()[*errors.kind].provider == share->provider;
    };
    if (!IsReportedAsErrors(*share, is_same)) found->push_back(*std::move(share));
  }
}

void Finder::AddSharesOfKinds(std::vector<ShareFinding>* found) const {
  for (std::size_t kind = 0; kind < statistics_.kinds().size(); ++kind) {
    const Statistics::OfKind& row = statistics_.kinds()[kind];
    if (row.errors == 0) continue;
    const std::string& name = model_.kinds()[kind].provider;
    const auto provider = std::find(model_.providers().begin(), model_.providers().end(), name);
    const bool has_others = row.errors != row.events;
    if (!has_others && provider == model_.providers().end()) continue;
    const auto events =
        has_others ? statistics_.rates().counts(kind)
                   : statistics_.shares().counts(
                         2 * static_cast<std::size_t>(provider - model_.providers().begin()));
    const std::string subject = has_others ? absl::StrCat("Errors of ", KindName(kind), " were ")
                                           : absl::StrCat(KindName(kind), " was ");
    std::optional<ShareFinding> share =
        FindShare(statistics_.rates(), statistics_.ErrorsByBucket(kind), events,
                  {subject + "frequent", subject + "rare",
                   has_others ? " of its events" : " of the events of its provider"});
    if (!share) continue;
    share->provider = name;
    share->finding.kind = kind;
    // If events of the kind end activities, AddSharesOfActivities may have added the same share.
    const bool is_stop = model_.kinds()[kind].ends_activities;
    const bool is_reported =
        IsReportedAsErrors(*share, [kind](const Finding& e) { return e.kind == kind; }) ||
        std::any_of(found->begin(), found->end(), [&](const ShareFinding& other) {
          return is_stop && other.is_of_activities && IsSame(*share, other);
        });
    if (!is_reported) found->push_back(*std::move(share));
  }
}

void Finder::AddSharesOfProviders(std::vector<ShareFinding>* found) const {
  const TimeBuckets& buckets = statistics_.shares();
  for (std::size_t provider = 0; provider < statistics_.providers(); ++provider) {
    const std::string& name = model_.providers()[provider];
    const std::string subject =
        absl::StrCat("Errors of ", name.empty() ? "(no name)" : name, " were ");
    std::optional<ShareFinding> share =
        FindShare(buckets, buckets.counts(2 * provider + 1), buckets.counts(2 * provider),
                  {subject + "frequent", subject + "rare", " of its events"});
    if (!share) continue;
    share->provider = name;
    share->finding.provider = provider;
    const bool is_reported =
        IsReportedAsErrors(
            *share,
            [&](const Finding& errors) { return model_.kinds()[*errors.kind].provider == name; }) ||
        std::any_of(found->begin(), found->end(),
                    [&](const ShareFinding& other) { return IsSame(*share, other); });
    if (!is_reported) found->push_back(*std::move(share));
  }
}

std::optional<Finder::ShareFinding> Finder::FindShare(const TimeBuckets& buckets,
                                                      std::span<const std::uint64_t> errors,
                                                      std::span<const std::uint64_t> events,
                                                      const ShareWords& words) const {
  const auto change = FindShareChange(errors, events);
  if (!change) return std::nullopt;
  const auto [first, last] = change->segment;
  const std::uint64_t from = std::max(model_.start(), buckets.start() + first * buckets.width());
  const std::uint64_t until = std::min(model_.end(), buckets.start() + last * buckets.width() - 1);
  ShareFinding found;
  found.is_up = change->share > change->usual;
  // Lost events may explain a lower share of errors.
  if (!found.is_up && IsLossWithin(from, until)) return std::nullopt;
  const auto in_segment = events.subspan(first, last - first);
  found.errors = std::abs(change->share - change->usual) *
                 std::accumulate(in_segment.begin(), in_segment.end(), 0.0);
  found.finding = NewFinding(Finding::Topic::kErrorShare, from, until);
  found.finding.only_errors = found.is_up;
  found.finding.text =
      absl::StrCat(found.is_up ? words.frequent : words.rare, " ",
                   During(from, until, change->from_start, change->until_end), ": ",
                   PercentText(change->share), words.of_what, ", instead of the usual ",
                   PercentText(change->usual), ". The start and the end of this time are exact to ",
                   SpanText(buckets.width() * change->together), ".");
  return found;
}

bool Finder::IsReportedAsErrors(const ShareFinding& share,
                                const std::function<bool(const Finding&)>& is_same) const {
  return std::any_of(findings_.begin(), findings_.end(), [&](const Finding& errors) {
    return errors.topic == Finding::Topic::kErrors && errors.kind && is_same(errors) &&
           IsWithin(errors, share.finding);
  });
}

void Finder::AddSlow() {
  std::vector<Finding> findings;
  for (const Durations& row : model_.durations()) {
    const trace::DurationHistogram& histogram = row.histogram;
    if (!row.kind || row.slowest.empty() || histogram.count() < kLeastDurations) continue;
    const auto log = [&histogram](unsigned percent) {
      return std::log(
          static_cast<double>(std::max<std::uint64_t>(1, histogram.Percentile(percent))));
    };
    // The largest of three estimates of the standard deviation of the durations' logarithms, and at
    // least 0.05. Each estimate is the distance of a percentile from the median, divided by this
    // distance in the standard normal distribution.
    const double deviation = std::max({(log(99) - log(50)) / 2.326, (log(90) - log(50)) / 1.2816,
                                       (log(50) - log(10)) / 1.2816, 0.05});
    const double count = static_cast<double>(histogram.count());
    // The largest of `count` random values is about sqrt(2 ln count) deviations above the median.
    const double limit = std::max(6.0, 1.6 * std::sqrt(2 * std::log(count)));
    const double least = std::max(std::exp(log(50) + limit * deviation), 3 * std::exp(log(99)));
    const auto nanoseconds = [this](const Activity& a) { return 1e9 * Seconds(a.ticks()); };
    const auto slow = std::count_if(row.slowest.begin(), row.slowest.end(),
                                    [&](const Activity& a) { return nanoseconds(a) > least; });
    if (slow == 0) continue;
    const Activity& slowest = row.slowest.front();
    const bool is_reported =
        std::any_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
          return finding.topic == Finding::Topic::kDurations && finding.kind == row.kind &&
                 finding.from <= slowest.end && finding.until >= slowest.begin;
        });
    if (is_reported) continue;
    const double median = static_cast<double>(std::max<std::uint64_t>(1, histogram.Percentile(50)));
    Finding finding = NewFinding(Finding::Topic::kSlow, slowest.begin, slowest.end);
    finding.activity = RankOf(slowest);
    finding.text = absl::StrCat(
        slow == 1 ? "One of " : absl::StrCat(slow == kSlowest ? "At least " : "", slow, " of "),
        base::FormatGrouped(histogram.count()), " ", KindName(*row.kind), " took ",
        slow == 1 ? "" : "unusually long, the slowest ", DurationText(nanoseconds(slowest)),
        ", at ", At(slowest.begin));
    if (const auto& process = model_.threads()[slowest.thread].process) {
      absl::StrAppend(&finding.text, ", in ", ProcessName(*process));
    }
    absl::StrAppend(&finding.text, ". That is ", Times(nanoseconds(slowest) / median),
                    " times the median of ", DurationText(median), "; 99 % took at most ",
                    base::FormatDuration(histogram.Percentile(99)), ".");
    findings.push_back(std::move(finding));
  }
  Add(std::move(findings));
}

void Finder::AddDurations() {
  std::vector<DurationChange> changes;
  for (const Durations& row : model_.durations()) {
    if (std::optional<DurationChange> change = FindDurationChange(row)) {
      changes.push_back(*std::move(change));
    }
  }
  std::stable_sort(
      changes.begin(), changes.end(),
      [](const DurationChange& a, const DurationChange& b) { return a.factor > b.factor; });
  std::vector<Finding> findings;
  findings.reserve(changes.size());
  for (DurationChange& change : changes) findings.push_back(std::move(change.finding));
  Add(std::move(findings));
}

std::optional<Finder::DurationChange> Finder::FindDurationChange(const Durations& row) const {
  if (!row.kind) return std::nullopt;
  std::vector<DurationsOverTime::Part> parts = row.over_time.Parts();
  std::size_t together = 1;
  const auto median = [&parts] {
    std::vector<double> counts;
    counts.reserve(parts.size());
    for (const auto& part : parts) counts.push_back(static_cast<double>(part.count));
    return Median(std::move(counts));
  };
  while (parts.size() / 2 >= kLeastTimes && median() < kLeastOfPart) {
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      parts[i].Merge(parts[i + 1]);
      if (i != 0) parts[i / 2] = std::move(parts[i]);
    }
    parts.resize(parts.size() / 2);
    together *= 2;
  }
  if (parts.size() < kLeastTimes || median() < kLeastOfPart) return std::nullopt;
  std::optional<DurationChange> trend = FindTrend(row, parts, 50, 1.5, together);
  if (!trend) trend = FindTrend(row, parts, 99, 2, together);
  return trend ? trend : FindTail(row, parts, together);
}

std::optional<Finder::DurationChange> Finder::FindTrend(
    const Durations& row, std::span<const DurationsOverTime::Part> parts, double percent,
    double least, std::size_t together) const {
  std::vector<double> values;
  std::vector<std::size_t> numbers;  // for each value, the index of its part
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (static_cast<double>(parts[i].count) < kLeastOfPart / 2) continue;
    values.push_back(parts[i].Percentile(percent));
    numbers.push_back(i);
  }
  if (values.size() < kLeastTimes || std::abs(TrendOf(values)) < kTrend) return std::nullopt;
  const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
  const double before = Median({values.begin(), values.begin() + quarter});
  const double after = Median({values.end() - quarter, values.end()});
  const double factor = std::max(before, after) / std::max(1.0, std::min(before, after));
  if (std::max(before, after) < least * std::min(before, after)) return std::nullopt;
  const auto time = [&](std::size_t part) {
    const std::uint64_t ticks = row.over_time.start() + part * together * row.over_time.width();
    return At(std::clamp(ticks, model_.start(), model_.end()));
  };
  Finding finding = NewFinding(Finding::Topic::kDurations, model_.start(), model_.end(), row.kind);
  finding.text = absl::StrCat(
      KindName(*row.kind), " became steadily ", after > before ? "slower" : "faster",
      percent == 50 ? ": half took at most about " : ": 99 % took at most about ",
      DurationText(before), " in the first quarter of the time (", time(numbers.front()), " to ",
      time(numbers[static_cast<std::size_t>(quarter) - 1] + 1), "), and about ",
      DurationText(after), " in the last quarter (",
      time(numbers[numbers.size() - static_cast<std::size_t>(quarter)]), " to ",
      time(numbers.back() + 1), ").");
  return DurationChange{std::move(finding), factor};
}

std::optional<Finder::DurationChange> Finder::FindTail(
    const Durations& row, std::span<const DurationsOverTime::Part> parts,
    std::size_t together) const {
  std::vector<double> tails;
  for (const DurationsOverTime::Part& part : parts) {
    if (static_cast<double>(part.count) >= kLeastOfPart / 2) tails.push_back(part.Percentile(99));
  }
  const double usual = Median(tails);
  const unsigned limit = DurationsOverTime::BucketOf(static_cast<std::uint64_t>(1.4 * usual));
  std::vector<double> parts_above;
  std::vector<double> scores;
  for (const DurationsOverTime::Part& part : parts) {
    const auto above = static_cast<double>(part.CountAbove(limit));
    scores.push_back(above - 0.02 * static_cast<double>(part.count));
    if (part.count != 0) parts_above.push_back(above / static_cast<double>(part.count));
  }
  const std::optional<Segment> segment = BestSegment(scores);
  if (!segment) return std::nullopt;
  DurationsOverTime::Part joined;
  for (std::size_t i = segment->from; i < segment->until; ++i) joined.Merge(parts[i]);
  const double usual_part = std::max(kUsualPartAbove, Median(std::move(parts_above)));
  const auto above = static_cast<double>(joined.CountAbove(limit));
  const double expected = usual_part * static_cast<double>(joined.count);
  const double tail = joined.Percentile(99);
  if (above < 20 || above < 5 * expected || tail < 2 * usual ||
      above - expected < kSureDeviations * std::sqrt(expected)) {
    return std::nullopt;
  }
  const DurationsOverTime& over_time = row.over_time;
  const std::uint64_t width = over_time.width() * together;
  const std::uint64_t from = std::max(model_.start(), over_time.start() + segment->from * width);
  const std::uint64_t until = std::min(model_.end(), over_time.start() + segment->until * width);
  Finding finding = NewFinding(Finding::Topic::kDurations, from, until, row.kind);
  finding.text =
      absl::StrCat(KindName(*row.kind), " was slow ",
                   During(from, until, segment->from == 0, segment->until == parts.size()),
                   ": 99 % took at most about ", DurationText(tail), " then, ", Times(tail / usual),
                   " times the usual ", DurationText(usual),
                   ". The start and the end of this time are exact to ", SpanText(width), ".");
  return DurationChange{std::move(finding), tail / std::max(1.0, usual)};
}

void Finder::AddJoined(std::vector<Change> changes, const char* what_happened) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.size > b.size; });
  std::vector<Change> joined;
  for (Change& change : changes) {
    const auto is_same = [&change](const Change& other) {
      const std::uint64_t length = std::max(other.finding.until - other.finding.from,
                                            change.finding.until - change.finding.from);
      const auto near = [length](std::uint64_t a, std::uint64_t b) {
        return std::max(a, b) - std::min(a, b) <= length / 8;
      };
      return other.is_up == change.is_up && near(other.finding.from, change.finding.from) &&
             near(other.finding.until, change.finding.until);
    };
    const auto same = std::find_if(joined.begin(), joined.end(), is_same);
    if (same == joined.end()) {
      joined.push_back(std::move(change));
    } else {
      same->others.push_back(*change.finding.kind);
    }
  }
  std::vector<Finding> findings;
  for (Change& change : joined) {
    Finding& finding = change.finding;
    finding.text =
        absl::StrCat(KindName(*finding.kind), " ", what_happened, " ",
                     During(finding.from, finding.until, change.from_start, change.until_end), ": ",
                     change.what);
    if (!change.others.empty()) {
      absl::StrAppend(&finding.text, " ",
                      change.others.size() == 1 ? KindName(change.others.front())
                                                : Count(change.others.size(), "other kind"),
                      " changed at the same time.");
      finding.kind.reset();
    }
    findings.push_back(std::move(finding));
  }
  Add(std::move(findings));
}

void Finder::AddRates() {
  const TimeBuckets& buckets = statistics_.rates();
  std::vector<Change> changes;
  for (std::size_t kind = 0; kind < statistics_.kinds().size(); ++kind) {
    // Skips kinds with errors, because AddErrors reports them, and ends of activities, because
    // their rate follows the rate of the starts.
    if (statistics_.kinds()[kind].errors != 0 || model_.kinds()[kind].ends_activities) continue;
    const std::optional<RateChange> change = FindRateChange(buckets.counts(kind));
    if (!change) continue;
    const std::uint64_t from = buckets.start() + change->segment.from * buckets.width();
    const std::uint64_t until = buckets.start() + change->segment.until * buckets.width();
    const bool is_up = change->rate > change->usual;
    // Lost events may explain a lower rate.
    if (!is_up && IsLossWithin(from, until)) continue;
    const bool is_silence = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& f) {
      return f.topic == Finding::Topic::kSilence && f.from < until && f.until > from;
    });
    if (!is_up && is_silence) continue;
    const auto width = static_cast<double>(buckets.width());
    Change& added = changes.emplace_back();
    added.finding = NewFinding(Finding::Topic::kRates, from, until, kind);
    added.is_up = is_up;
    added.from_start = change->from_start;
    added.until_end = change->until_end;
    added.what = absl::StrCat(RateText(change->rate / width), " instead of the usual ",
                              RateText(change->usual / width), ".");
    added.size = std::abs(std::log(std::max(change->rate, 0.01) / change->usual));
  }
  std::vector<Change> up;
  std::vector<Change> down;
  for (Change& change : changes) (change.is_up ? up : down).push_back(std::move(change));
  AddJoined(std::move(up), "was frequent");
  AddJoined(std::move(down), "was rare");
}

void Finder::AddSilence() {
  std::vector<Change> changes;
  for (std::size_t kind = 0; kind < statistics_.kinds().size(); ++kind) {
    const Statistics::OfKind& row = statistics_.kinds()[kind];
    // Skips ends of activities, because a slow activity delays its end.
    if (row.gaps.count() < kLeastGaps || model_.kinds()[kind].ends_activities) continue;
    const std::uint64_t to_end = model_.end() - std::min(model_.end(), row.last);
    const bool is_last = to_end > row.longest_gap;
    const std::uint64_t gap = std::max(to_end, row.longest_gap);
    const std::uint64_t from = is_last ? row.last : row.longest_gap_until - row.longest_gap;
    // Time in which the kind occurs, without the gap. A kind that occurs only in a part of the
    // time, such as the start of a program, is not expected later.
    const std::uint64_t active = row.last - row.first - (is_last ? 0 : gap);
    // One of 10^12 random (exponentially distributed) gaps exceeds 6 times the 99th percentile.
    const std::uint64_t usual = std::max<std::uint64_t>(1, row.gaps.Percentile(99));
    if (gap / 6 <= usual || active < Whole() / 2 || IsLossWithin(from, from + gap)) continue;
    Change& added = changes.emplace_back();
    added.finding = NewFinding(Finding::Topic::kSilence, from, from + gap, kind);
    added.until_end = is_last;
    added.what = absl::StrCat("no event, though 99 % of its events came within ", SpanText(usual),
                              " of the one before.");
    added.size = static_cast<double>(gap) / static_cast<double>(usual);
  }
  AddJoined(std::move(changes), "was silent");
}

void Finder::AddProcesses() {
  const std::vector<ProcessLife>& lives = model_.process_lives().lives();
  std::vector<const ProcessLife*> ended;
  std::vector<const ProcessLife*> short_ones;
  for (const ProcessLife& life : lives) {
    // Skips replaced lives, because their processes executed another program, or may have.
    if (!life.end || life.replaced || life.events == 0) continue;
    (IsLong(life) ? ended : short_ones).push_back(&life);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const ProcessLife* a, const ProcessLife* b) { return *a->end < *b->end; });
  std::set<const ProcessLife*> restarts;
  std::vector<Finding> findings;
  for (const ProcessLife* const life : ended) {
    const ProcessLife* const next = RestartOf(*life, restarts);
    if (next != nullptr) restarts.insert(next);
    findings.push_back(EndOf(*life, next));
  }
  // Puts processes that began again first, because Add keeps only the first findings. The findings
  // of these processes have no `process`.
  std::stable_partition(findings.begin(), findings.end(),
                        [](const Finding& finding) { return !finding.process; });
  Add(std::move(findings));
  AddShortLives(short_ones);
}

std::uint64_t Finder::LongLife() const {
  const ProcessLives& lives = model_.process_lives();
  const std::uint64_t from = std::min(model_.start(), lives.first());
  return (std::max(model_.end(), lives.last()) - from) / kPartOfLongLife;
}

bool Finder::IsLong(const ProcessLife& life) const { return *life.end - life.begin >= LongLife(); }

const ProcessLife* Finder::RestartOf(const ProcessLife& ended,
                                     const std::set<const ProcessLife*>& restarts) const {
  const ProcessLives& known = model_.process_lives();
  // Two processes with the same name may also be commands of a script. Therefore, only a process
  // that existed before the recording, or the restart of such a process, can have begun again.
  if (ended.name.empty() || (!ended.existed && !restarts.contains(&ended))) return nullptr;
  if (known.first_left_out() && *known.first_left_out() <= *ended.end) return nullptr;
  if (ended.host == trace::Hosts::kOthers) return nullptr;  // processes of several hosts
  const ProcessLife* next = nullptr;
  for (const ProcessLife& life : known.lives()) {
    if (&life == &ended || life.host != ended.host || life.name != ended.name) continue;
    const bool is_fork = life.replaced && !life.existed;  // a fork has the name of its parent
    if (life.begin < *ended.end) {
      if (!is_fork && (!life.end || *life.end > ended.begin)) return nullptr;
    } else if (next == nullptr && (!life.end || (!life.replaced && IsLong(life)))) {
      next = &life;
    }
  }
  if (next != nullptr && (next->existed || restarts.contains(next))) return nullptr;
  return next;
}

Finding Finder::EndOf(const ProcessLife& life, const ProcessLife* next) const {
  const auto process = std::find_if(
      model_.processes().begin(), model_.processes().end(),
      [&life](const Process& row) { return row.pid == life.pid && row.host == life.host; });
  std::uint64_t until = *life.end;
  std::string text = absl::StrCat("Process ", life.pid, life.name.empty() ? "" : " ", life.name,
                                  OnHost(life.host), " ended at ", At(*life.end));
  if (next != nullptr) {
    until = next->begin;
    absl::StrAppend(&text, ", and began again as process ", next->pid, " ",
                    SpanText(until - *life.end), " later");
  }
  const std::uint64_t around = Whole() / 100;
  const auto within = [this](std::uint64_t ticks) {
    return std::clamp(ticks, model_.start(), model_.end());
  };
  Finding finding =
      NewFinding(Finding::Topic::kProcesses, within(*life.end - std::min(around, *life.end)),
                 within(until + std::min(around, model_.end())));
  if (next == nullptr && process != model_.processes().end()) {
    finding.process = static_cast<std::size_t>(process - model_.processes().begin());
  }
  finding.text = text + ".";
  return finding;
}

void Finder::AddShortLives(const std::vector<const ProcessLife*>& lives) {
  const std::uint64_t left_out = model_.process_lives().ends_left_out();
  if (lives.empty() && left_out == 0) return;
  Finding finding = NewFinding(Finding::Topic::kProcesses, model_.end(), model_.start());
  std::map<std::string_view, std::size_t> by_name;
  for (const ProcessLife* const life : lives) {
    finding.from = std::min(finding.from, std::max(life->begin, model_.start()));
    finding.until = std::max(finding.until, std::min(*life->end, model_.end()));
    ++by_name[life->name];
  }
  if (lives.empty() || finding.from > finding.until) {
    finding.from = model_.start();
    finding.until = model_.end();
  }
  if (!lives.empty()) {
    const auto most =
        std::max_element(by_name.begin(), by_name.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    finding.text =
        absl::StrCat(base::FormatGrouped(lives.size()),
                     lives.size() == 1 ? " short-lived process" : " short-lived processes",
                     " ended, ", lives.size() == 1 ? "" : "each ", "after less than ",
                     SpanText(LongLife()), ", a tenth of the recording");
    if (!most->first.empty() && 2 * most->second >= lives.size()) {
      absl::StrAppend(
          &finding.text, ": ",
          most->second == lives.size() ? "" : base::FormatGrouped(most->second) + " of them ",
          std::string(most->first));
    }
    finding.text += '.';
  }
  if (left_out != 0) {
    absl::StrAppend(&finding.text, finding.text.empty() ? "" : " ", base::FormatGrouped(left_out),
                    left_out == 1 ? " more process" : " more processes",
                    " ended; this page compares only the first ", base::FormatGrouped(kMaxLives),
                    " processes.");
  }
  findings_.push_back(std::move(finding));
}

void Finder::AddLosses() {
  if (model_.lost() == 0) return;
  const TimeBuckets& buckets = model_.over_time();
  const auto lost = buckets.counts(0);
  const auto is_lost = [](std::uint64_t count) { return count != 0; };
  const auto first = std::find_if(lost.begin(), lost.end(), is_lost) - lost.begin();
  const auto last = lost.rend() - std::find_if(lost.rbegin(), lost.rend(), is_lost);
  std::uint64_t events = 0;
  for (std::size_t series = 1; series <= model_.providers().size(); ++series) {
    const auto counts = buckets.counts(series);
    events += std::accumulate(counts.begin() + first, counts.begin() + last, std::uint64_t{0});
  }
  const std::uint64_t from = std::max(
      model_.start(), buckets.start() + static_cast<std::uint64_t>(first) * buckets.width());
  const std::uint64_t until = std::min(
      model_.end(), buckets.start() + static_cast<std::uint64_t>(last) * buckets.width() - 1);
  const auto most =
      std::max_element(model_.losses().begin(), model_.losses().end(),
                       [](const Losses& a, const Losses& b) { return a.count < b.count; });
  const double part =
      static_cast<double>(model_.lost()) / static_cast<double>(model_.lost() + events);
  Finding finding = NewFinding(Finding::Topic::kLosses, from, until);
  finding.text =
      absl::StrCat(Count(model_.lost(), "event"), model_.lost() == 1 ? " was lost " : " were lost ",
                   During(from, until), ", ", PercentText(part), " of the events of that time");
  if (model_.losses().size() > 1) {
    absl::StrAppend(&finding.text, ", the most (", base::FormatGrouped(most->count), ") on ",
                    most->of);
  } else {
    absl::StrAppend(&finding.text, ", on ", most->of);
  }
  absl::StrAppend(&finding.text,
                  ". Counts of that time are too low, activities may lack their start or stop, and "
                  "errors may be missing.");
  findings_.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> FindFindings(const nettrace::Reader& reader, const ReportModel& model) {
  return Finder(reader, model).Find();
}

std::string_view TopicName(Finding::Topic topic) {
  switch (topic) {
    case Finding::Topic::kErrors:
      return "Errors";
    case Finding::Topic::kErrorShare:
      return "Error share";
    case Finding::Topic::kSlow:
      return "Slow activities";
    case Finding::Topic::kDurations:
      return "Durations";
    case Finding::Topic::kRates:
      return "Rates";
    case Finding::Topic::kProcesses:
      return "Processes";
    case Finding::Topic::kLosses:
      return "Losses";
    case Finding::Topic::kSilence:
      return "Silence";
  }
  return "";
}

}  // namespace tools::report
